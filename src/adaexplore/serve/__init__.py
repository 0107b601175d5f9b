"""HTTP service: searches and verdicts for a team, on one machine.

`server.serve` runs it. `client.Client` speaks to it, and needs none of the service's packages.
"""
