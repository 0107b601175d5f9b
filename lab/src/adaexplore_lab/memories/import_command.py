"""The command that imports rules from elsewhere: import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from adaexplore.core import Rule, TargetName
from adaexplore.memory import (
    SayingMatch,
    SayingStatus,
    beliefs,
    find_rules,
    load_memory,
    memory_path,
    merge_memories,
    read_sayings,
    save_memory,
    status_of,
    supported_rules,
)
from adaexplore.run import Machine
from adaexplore_lab.console import observe, say

_MEMORIES = (".toml", ".json")


def take(
    source: Path,
    output: Path,
    known: str,
    least_count: float,
    device: str | None,
    target: TargetName | None,
    parallel: int | None,
) -> int:
    """Add the rules of `source` to `output`; return the exit code."""
    console = Console()
    if source.suffix in _MEMORIES:
        rules = load_memory(source)
    else:
        rules, status = _witnessed(console, source, known, least_count, device, target, parallel)
        if status:
            return status
    old = load_memory(output) if output.exists() else []
    save_memory(output, merge_memories(old, rules))
    say(console, f"{output}: {len(rules)} rules taken")
    return 0


def _witnessed(
    console: Console,
    source: Path,
    known: str,
    least_count: float,
    device: str | None,
    target: TargetName | None,
    parallel: int | None,
) -> tuple[list[Rule], int]:
    """Print the table; return the rules that bear out lines of `source`, and the exit code."""
    machine = Machine(device, target)
    said = read_sayings(source, least_count)
    rules = load_memory(memory_path(known))
    found = find_rules(said, [*rules, *beliefs()])
    meant = {one.rule.name: one.rule for one in found if one.rule is not None}
    here = machine.platform
    unseen = [r for r in meant.values() if here.as_of(r.kind) not in (*r.holds, *r.gone)]
    checked, status = observe(console, unseen, machine, parallel)
    if status:
        return [], status
    meant |= {one.rule.name: one.rule for one in checked}
    statuses = [status_of(one, meant, here) for one in found]
    _print(console, found, statuses)
    witnessed = [one for one, status in zip(found, statuses, strict=True) if status == "witnessed"]
    return supported_rules(meant.values(), witnessed), 0


def _print(
    console: Console, found: Sequence[SayingMatch], statuses: Sequence[SayingStatus]
) -> None:
    table = Table("", "count", "statement", "rule", box=None)
    for one, status in zip(found, statuses, strict=True):
        name = one.rule.name if one.rule else ""
        table.add_row(status, f"{one.saying.count:g}", escape(one.saying.statement), name)
    console.print(table)
    say(console, _summary(statuses))


def _summary(statuses: Iterable[SayingStatus]) -> str:
    counts = Counter(statuses)
    return f"{counts.total()} statements: " + ", ".join(
        f"{counts[status]} {status}" for status in ("witnessed", "stale", "unverified", "no rule")
    )
