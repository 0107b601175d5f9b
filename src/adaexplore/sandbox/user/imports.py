"""The modules of the user that a reference imports, and its candidates with it."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from adaexplore.core.problem import Access


def make_importable(access: Access) -> None:
    """Let this process import the user's modules, for good.

    The folders of `access.imports` come after the standard library and before what is installed.
    The modules of `access.modules` are found by their files alone, so a process that may read these
    files and list no folder can import them.
    """
    start = _first_installed()
    sys.path[start:start] = [folder for folder in access.imports if folder not in sys.path]
    if access.modules:
        sys.meta_path.insert(0, _KnownModules(dict(access.modules)))


def _first_installed() -> int:
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    return next((i for i, path in enumerate(sys.path) if path in installed), len(sys.path))


class _KnownModules(MetaPathFinder):
    """Modules by name: the file of each, or the folder of a package as in `Access`."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = paths

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the protocol of finders
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return where a known module is loaded from."""
        if fullname not in self._paths:
            return None
        path_text = self._paths[fullname]
        if path_text.endswith("/"):
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [path_text]
            return spec
        file = Path(path_text)
        if file.name.startswith("__init__."):
            return spec_from_file_location(
                fullname, file, submodule_search_locations=[str(file.parent)]
            )
        return spec_from_file_location(fullname, file)
