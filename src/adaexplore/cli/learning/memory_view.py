"""Commands on memories: list, show, check, merge."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table

from adaexplore.cli.learning.checking import check_with_progress, say_failures
from adaexplore.cli.learning.statements_view import check_statements
from adaexplore.cli.terminal.printing import say
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import TargetName
from adaexplore.core.rule import Platform, Rule
from adaexplore.memory.check import CheckedRule
from adaexplore.memory.describe import describe_gain
from adaexplore.memory.files import BUNDLED, load_memory, memory_path, save_memory
from adaexplore.memory.merge import merge_memories
from adaexplore.memory.renames import follow
from adaexplore.memory.unchecked.statements import is_statements
from adaexplore.run.learning.machine import Machine


def show_all(memory: str) -> int:
    """Print a line for each rule; return the exit code."""
    table = Table("rule", "kind", "holds on", "support", "statement", box=None)
    rules = load_memory(memory_path(memory))
    for rule in rules:
        places = ", ".join(sorted({w.triton for w in rule.holds}))
        places = places or ("nowhere" if rule.is_checked else "unchecked")
        if rule.gains:
            places += f" ({max(gain.speedup for gain in rule.gains):.3g}x)"
        table.add_row(rule.name, rule.kind, places, str(rule.support), escape(rule.statement))
    console = Console()
    console.print(table)
    console.print(f"{len(rules)} rules", highlight=False)
    return 0


def show(memory: str, name: str) -> int:
    """Print a rule with its programs; return the exit code."""
    console = Console()
    rules = {rule.name: rule for rule in load_memory(memory_path(memory))}
    if name not in rules:
        near = [known for known in rules if name in known][:3]
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise BadInputError(f"{memory} has no rule {name!r}{hint}")
    rule = rules[name]
    console.print(f"{rule.name} ({rule.kind})\n{rule.statement}", highlight=False, markup=False)
    for label, places in (("holds on", rule.holds), ("gone on", rule.gone)):
        if places:
            text = ", ".join(
                f"Triton {w.triton} ({', '.join(filter(None, [w.target, w.gpu]))})" for w in places
            )
            console.print(f"{label}: {text}", highlight=False, markup=False)
    if not rule.is_checked:
        console.print(f"unchecked: nobody tested it; seen {rule.support} times", highlight=False)
        return 0
    console.print(_shortcoming(rule), highlight=False, markup=False, soft_wrap=True)
    if rule.lift is not None:
        lift = f"lift: {100 * rule.lift:+.0f} points of first tries that are right, over "
        console.print(f"{lift}{rule.lift_tries}", highlight=False, markup=False)
    for title in ("reference", "witness", "remedy"):
        console.rule(title)
        console.print(Syntax(getattr(rule, title), "python"))
    return 0


def _shortcoming(rule: Rule) -> str:
    """Return a line on the failure of a rule's witness, or on its slowness."""
    if rule.kind == "speed":
        return (
            f"remedy against witness: {'; '.join(map(describe_gain, rule.gains)) or 'not measured'}"
        )
    signature = rule.signature
    failure = " ".join(filter(None, [signature.status, signature.type, signature.message]))
    return f"fails with: {failure}"


def check(
    memory: str,
    output: Path | None,
    device: str | None,
    target: TargetName | None,
    parallel: int | None,
    *,
    unseen: bool,
) -> int:
    """Run witnesses and remedies here; return the exit code: 1 if a rule does not hold.

    Not those of rules that have programs for this version in another rule, and with `unseen` only
    those of rules that were not tried here yet. The results are written to
    `output`, or else to the memory itself unless it is the bundled one. Of lines
    `statement||count`, the rules that say the same and hold are written (see `statements_view`).
    """
    console = Console()
    path = memory_path(memory)
    if is_statements(path):
        return check_statements(console, path, output, Machine(device, target), parallel)
    rules = load_memory(path)
    machine = Machine(device, target)
    here = machine.platform
    left = [
        rule
        for rule in rules
        if rule.is_checked
        and not _has_a_version(rule, rules, here)
        and not (unseen and here.as_of(rule.kind) in (*rule.holds, *rule.gone))
    ]
    checked, status = check_with_progress(console, left, machine, parallel)
    true = sum(result.true for result in checked)
    judged = sum(not result.untimed for result in checked)
    seen = {result.rule.name: result.rule for result in checked}
    kept, told = 0, frozenset[str]()
    written = output or (None if memory == BUNDLED else memory_path(memory))
    if written and seen:
        now = [seen.get(rule.name, rule) for rule in rules]
        now, told = _of_renames(console, checked, now, machine)
        save_memory(written, now)
        kept = sum(not r.true and _has_a_version(r.rule, now, here) for r in checked)
    say_failures(console, [result for result in checked if result.rule.name not in told])
    under = f", and {kept} more under the names of this version" if kept else ""
    say(console, f"{true} of {judged} rules hold on {machine}{under}")
    if unchecked := sum(not rule.is_checked for rule in rules):
        say(console, f"{unchecked} unchecked rules have no programs to run")
    return status or (0 if true + kept == judged else 1)


def _has_a_version(rule: Rule, rules: Sequence[Rule], here: Platform) -> bool:
    """Return true where another rule says the same and holds here, with programs of its own."""
    where = here.as_of(rule.kind)
    return where not in rule.holds and any(
        other.statement == rule.statement and where in other.holds for other in rules
    )


def _of_renames(
    console: Console, checked: Sequence[CheckedRule], rules: Sequence[Rule], machine: Machine
) -> tuple[list[Rule], frozenset[str]]:
    """Return the rules with what names of this version make of those that do not hold.

    Beside them the names of the rules of which that is told.
    """
    known, told = {rule.name: rule for rule in rules}, set()
    with closing(machine.checker()) as checker:
        for result in checked:
            renamed = follow(result, checker, list(known.values()))
            for found in renamed.found:
                say(console, f"found: {found.rule.name}: {found.rule.statement}")
                known[found.rule.name] = found.rule
            if renamed.under:
                told.add(result.rule.name)
            match renamed.under:
                case CheckedRule(rule=rule, true=True):
                    say(console, f"kept under these names: {rule.name}")
                    known[rule.name] = rule
                case CheckedRule(rule=rule, why=why):
                    say(console, f"{result.rule.name}, under these names: {why}")
                    gone = tuple({*result.rule.gone, *rule.gone})
                    known[result.rule.name] = replace(result.rule, gone=gone)
    return list(known.values()), frozenset(told)


def combine(memories: Sequence[str], output: Path) -> int:
    """Write several memories as one; return the exit code."""
    rules = merge_memories(*(load_memory(memory_path(memory)) for memory in memories))
    save_memory(output, rules)
    Console().print(f"{output}: {len(rules)} rules", highlight=False)
    return 0
