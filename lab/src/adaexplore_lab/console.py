"""Output of the commands: lines in the terminal, progress, files."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.progress import Progress

from adaexplore.core import Rule
from adaexplore.memory import CheckedRule
from adaexplore.run import INTERRUPTED, Machine, check_rules


def say(console: Console, text: str) -> None:
    """Print a line without markup, highlighting or wrapping."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def observe(
    console: Console, rules: Sequence[Rule], machine: Machine, parallel: int | None
) -> tuple[list[CheckedRule], int]:
    """Run rules' programs behind a progress bar; return the results by name, and the exit code.

    After Ctrl-C the results are those known by then.
    """
    checked: list[CheckedRule] = []
    status = 0
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("running witnesses and remedies", total=len(rules))

        def report(result: CheckedRule) -> None:
            checked.append(result)
            progress.advance(bar)

        try:
            check_rules(rules, machine, report, parallel=parallel, observe=True)
        except KeyboardInterrupt:
            status = INTERRUPTED
    say(console, f"{'stopped' if status else 'tried'} {len(checked)} of {len(rules)}")
    checked.sort(key=lambda result: result.rule.name)
    for result in checked:
        if not result.true and not result.untimed:
            say(console, f"{result.rule.name}: {result.why}")
    if untimed := sum(result.untimed for result in checked):
        say(console, f"{untimed} speed rules have two right programs; timing them takes a GPU")
    return checked, status
