"""HTTP service: searches and verdicts for a team, on one machine.

`server.serve` runs it. `Client` speaks to it, and needs none of the service's packages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaexplore.core.lazy import lazy_names

if TYPE_CHECKING:
    from adaexplore.serve.accounts import Account as Account
    from adaexplore.serve.accounts import add_token as add_token
    from adaexplore.serve.client import Client as Client
    from adaexplore.serve.client import problem_of as problem_of
    from adaexplore.serve.messages import JobEvent as JobEvent
    from adaexplore.serve.messages import JobInfo as JobInfo
    from adaexplore.serve.tables import open_folder as open_folder
else:
    __all__, __getattr__ = lazy_names(__name__, __file__)
