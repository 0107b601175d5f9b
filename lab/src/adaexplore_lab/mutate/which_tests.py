"""Which tests run a module: those that mirror it, those that import it, those of a table."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from adaexplore.core import BadInputError

_PACKAGE = "src/adaexplore/"


class WhichTests:
    """The test files of a repository by the module that they run.

    `table` names, by folder or module, the tests that run it through others.
    """

    def __init__(self, root: Path, table: Mapping[str, Sequence[str]]) -> None:
        self._root = root
        self._table = table
        for files in table.values():
            if lost := [file for file in files if not (root / file).exists()]:
                raise BadInputError(f"no test is at {root / lost[0]}")

    def of(self, path: str) -> list[str]:
        """Return the test files to run, in order: the closest to the module first."""
        found = [*self._mirrors(path), *self._importing(path), *self._tabled(path)]
        return list(dict.fromkeys(found))

    def _mirrors(self, path: str) -> Iterator[str]:
        module = Path(path.removeprefix(_PACKAGE))
        mirror = f"tests/unit/{module.parent}/test_{module.name}"
        if (self._root / mirror).exists():
            yield mirror

    def _importing(self, path: str) -> Iterator[str]:
        dotted = path.removeprefix("src/").removesuffix(".py").replace("/", ".")
        yield from (file for file, names in self._imports.items() if dotted in names)

    def _tabled(self, path: str) -> Iterator[str]:
        module = path.removeprefix(_PACKAGE)
        for prefix in sorted(self._table, key=len, reverse=True):
            if module.startswith(prefix):
                for place in self._table[prefix]:
                    yield from self._files(place)

    def _files(self, place: str) -> Iterator[str]:
        """Yield the test files in a folder: by name, since pytest has an order of its own."""
        path = self._root / place
        found = sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
        yield from (str(file.relative_to(self._root)) for file in found)

    @cached_property
    def _imports(self) -> dict[str, set[str]]:
        """The modules that each test file imports by name."""
        files = sorted((self._root / "tests/unit").rglob("test_*.py"))
        return {str(file.relative_to(self._root)): set(_imported(file)) for file in files}


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
