"""The machine that rules are checked on: the installed Triton, for a GPU or for a target."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from adaexplore.core.errors import BadInputError, BadProblemError
from adaexplore.core.problem import Language, Problem, TargetName
from adaexplore.core.protocols.evaluator import Evaluator
from adaexplore.core.rule import Platform
from adaexplore.core.settings.config import Config
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.memory.check import Checker
from adaexplore.run.processes import PRELOAD, PRELOAD_OFFLINE
from adaexplore.run.session import device_of, load_problem, target_of
from adaexplore.sandbox.process import ForkServer

_TIMEOUT_S = 120.0
_MEMORY_BYTES = 4 << 30
_NOTHING_ASKED = Config()
_MAX_PARALLEL = 16  # each checker has processes of some hundred megabytes
_MAX_PARALLEL_ON_GPU = 4


class Machine:
    """The installed Triton on a GPU, or without one for a target, and a language it compiles.

    The language is that of the problems loaded here; a rule's programs have their own. Raises
    `BadInputError` where Triton is missing or the device or target cannot be used.
    """

    def __init__(
        self,
        device: str | None = None,
        target: TargetName | None = None,
        language: Language = "triton",
    ) -> None:
        if find_spec("triton") is None:
            raise BadInputError("Triton is not installed: pip install triton")
        self.device = device_of("cpu" if device is None and target else device)
        self.language = language
        self.target = target_of(target, self.device, language)
        triton = version("triton")
        self.platform = (
            Platform(triton, self.target) if self.target else _gpu_platform(triton, self.device)
        )

    def checker(self) -> Checker:
        """Return a checker with a fork server of its own."""
        server = ForkServer.start(PRELOAD_OFFLINE if self.target else PRELOAD)
        kind = OfflineEvaluator if self.target else LocalEvaluator

        def evaluator(name: str, source: str) -> Evaluator:
            problem = Problem(name, source, "triton", self.device, target=self.target)
            return kind(
                server, problem, timeout_s=_TIMEOUT_S, memory_bytes=_MEMORY_BYTES, brief=True
            )

        return Checker(evaluator, self.platform, at_end=server.close)

    def problems(
        self,
        folder: Path,
        skipped: Callable[[str], None],
        limit: int | None = None,
        checked: Config = _NOTHING_ASKED,
    ) -> Iterator[Problem]:
        """Yield the problems of a folder's first `limit` files, in the order of names.

        Numbers in names count as numbers: 2.py comes before 10.py. `checked` says how candidates
        are checked.

        `skipped` is called with a line for each file that is no problem. Raises `BadInputError` for
        a folder without Python files.
        """
        if folder.is_file():
            raise BadInputError(f"{folder} is a file; name the folder of such files")
        files = sorted(folder.glob("*.py"), key=_in_order)[:limit]
        if not files:
            raise BadInputError(f"{folder} holds no problems: files that end in .py")
        here = {"language": self.language, "device": self.device, "target": self.target}
        config = checked.model_copy(update=here)
        for file in files:
            try:
                yield load_problem(file, config)
            except BadProblemError as error:
                skipped(f"{file.name}: left out: {error}")

    def __str__(self) -> str:
        parts = (self.platform.triton, self.platform.target, self.platform.gpu)
        return f"Triton {', '.join(filter(None, parts))}"


def default_parallel(*, gpu: bool = False) -> int:
    """Return the default number of checkers: one for each processor, up to a limit.

    The limit is low on a GPU, where checkers wait for each other's timing and each keeps a
    reference and inputs in device memory.
    """
    limit = _MAX_PARALLEL_ON_GPU if gpu else _MAX_PARALLEL
    return min(len(os.sched_getaffinity(0)), limit)


def _in_order(file: Path) -> str:
    return re.sub(r"\d+", lambda number: number[0].zfill(20), file.name)


def _gpu_platform(triton: str, device: str) -> Platform:
    import torch

    major, minor = torch.cuda.get_device_capability(device)
    return Platform(triton, f"sm_{major}{minor}", torch.cuda.get_device_name(device))
