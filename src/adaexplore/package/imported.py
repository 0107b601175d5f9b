"""A kernel for models that are alive in this process: its package, imported and tried."""

from __future__ import annotations

import copyreg
import hashlib
import importlib
import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.package.describe import Described
from adaexplore.package.files import write_python_package
from adaexplore.problems.optimized import own_randomness
from adaexplore.runtime import cuts


def import_kernel(described: Described, folder: Path) -> ModuleType:
    """Write the package of a kernel below a folder, and return it, imported and tried.

    It must be a kernel that the judge has verified: it runs in this process. A kernel that keeps
    values from its first call is built anew at every call. Raises `BadInputError` for one that is
    wrong with other weights than it was built with.
    """
    spec = described.spec
    package = _imported(described, folder)
    error = _error_of(package)
    if error > spec.error:
        package = _imported(replace(described, spec=replace(spec, fresh=True)), folder)
        if _error_of(package) > spec.error:
            raise BadInputError(
                f"{described.problem.name}: the kernel is wrong by {error:.1e} on other inputs or "
                f"other weights than it was built with (allowed: {spec.error:.1e})"
            )
    return package


def _imported(described: Described, folder: Path) -> ModuleType:
    """Import a package by a name of its own: the same kernel in the same place is one package."""
    spec = described.spec
    home = folder.resolve() / (f"{spec.namespace}_fresh" if spec.fresh else spec.namespace)
    name = f"{home.name}_{hashlib.sha256(str(home).encode()).hexdigest()[:8]}"
    home.mkdir(parents=True, exist_ok=True)
    write_python_package(replace(described, spec=replace(spec, namespace=name)), home)
    return _package_at(home, name)


def _package_at(home: Path, name: str) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    found = importlib.util.spec_from_file_location(
        name, home / "__init__.py", submodule_search_locations=[str(home)]
    )
    if found is None or found.loader is None or not (home / "__init__.py").is_file():
        raise BadInputError(
            f"{home}: has the kernels of this model no more; call undo() of the result before the "
            "model is stored, or ship the kernels as packages"
        )
    package = importlib.util.module_from_spec(found)
    sys.modules[name] = package
    sys.modules[f"{name}.cuts"] = cuts  # a name by which pickles find it in other processes
    try:
        found.loader.exec_module(package)
    except BaseException:
        del sys.modules[name]
        raise
    _let_pickles_find(package, home)
    return package


def _let_pickles_find(package: ModuleType, home: Path) -> None:
    """Let pickles of a model import the package again, in another process by its folder."""
    kind = importlib.import_module(f"{package.__name__}.replace").Forward
    place = (str(home), package.__name__)
    copyreg.pickle(kind, lambda forward: (_forward_again, place, forward.__getstate__()))


def _forward_again(home: str, name: str) -> Any:
    """Return a forward whose state may be unpickled."""
    _package_at(Path(home), name)
    kind = sys.modules[f"{name}.replace"].Forward
    return kind.__new__(kind)


def _error_of(package: ModuleType) -> float:
    """Return the largest error on all workloads, on variations of them, and with other weights."""
    verify = importlib.import_module(f"{package.__name__}.verify")
    with own_randomness():
        return max(float(verify.error_of(workload)) for workload in package.SPEC.workloads)
