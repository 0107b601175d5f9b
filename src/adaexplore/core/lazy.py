"""Public names of a package root that are loaded from their modules at first use (PEP 562).

Importing a package root then costs nothing, and a module without torch stays without torch. The
root lists its names once, for type checkers and for this module:

    if TYPE_CHECKING:
        from adaexplore.search.tree import Tree as Tree
    else:
        __all__, __getattr__ = lazy_names(__name__, __file__)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(package: str, file: str) -> tuple[list[str], Callable[[str], Any]]:
    """Return `__all__` and `__getattr__` of the package root in `file`, by its imports."""
    home = dict(_imports(ast.parse(Path(file).read_text(encoding="utf-8"))))

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home[name]), name)

    return sorted(home), load


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each name that is imported under a condition, with its module."""
    for block in tree.body:
        for node in block.body if isinstance(block, ast.If) else ():
            if isinstance(node, ast.ImportFrom) and node.module:
                yield from ((alias.name, node.module) for alias in node.names)
