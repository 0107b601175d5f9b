"""Sandbox for untrusted code: forked workers with limits, a channel to them, shared tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaexplore.core.lazy import lazy_names

if TYPE_CHECKING:
    from adaexplore.sandbox.jobs import run_job as run_job
    from adaexplore.sandbox.lock import device_lock as device_lock
    from adaexplore.sandbox.process import ForkServer as ForkServer
    from adaexplore.sandbox.process import WorkerDiedError as WorkerDiedError
    from adaexplore.sandbox.user.user_code import Instance as Instance
    from adaexplore.sandbox.user.values import Inputs as Inputs
    from adaexplore.sandbox.user.values import check_outputs as check_outputs
    from adaexplore.sandbox.user.values import flatten_outputs as flatten_outputs
    from adaexplore.sandbox.user.values import map_tensors as map_tensors
    from adaexplore.sandbox.user.values import tensors_of as tensors_of
    from adaexplore.sandbox.walls.limits import candidate_limits as candidate_limits
    from adaexplore.sandbox.watchdog import LimitExceededError as LimitExceededError
else:
    __all__, __getattr__ = lazy_names(__name__, __file__)
