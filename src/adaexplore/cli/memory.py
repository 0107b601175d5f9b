"""Commands on memories as files: list, show, diff, merge, export, import."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table

from adaexplore.core.errors import BadInputError
from adaexplore.core.rule import Rule
from adaexplore.memory.exports import as_lines, as_markdown, gain_text
from adaexplore.memory.files import load, memory_path, save, to_data, write_whole
from adaexplore.memory.merge import difference, merged


def show_all(memory: str) -> int:
    """Prints a line for each rule; the exit code."""
    table = Table("rule", "kind", "holds on", "support", "statement", box=None)
    rules = load(memory_path(memory))
    for rule in rules:
        places = ", ".join(sorted({w.triton for w in rule.holds})) or "nowhere"
        if rule.gains:
            places += f" ({max(gain.speedup for gain in rule.gains):.3g}x)"
        table.add_row(rule.name, rule.kind, places, str(rule.support), escape(rule.statement))
    console = Console()
    console.print(table)
    console.print(f"{len(rules)} rules", highlight=False)
    return 0


def show(memory: str, name: str) -> int:
    """Prints one rule with its programs; the exit code."""
    console = Console()
    rules = {rule.name: rule for rule in load(memory_path(memory))}
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
    console.print(_shortcoming(rule), highlight=False, markup=False, soft_wrap=True)
    if rule.lift is not None:
        lift = f"lift: {100 * rule.lift:+.0f} points of first tries that are right, over "
        console.print(f"{lift}{rule.lift_tries}", highlight=False, markup=False)
    for title in ("reference", "witness", "remedy"):
        console.rule(title)
        console.print(Syntax(getattr(rule, title), "python"))
    return 0


def _shortcoming(rule: Rule) -> str:
    """What is wrong with a rule's witness."""
    if rule.kind == "speed":
        return f"remedy against witness: {'; '.join(map(gain_text, rule.gains)) or 'not measured'}"
    signature = rule.signature
    failure = " ".join(filter(None, [signature.status, signature.type, signature.message]))
    return f"fails with: {failure}"


def diff(old: str, new: str) -> int:
    """Prints what two memories differ in; the exit code: 1 if in anything."""
    console = Console()
    found = difference(load(memory_path(old)), load(memory_path(new)))
    for mark, names in (("+", found.added), ("-", found.removed), ("~", found.changed)):
        for name in names:
            console.print(f"{mark} {name}", highlight=False, markup=False)
    counts = f"{len(found.added)} added, {len(found.removed)} removed, {len(found.changed)} changed"
    console.print(counts, highlight=False)
    return 1 if found.added or found.removed or found.changed else 0


def export(memory: str, output: Path) -> int:
    """Writes a memory for others, as its file's name says; the exit code."""
    rules = load(memory_path(memory))
    match output.suffix:
        case ".json":
            text = json.dumps(to_data(rules), indent=1, ensure_ascii=False) + "\n"
        case ".md":
            text = as_markdown(rules)
        case ".txt":
            text = as_lines(rules)
        case _:
            raise BadInputError(
                f"-o {output}: its name is to end in .json, in .md (a page to read), or in .txt "
                "(statement||count, as AdaExplore has it)"
            )
    write_whole(output, text)
    Console().print(f"{output}: {len(rules)} rules", highlight=False)
    return 0


def combine(memories: Sequence[str], output: Path) -> int:
    """Writes several memories as one; the exit code."""
    rules = merged(*(load(memory_path(memory)) for memory in memories))
    save(output, rules)
    Console().print(f"{output}: {len(rules)} rules", highlight=False)
    return 0
