"""Public names of a package that are loaded from their modules at first use (PEP 562).

Importing a package root then costs nothing, and a module without torch stays without torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[list[str], Callable[[str], Any]]:
    """Return `__all__` and `__getattr__` of a package that exports names of these modules."""
    home = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{home[name]}"), name)

    return sorted(home), load
