"""The baselines: what is on offer, trials, and what is built and timed."""
