"""The command that tries rule candidates on the installed Triton: probe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from adaexplore.cli.adapt import say, say_what_fails, tried
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import TargetName
from adaexplore.core.rule import KINDS, Kind, Rule
from adaexplore.memory.files import BUNDLED, load, memory_path, save
from adaexplore.memory.merge import merged
from adaexplore.run import check_rules as adapt
from adaexplore.run.place import Place
from adaexplore_lab.rules import candidates


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
    console = Console()
    known = load(output) if output.exists() else []
    wanted = _kinds(kinds)
    place = Place(device, target)
    if not kinds and not place.where.gpu:
        wanted = [kind for kind in wanted if kind != "speed"]
    known_pitfalls = [*load(memory_path(BUNDLED)), *candidates()]
    rules = [_untried(rule) for rule in known_pitfalls if rule.kind in wanted]
    checked, status = tried(console, adapt.probe, rules, place, parallel)
    say_what_fails(console, checked)
    found = [one.rule for one in checked if one.true]
    judged = sum(not one.untimed for one in checked)
    if judged:
        save(output, merged(known, found))
    say(console, f"{len(found)} of {judged} probes are rules on {place}: {output}")
    return status


def _untried(rule: Rule) -> Rule:
    """Return the rule without its record, so that only what is seen here counts."""
    return replace(rule, holds=(), gone=(), gains=(), support=1, tasks=(), lift=None, lift_tries=0)


def _kinds(asked: str) -> Sequence[Kind]:
    """The kinds that are named, separated by commas; all where none is."""
    names = [name.strip() for name in asked.split(",")] if asked else KINDS
    unknown = [name for name in names if name not in KINDS]
    if unknown:
        raise BadInputError(f"--kind {asked}: {unknown[0]!r} is none of {', '.join(KINDS)}")
    return [kind for kind in KINDS if kind in names]
