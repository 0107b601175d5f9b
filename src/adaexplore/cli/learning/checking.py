"""Progress and results of checking rules, in the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from adaexplore.cli.terminal.printing import say
from adaexplore.core.rule import Rule
from adaexplore.core.text.units import duration_s
from adaexplore.memory.check import CheckedRule
from adaexplore.run.learning.machine import Machine
from adaexplore.run.learning.rule_checks import check_rules
from adaexplore.run.session import INTERRUPTED


def check_with_progress(
    console: Console, rules: Sequence[Rule], machine: Machine, parallel: int | None
) -> tuple[list[CheckedRule], int]:
    """Check rules behind a progress bar; return the results by name, and the exit code.

    After Ctrl-C the results are those known by then.
    """
    checked: list[CheckedRule] = []
    status, started = 0, time.monotonic()
    with _bar(console, len(rules)) as advance:

        def report(result: CheckedRule) -> None:
            checked.append(result)
            advance()

        try:
            check_rules(rules, machine, report, parallel=parallel)
        except KeyboardInterrupt:
            status = INTERRUPTED
    checked.sort(key=lambda result: result.rule.name)
    took = duration_s(time.monotonic() - started)
    say(console, f"{'stopped' if status else 'tried'} {len(checked)} of {len(rules)} in {took}")
    return checked, status


def say_failures(console: Console, checked: Sequence[CheckedRule]) -> None:
    """Print the reason for each rule that does not hold, and the number of untimed speed rules."""
    for result in checked:
        if not result.true and not result.untimed:
            say(console, f"{result.rule.name}: {result.why}")
    untimed = sum(result.untimed for result in checked)
    if untimed:
        say(
            console,
            f"{untimed} of kind speed have two right programs, and are no rules without a GPU "
            "to time them on",
        )


@contextmanager
def _bar(console: Console, total: int) -> Iterator[Callable[[], None]]:
    """Show a progress bar; yield the function that advances it."""
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
