"""Lanes: each judges one candidate after the other, beside other lanes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from adaexplore.core import Evaluator, Problem
from adaexplore.evaluate import LocalEvaluator, OfflineEvaluator
from adaexplore.run import PRELOAD
from adaexplore.sandbox import ForkServer

_MEMORY_BYTES = 16 << 30


class Lane:
    """A fork server of its own, started by its first use; not for several threads at once."""

    def __init__(self) -> None:
        self._server: ForkServer | None = None

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

    def close(self) -> None:
        """End its processes."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def _running(self) -> ForkServer:
        if self._server is None:
            self._server = ForkServer.start(PRELOAD)
        return self._server
