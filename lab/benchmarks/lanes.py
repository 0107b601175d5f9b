"""Lanes: each judges one candidate after the other, beside other lanes, and can be cut short."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

from adaexplore.core import AdaExploreError, Evaluator, Problem
from adaexplore.evaluate import LocalEvaluator, OfflineEvaluator
from adaexplore.run import PRELOAD, PRELOAD_OFFLINE
from adaexplore.sandbox import ForkServer, candidate_limits, device_lock, run_job

_CRITERION = "published_criterion"  # a confined worker cannot read it
_MEMORY_BYTES = 16 << 30

# The server imports the jobs that lie beside this file.
_PATHS = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _PATHS))

_Result = TypeVar("_Result")


class Lane:
    """A fork server of its own, which `within` ends and the next use starts again.

    Not for several threads at once.
    """

    def __init__(self, *, offline: bool = False) -> None:
        self._preload = (*PRELOAD, *(PRELOAD_OFFLINE if offline else ()), _CRITERION)
        self._server: ForkServer | None = None
        self._was_cut = False

    def within(self, limit_s: float, work: Callable[[], _Result]) -> _Result:
        """Run work that uses this lane; end all its processes when the time is over.

        Raises `TimeoutError` then. What the work raises comes through.
        """
        timer = threading.Timer(limit_s, self._cut)
        self._was_cut = False
        timer.start()
        try:
            return work()
        except (AdaExploreError, OSError, RuntimeError) as error:
            if self._was_cut:
                raise TimeoutError(f"not done after {limit_s:.0f} s") from error
            raise
        finally:
            timer.cancel()
            self._was_cut = False

    def start(self) -> None:
        """Start its server now rather than with the first work."""
        self._running()

    @contextmanager
    def evaluator(self, problem: Problem, timeout_s: float) -> Iterator[Evaluator]:
        """An evaluator of this problem, ended afterwards."""
        kind = OfflineEvaluator if problem.target else LocalEvaluator
        evaluator = kind(self._running(), problem, timeout_s=timeout_s, memory_bytes=_MEMORY_BYTES)
        try:
            yield evaluator
        finally:
            evaluator.close()

    def job(
        self, entry: str, request: dict[str, Any], device: str, timeout_s: float
    ) -> dict[str, Any]:
        """Run untrusted code as a confined job, beside others on its device."""
        on_gpu = device != "cpu"
        limits = candidate_limits(_MEMORY_BYTES, gpu=on_gpu)
        kind: Literal["cpu", "gpu"] = "gpu" if on_gpu else "cpu"
        server = self._running()
        with device_lock(device, exclusive=False):
            return run_job(server, entry, request, timeout_s, limits=limits, confined=kind)

    def close(self) -> None:
        """End its processes."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def _running(self) -> ForkServer:
        if self._was_cut:
            raise TimeoutError("the time of this work is over")
        if self._server is None:
            self._server = ForkServer.start(self._preload)
        return self._server

    def _cut(self) -> None:
        self._was_cut = True
        self.close()
