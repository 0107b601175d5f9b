"""The command that takes rules from elsewhere: memory import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from adaexplore.cli.adapt import say, tried
from adaexplore.core.problem import TargetName
from adaexplore.core.rule import Rule
from adaexplore.memory.files import load, memory_path, save
from adaexplore.memory.merge import merged
from adaexplore.run import check_rules as adapt
from adaexplore.run.place import Place
from adaexplore_lab.imports.lines import Found, Standing, find, is_checkable, sayings, supported
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
    """Adds the rules of `source` to `output`; the exit code."""
    console = Console()
    if source.suffix in _MEMORIES:
        rules = load(source)
    else:
        rules, status = _witnessed(console, source, known, least_count, device, target, parallel)
        if status:
            return status
    old = load(output) if output.exists() else []
    save(output, merged(old, rules))
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
    """The known rules that bear out the lines of `source`, and the exit code; prints the table."""
    place = Place(device, target)
    said = sayings(source, least_count)
    rules = load(memory_path(known))
    found = find(said, [*rules, *beliefs()], wordings())
    meant = {one.rule.name: one.rule for one in found if one.rule is not None}
    unseen = [r for r in meant.values() if place.where.as_of(r.kind) not in (*r.holds, *r.gone)]
    checked, status = tried(console, adapt.probe, unseen, place, parallel)
    if status:
        return [], status
    meant |= {one.rule.name: one.rule for one in checked}
    here = {name: _standing(rule, place) for name, rule in meant.items()}
    _print(console, found, here)
    return supported([meant[name] for name in meant if here[name] == "witnessed"], found), 0


def _standing(rule: Rule, place: Place) -> Standing:
    here = place.where.as_of(rule.kind)
    if here in rule.holds:
        return "witnessed"
    return "stale" if here in rule.gone else "unverified"


def _print(console: Console, found: Sequence[Found], here: Mapping[str, Standing]) -> None:
    table = Table("", "count", "statement", "rule", box=None)
    standings = [_of(one, here) for one in found]
    for one, standing in zip(found, standings, strict=True):
        name = one.rule.name if one.rule else ""
        table.add_row(standing, f"{one.saying.count:g}", escape(one.saying.statement), name)
    console.print(table)
    say(console, _summary(standings))


def _of(one: Found, here: Mapping[str, Standing]) -> Standing:
    if one.rule is not None:
        return here[one.rule.name]
    return "unverified" if is_checkable(one.saying) else "no rule"


def _summary(standings: Iterable[Standing]) -> str:
    counts = Counter(standings)
    return f"{counts.total()} statements: " + ", ".join(
        f"{counts[standing]} {standing}"
        for standing in ("witnessed", "stale", "unverified", "no rule")
    )
