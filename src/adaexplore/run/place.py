"""Where rules are tried: the installed Triton, on a GPU or compiled for a target."""

from __future__ import annotations

import os
from importlib.metadata import version
from importlib.util import find_spec

from adaexplore.core.errors import BadInputError
from adaexplore.core.evaluator import Evaluator
from adaexplore.core.problem import Problem, TargetName
from adaexplore.core.rule import Platform
from adaexplore.evaluate.judge.local import LocalEvaluator
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.memory.check import Checker
from adaexplore.run.session import PRELOAD, PRELOAD_OFFLINE, device_of, target_of
from adaexplore.sandbox.process import ForkServer

_TIMEOUT_S = 120.0
_MEMORY_BYTES = 4 << 30
_MOST_PARALLEL = 16  # each has processes of some hundred megabytes
_MOST_ON_GPU = 4


class Place:
    """Where rules are tried: the installed Triton, on a GPU or else for a target."""

    def __init__(self, device: str | None, target: TargetName | None) -> None:
        if find_spec("triton") is None:
            raise BadInputError("Triton is not installed: pip install triton")
        self.device = device_of("cpu" if device is None and target else device)
        self.target = target_of(target, self.device, "triton")
        triton = version("triton")
        self.where = Platform(triton, self.target) if self.target else _on_gpu(triton, self.device)

    def checker(self) -> Checker:
        """A checker with a fork server of its own."""
        server = ForkServer.start(PRELOAD_OFFLINE if self.target else PRELOAD)
        kind = OfflineEvaluator if self.target else LocalEvaluator

        def judge(name: str, source: str) -> Evaluator:
            problem = Problem(name, source, "triton", self.device, target=self.target)
            return kind(
                server, problem, timeout_s=_TIMEOUT_S, memory_bytes=_MEMORY_BYTES, brief=True
            )

        return Checker(judge, self.where, at_end=server.close)

    def __str__(self) -> str:
        where = self.where
        return f"Triton {', '.join(filter(None, [where.triton, where.target, where.gpu]))}"


def _on_gpu(triton: str, device: str) -> Platform:
    """The place that a GPU is."""
    import torch

    major, minor = torch.cuda.get_device_capability(device)
    return Platform(triton, f"sm_{major}{minor}", torch.cuda.get_device_name(device))


def at_once(*, gpu: bool = False) -> int:
    """As many as there are processors for this process, within reason.

    On a GPU they wait for each other to be timed, and each has a reference and inputs there.
    """
    return min(len(os.sched_getaffinity(0)), _MOST_ON_GPU if gpu else _MOST_PARALLEL)
