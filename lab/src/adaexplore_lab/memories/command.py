"""Commands on memories in other forms: export, diff."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from adaexplore.core import BadInputError, write_whole
from adaexplore.memory import load_memory, memory_path, memory_to_json
from adaexplore_lab.console import say
from adaexplore_lab.memories.exchange import as_lines, as_markdown, difference


def export(memory: str, output: Path) -> int:
    """Write a memory in the form that the file's name says; return the exit code."""
    rules = load_memory(memory_path(memory))
    match output.suffix:
        case ".json":
            text = memory_to_json(rules)
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
    say(Console(), f"{output}: {len(rules)} rules")
    return 0


def diff(old: str, new: str) -> int:
    """Print the rules that two memories do not share; return the exit code: 1 if any."""
    console = Console()
    found = difference(load_memory(memory_path(old)), load_memory(memory_path(new)))
    for mark, names in (("+", found.added), ("-", found.removed), ("~", found.changed)):
        for name in names:
            say(console, f"{mark} {name}")
    counts = f"{len(found.added)} added, {len(found.removed)} removed, {len(found.changed)} changed"
    say(console, counts)
    return 1 if found.added or found.removed or found.changed else 0
