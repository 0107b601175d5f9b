"""Checking of `statement||count` lines: the rules with programs that say the same, tried here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from adaexplore.cli.learning.checking import check_with_progress
from adaexplore.cli.terminal.printing import say
from adaexplore.memory.files import BUNDLED, beliefs, load_memory, memory_path, save_memory
from adaexplore.memory.unchecked.statements import (
    SayingStatus,
    find_rules,
    read_sayings,
    status_of,
    supported_rules,
)
from adaexplore.run.learning.machine import Machine


def check_statements(
    console: Console, path: Path, output: Path | None, machine: Machine, parallel: int | None
) -> int:
    """Print what each line is worth here and write the rules that bear lines out.

    They go to `output`, or to a .toml file beside the lines. Returns the exit code: 1 if no line is
    borne out.
    """
    here = machine.platform
    known = [rule for rule in load_memory(memory_path(BUNDLED)) if rule.kind != "speed"]
    found = find_rules(read_sayings(path), [*known, *beliefs()])
    meant = {one.rule.name: one.rule for one in found if one.rule is not None}
    unseen = [r for r in meant.values() if here.as_of(r.kind) not in (*r.holds, *r.gone)]
    checked, status = check_with_progress(console, unseen, machine, parallel)
    if status:
        return status
    meant |= {result.rule.name: result.rule for result in checked}
    statuses = [status_of(one, meant, here) for one in found]
    table = Table("", "count", "statement", "rule", box=None)
    for one, worth in zip(found, statuses, strict=True):
        name = one.rule.name if one.rule else ""
        table.add_row(worth, f"{one.saying.count:g}", escape(one.saying.statement), name)
    console.print(table)
    counts = Counter(statuses)
    parts = ", ".join(f"{counts[worth]} {worth}" for worth in get_args(SayingStatus))
    say(console, f"{len(found)} statements: {parts}")
    pairs = zip(found, statuses, strict=True)
    rules = supported_rules(meant.values(), [one for one, worth in pairs if worth == "witnessed"])
    written = output or path.with_suffix(".toml")
    if rules:
        save_memory(written, rules)
        say(console, f"{written}: {len(rules)} rules, which hold on {machine}")
    return 0 if rules else 1
