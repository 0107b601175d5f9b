"""The command that tries bundled rules and candidates on the installed Triton: probe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from adaexplore.core import KINDS, BadInputError, Kind, Rule, TargetName
from adaexplore.memory import BUNDLED, load_memory, memory_path, merge_memories, save_memory
from adaexplore.run import Machine
from adaexplore_lab.console import observe, say
from adaexplore_lab.rules import candidates


def probe(
    output: Path,
    device: str | None,
    target: TargetName | None,
    parallel: int | None,
    kinds: str = "",
) -> int:
    """Try bundled rules and candidates here, write those that hold, and return the exit code.

    `kinds` are separated by commas; the default is every kind, but "speed" only on a GPU.
    """
    console = Console()
    known = load_memory(output) if output.exists() else []
    wanted = _kinds(kinds)
    machine = Machine(device, target)
    if not kinds and not machine.platform.gpu:
        wanted = [kind for kind in wanted if kind != "speed"]
    pitfalls = [*load_memory(memory_path(BUNDLED)), *candidates()]
    rules = [_untried(rule) for rule in pitfalls if rule.kind in wanted]
    checked, status = observe(console, rules, machine, parallel)
    found = [result.rule for result in checked if result.true]
    judged = sum(not result.untimed for result in checked)
    if judged:
        save_memory(output, merge_memories(known, found))
    say(console, f"{len(found)} of {judged} are rules on {machine}: {output}")
    return status


def _untried(rule: Rule) -> Rule:
    """Return the rule without its record, so that only what is seen here counts."""
    return replace(rule, holds=(), gone=(), gains=(), support=1, tasks=(), lift=None, lift_tries=0)


def _kinds(asked: str) -> Sequence[Kind]:
    """Return the kinds that are named, separated by commas; all for an empty text."""
    names = [name.strip() for name in asked.split(",")] if asked else KINDS
    unknown = [name for name in names if name not in KINDS]
    if unknown:
        raise BadInputError(f"--kind {asked}: {unknown[0]!r} is none of {', '.join(KINDS)}")
    return [kind for kind in KINDS if kind in names]
