"""Overlap with benchmarks: structures of graphs, compared by their digests.

The package ships the digests alone; `lab/benchmarks/benchmark_structures.py` makes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from pathlib import Path

from adaexplore.core.errors import BadInputError
from adaexplore.problems.overlap.confined import structure_of
from adaexplore.sandbox import ForkServer

STRUCTURES_FILE = "benchmarks.txt"
"""Beside this module: a digest a line, comments behind `#`."""

_DIGEST = re.compile(r"[0-9a-f]{32}")


def benchmark_structures() -> dict[str, str]:
    """The structures of the benchmark problems that the package knows."""
    text = (files("adaexplore.problems.overlap") / STRUCTURES_FILE).read_text(encoding="utf-8")
    return dict.fromkeys(digests(text), "a benchmark problem")


def digests(text: str) -> list[str]:
    """The digests in the text of such a file.

    Raises `BadInputError` for a line that holds something else.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        digest = line.partition("#")[0].strip()
        if digest and not _DIGEST.fullmatch(digest):
            raise BadInputError(
                f"{STRUCTURES_FILE}, line {number}: {digest!r} is no digest of a structure"
            )
        found += [digest] if digest else []
    return found


def structures_text(structures: Iterable[str], head: str) -> str:
    """The text of such a file: `head` as a comment, then the digests in order."""
    comment = "".join(f"# {line}\n" for line in head.splitlines())
    return comment + "".join(f"{digest}\n" for digest in sorted(set(structures)))


def structures_in(
    folder: Path, server: ForkServer, tell: Callable[[str, str], None]
) -> Mapping[str, str]:
    """The structures of all problems below a folder, with the file that has each.

    `tell` gets every file's name and why it has no structure, or nothing. Raises `BadInputError`
    for a folder without Python files.
    """
    paths = sorted(folder.rglob("*.py"))
    if not paths:
        raise BadInputError(f"{folder}: no Python files with benchmark problems there")
    found = {}
    for path in paths:
        name = str(path.relative_to(folder))
        traced = structure_of(server, path.stem, path.read_text(encoding="utf-8"))
        tell(name, traced["why"])
        if not traced["why"]:
            found[traced["structure"]] = name
    return found
