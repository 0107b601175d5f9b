"""Commands that run rules' programs: adapt --probe, memory check."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from adaexplore import adapt
from adaexplore.cli.session import (
    INTERRUPTED,
    PRELOAD,
    PRELOAD_OFFLINE,
    Asked,
    device_of,
    load_problem,
    target_of,
)
from adaexplore.errors import BadInputError, BadProblemError
from adaexplore.evaluate.base import Evaluator
from adaexplore.evaluate.local import LocalEvaluator
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.memory.check import Checked, Checker
from adaexplore.memory.files import BUNDLED, load, memory_path, save
from adaexplore.memory.merge import merged
from adaexplore.problem import Problem, TargetName
from adaexplore.rule import KINDS, Kind, Rule, Where
from adaexplore.sandbox.process import ForkServer
from adaexplore.units import duration_s

_TIMEOUT_S = 120.0
_MEMORY_BYTES = 4 << 30
_MOST_PARALLEL = 16  # each has processes of some hundred megabytes
_MOST_ON_GPU = 4

Try = Callable[[Sequence[Rule], adapt.NewChecker, adapt.Tell, int], None]


def probe(
    output: Path,
    device: str | None,
    target: TargetName | None,
    parallel: int | None,
    kinds: str = "",
) -> int:
    """Tries the probes of some kinds here and writes the rules that hold; the exit code.

    `kinds` are separated by commas; by default they are all that can be rules here.
    """
    from adaexplore.memory.probes import PROBES

    console = Console()
    known = load(output) if output.exists() else []
    wanted = _kinds(kinds)
    place = Place(device, target)
    if not kinds and not place.where.gpu:
        wanted = [kind for kind in wanted if kind != "speed"]
    rules = [probe.rule() for probe in PROBES if probe.kind in wanted]
    checked, status = tried(console, adapt.probe, rules, place, parallel)
    _say_what_fails(console, checked)
    found = [one.rule for one in checked if one.true]
    judged = sum(not one.untimed for one in checked)
    if judged:
        save(output, merged(known, found))
    say(console, f"{len(found)} of {judged} probes are rules on {place}: {output}")
    return status


def _kinds(asked: str) -> Sequence[Kind]:
    """The kinds that are named, separated by commas; all where none is."""
    names = [name.strip() for name in asked.split(",")] if asked else KINDS
    unknown = [name for name in names if name not in KINDS]
    if unknown:
        raise BadInputError(f"--kind {asked}: {unknown[0]!r} is none of {', '.join(KINDS)}")
    return [kind for kind in KINDS if kind in names]


def check(
    memory: str,
    output: Path | None,
    device: str | None,
    target: TargetName | None,
    parallel: int | None,
    *,
    unseen: bool,
) -> int:
    """Runs witnesses and remedies here; the exit code: 1 if a rule does not hold.

    With `unseen` only those of rules that were not tried here yet. What was seen is written to
    `output`, or else to the memory itself; the package's own stays.
    """
    console = Console()
    rules = load(memory_path(memory))
    place = Place(device, target)
    here = place.where
    left = [
        rule
        for rule in rules
        if not (unseen and here.as_of(rule.kind) in (*rule.holds, *rule.gone))
    ]
    checked, status = tried(console, adapt.check, left, place, parallel)
    _say_what_fails(console, checked)
    true, judged = sum(one.true for one in checked), sum(not one.untimed for one in checked)
    seen = {one.rule.name: one.rule for one in checked}
    written = output or (None if memory == BUNDLED else memory_path(memory))
    if written and seen:
        save(written, [seen.get(rule.name, rule) for rule in rules])
    say(console, f"{true} of {judged} rules hold on {place}")
    return status or (0 if true == judged else 1)


class Place:
    """Where rules are tried: the installed Triton, on a GPU or else for a target."""

    def __init__(self, device: str | None, target: TargetName | None) -> None:
        if find_spec("triton") is None:
            raise BadInputError("Triton is not installed: pip install triton")
        self.device = device_of("cpu" if device is None and target else device)
        self.target = target_of(target, self.device, "triton")
        triton = version("triton")
        self.where = Where(triton, self.target) if self.target else _on_gpu(triton, self.device)

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


def _on_gpu(triton: str, device: str) -> Where:
    """The place that a GPU is."""
    import torch

    major, minor = torch.cuda.get_device_capability(device)
    return Where(triton, f"sm_{major}{minor}", torch.cuda.get_device_name(device))


def problems_in(
    console: Console, folder: Path, place: Place, most_files: int | None = None
) -> Iterator[Problem]:
    """The Triton problems of a folder, in the order of names; of so many files at most.

    Says which cannot be loaded. Raises `BadInputError` for a folder without problems.
    """
    files = sorted(folder.glob("*.py"))[:most_files]
    if not files:
        raise BadInputError(f"{folder} holds no problems: files that end in .py")
    asked = Asked(files[0], "triton", place.device, "fp32", "as-built", 0, target=place.target)
    for file in files:
        try:
            yield load_problem(replace(asked, path=file))
        except BadProblemError as error:
            say(console, f"{file.name}: left out: {error}")


def tried(
    console: Console, attempt: Try, rules: Sequence[Rule], place: Place, parallel: int | None
) -> tuple[list[Checked], int]:
    """What became of the rules, in the order of names, and the exit code.

    So many as `parallel` are tried at once, those that are timed on a GPU one by one after them:
    processes that begin and end beside them are noise. After Ctrl-C it is what was tried by then.
    """
    checked: list[Checked] = []
    status, started = 0, time.monotonic()
    with _bar(console, len(rules)) as advance:

        def tell(one: Checked) -> None:
            checked.append(one)
            advance()

        on_gpu = bool(place.where.gpu)
        timed = [rule for rule in rules if on_gpu and rule.kind == "speed"]
        others = [rule for rule in rules if rule not in timed]
        try:
            for some, together in ((others, parallel or at_once(gpu=on_gpu)), (timed, 1)):
                if some:
                    attempt(some, place.checker, tell, together)
        except KeyboardInterrupt:
            status = INTERRUPTED
    checked.sort(key=lambda one: one.rule.name)
    done = "stopped" if status else "tried"
    took = duration_s(time.monotonic() - started)
    say(console, f"{done} {len(checked)} of {len(rules)} in {took}")
    return checked, status


def _say_what_fails(console: Console, checked: Sequence[Checked]) -> None:
    for one in checked:
        if not one.true and not one.untimed:
            say(console, f"{one.rule.name}: {one.why}")
    untimed = sum(one.untimed for one in checked)
    if untimed:
        say(
            console,
            f"{untimed} of kind speed have two right programs, and are no rules without a GPU "
            "to time them on",
        )


def at_once(*, gpu: bool = False) -> int:
    """As many as there are processors for this process, within reason.

    On a GPU they wait for each other to be timed, and each has a reference and inputs there.
    """
    return min(len(os.sched_getaffinity(0)), _MOST_ON_GPU if gpu else _MOST_PARALLEL)


@contextmanager
def _bar(console: Console, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar, and what advances it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("running witnesses and remedies", total=total)
        yield lambda: progress.advance(task)


def say(console: Console, text: str) -> None:
    """Prints a line as it is."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)
