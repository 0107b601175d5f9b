"""Terminal output of a measured lift."""

from __future__ import annotations

import math

from rich.console import Console
from rich.table import Table

from adaexplore_lab.console import say
from adaexplore_lab.lift.summary import Contrast, Lift


def show(console: Console, lift: Lift) -> None:
    """Print the tables; nothing where nothing was tried."""
    if not lift.arms:
        return
    table = Table("memory", "tasks", "right", "95 % interval", "tokens added", "failures", box=None)
    for arm in lift.arms:
        failures = ", ".join(f"{name} {count}" for name, count in arm.failures.items())
        table.add_row(
            arm.arm,
            str(arm.tasks),
            f"{arm.right} of {arm.tries}",
            _percent(arm.interval),
            "" if arm.tokens_added is None else f"{arm.tokens_added:.0f}",
            failures,
        )
    console.print(table)
    for found in lift.contrasts:
        say(console, f"{found.arm} against {found.against}: {_difference(found)}")
    certain = [one for one in lift.rules if one.alone or not _holds_none(one.contrast)]
    if certain:
        rules = Table("rule", "tries", "with", "without", "lift", "95 % interval", "", box=None)
        for one in certain:
            apart = one.contrast
            with_it, without = apart.shares
            rules.add_row(
                one.rule,
                str(apart.tries),
                f"{100 * with_it:.0f} %",
                f"{100 * without:.0f} %",
                f"{100 * apart.difference:+.0f}",
                _points(apart.interval),
                "by itself" if one.alone else "",
            )
        console.print(rules)
    if lift.rules:
        other = sum(not _holds_none(one.contrast) for one in lift.rules)
        say(
            console,
            f"{len(lift.rules)} rules were in prompts; {other} with a lift whose interval leaves "
            "out none",
        )


def _holds_none(found: Contrast) -> bool:
    low, high = found.interval
    return low <= 0 <= high


def _difference(found: Contrast) -> str:
    return (
        f"{100 * found.difference:+.0f} points (95 % interval {_points(found.interval)}) at "
        f"{found.tasks} tasks; better at {found.better}, worse at {found.worse} "
        f"(p = {found.p_value:.2g})"
    )


def _percent(bounds: tuple[float, float]) -> str:
    """An interval of a share, rounded outwards."""
    low, high = bounds
    return f"{math.floor(100 * low)} to {math.ceil(100 * high)} %"


def _points(bounds: tuple[float, float]) -> str:
    low, high = bounds
    return f"{100 * low:+.0f} to {100 * high:+.0f}"
