"""Commands that run rules' programs: adapt --probe, memory check."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from adaexplore.core.errors import BadInputError, BadProblemError
from adaexplore.core.problem import Problem, TargetName
from adaexplore.core.rule import Rule
from adaexplore.core.units import duration_s
from adaexplore.memory.check import Checked
from adaexplore.memory.files import BUNDLED, load, memory_path, save
from adaexplore.run import check_rules as adapt
from adaexplore.run.place import Place, at_once
from adaexplore.run.session import (
    INTERRUPTED,
    Asked,
    load_problem,
)

Try = Callable[[Sequence[Rule], adapt.NewChecker, adapt.Tell, int], None]


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
    say_what_fails(console, checked)
    true, judged = sum(one.true for one in checked), sum(not one.untimed for one in checked)
    seen = {one.rule.name: one.rule for one in checked}
    written = output or (None if memory == BUNDLED else memory_path(memory))
    if written and seen:
        save(written, [seen.get(rule.name, rule) for rule in rules])
    say(console, f"{true} of {judged} rules hold on {place}")
    return status or (0 if true == judged else 1)


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


def say_what_fails(console: Console, checked: Sequence[Checked]) -> None:
    """Print why rules do not hold, and how many of kind speed could not be timed."""
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
