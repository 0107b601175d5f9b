"""The command that imports rules from elsewhere: import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from adaexplore.core import Platform, Rule, TargetName
from adaexplore.memory import load_memory, memory_path, merge_memories, save_memory
from adaexplore.run import Machine
from adaexplore_lab.console import observe, say
from adaexplore_lab.memories.lines import (
    SayingMatch,
    SayingStatus,
    find,
    is_checkable,
    sayings,
    supported,
)
from adaexplore_lab.rules import beliefs
from adaexplore_lab.rules import sayings as wordings

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
    said = sayings(source, least_count)
    rules = load_memory(memory_path(known))
    found = find(said, [*rules, *beliefs()], wordings())
    meant = {one.rule.name: one.rule for one in found if one.rule is not None}
    here = machine.platform
    unseen = [r for r in meant.values() if here.as_of(r.kind) not in (*r.holds, *r.gone)]
    checked, status = observe(console, unseen, machine, parallel)
    if status:
        return [], status
    meant |= {one.rule.name: one.rule for one in checked}
    statuses = {name: _status(rule, here) for name, rule in meant.items()}
    _print(console, found, statuses)
    witnessed = [rule for name, rule in meant.items() if statuses[name] == "witnessed"]
    return supported(witnessed, found), 0


def _status(rule: Rule, platform: Platform) -> SayingStatus:
    here = platform.as_of(rule.kind)
    if here in rule.holds:
        return "witnessed"
    return "stale" if here in rule.gone else "unverified"


def _print(
    console: Console, found: Sequence[SayingMatch], statuses: Mapping[str, SayingStatus]
) -> None:
    table = Table("", "count", "statement", "rule", box=None)
    found_statuses = [_of(one, statuses) for one in found]
    for one, status in zip(found, found_statuses, strict=True):
        name = one.rule.name if one.rule else ""
        table.add_row(status, f"{one.saying.count:g}", escape(one.saying.statement), name)
    console.print(table)
    say(console, _summary(found_statuses))


def _of(one: SayingMatch, statuses: Mapping[str, SayingStatus]) -> SayingStatus:
    if one.rule is not None:
        return statuses[one.rule.name]
    return "unverified" if is_checkable(one.saying) else "no rule"


def _summary(found_statuses: Iterable[SayingStatus]) -> str:
    counts = Counter(found_statuses)
    return f"{counts.total()} statements: " + ", ".join(
        f"{counts[status]} {status}" for status in ("witnessed", "stale", "unverified", "no rule")
    )
