"""The files of a package: the runtime, the original, the candidate, and what they read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch

from adaexplore.package.describe import Described
from adaexplore.runtime.spec import Spec

_RUNTIME = Path(__file__).parent.parent / "runtime"
_TESTS = Path(__file__).parent / "checks.py"


def write_python_package(described: Described, home: Path) -> None:
    """Write the Python package of a kernel to a folder that is there."""
    for file in _RUNTIME.glob("*.py"):
        if file.stem != "__init__":
            _copy(file, home / ("__init__.py" if file.stem == "api" else file.name))
    (home / "original.py").write_text(described.problem.source, encoding="utf-8")
    (home / "winner.py").write_text(described.source, encoding="utf-8")
    (home / "py.typed").touch()
    for workload in described.problem.workloads:
        if workload.file:
            shutil.copyfile(workload.file, home / Path(workload.file).name)
    if described.constants:
        torch.save(dict(described.constants), home / "constants.pt")
    write_spec(described.spec, home)


def write_spec(spec: Spec, home: Path) -> None:
    """Write the specification of a package."""
    write_json(home / "spec.json", spec.to_json())


def write_tests(spec: Spec, file: Path) -> None:
    """Write the tests of a package, which import it by its name."""
    _copy(_TESTS, file, spec.name)


def write_json(file: Path, data: Mapping[str, object]) -> None:
    """Write plain data."""
    file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def _copy(source: Path, target: Path, name: str = "") -> None:
    """Copy a module into a package, with its imports from the package by name, or relative."""
    text = source.read_text(encoding="utf-8")
    text = text.replace("adaexplore.runtime.", f"{name}.")
    text = text.replace("adaexplore.runtime", name or ".")
    target.write_text(text, encoding="utf-8")
