"""The files of a package."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from adaexplore.core.errors import BadInputError
from adaexplore.core.version import __version__
from adaexplore.ship.describe import Described
from adaexplore.ship.package.spec import Spec
from adaexplore.ship.trial import Trial
from adaexplore.ship.winner import Winner

_HERE = Path(__file__).parent
_RUNTIME = (
    "benchmark",
    "compare",
    "guards",
    "inputs",
    "kernel",
    "loaded",
    "ops",
    "refusals",
    "replace",
    "spec",
    "timing",
    "verify",
)
"""Modules of `package` that are copied, beside `api`, which becomes `__init__`."""

VERDICTS = "verdicts.json"


def write_package(
    winner: Winner, described: Described, folder: Path, *, license_name: str, package_version: str
) -> Path:
    """Write the package of a winner to a new folder, and return that of its Python package."""
    spec = described.spec
    home = folder / "src" / spec.name
    try:
        home.mkdir(parents=True)
        (folder / "tests").mkdir()
    except OSError as error:
        raise BadInputError(f"cannot write {folder}: {error.strerror}") from error
    runtime = _HERE / "package"
    _copy(runtime / "api.py", home / "__init__.py")
    for name in _RUNTIME:
        _copy(runtime / f"{name}.py", home / f"{name}.py")
    _copy(_HERE.parent / "problems" / "interface.py", home / "interface.py")
    _copy(_HERE / "package_tests" / "checks.py", folder / "tests" / "test_kernel.py", spec.name)
    (home / "original.py").write_text(winner.problem.source, encoding="utf-8")
    (home / "winner.py").write_text(winner.source, encoding="utf-8")
    (home / "py.typed").touch()
    for workload in winner.problem.workloads:
        if workload.file:
            shutil.copyfile(workload.file, home / Path(workload.file).name)
    if described.constants:
        torch.save(dict(described.constants), home / "constants.pt")
    write_spec(spec, home)
    for file, text in _texts(winner, spec, license_name, package_version):
        (folder / file).write_text(text, encoding="utf-8")
    return home


def write_spec(spec: Spec, home: Path) -> None:
    """Write the specification of a package."""
    _write_json(home / "spec.json", spec.to_json())


def write_verdicts(winner: Winner, trial: Trial, folder: Path) -> None:
    """Write the verdict of the judge, and the trial of the package."""
    _write_json(folder / VERDICTS, {**winner.verdicts(), "trial": trial.to_json()})


def package_name(name: str) -> str:
    """Return the name of a package for the name of a problem."""
    plain = re.sub(r"\W+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).strip("_").lower()
    return f"{plain}_kernel" if plain[:1].isalpha() else f"kernel_{plain}"


def _copy(source: Path, target: Path, name: str = "") -> None:
    """Copy a module into a package, with its imports from the package by name, or relative."""
    text = source.read_text(encoding="utf-8")
    for prefix in ("adaexplore.problems.", "adaexplore.ship.package."):
        text = text.replace(prefix, f"{name}.")
    text = text.replace("adaexplore.ship.package", name or ".")
    target.write_text(text, encoding="utf-8")


def _write_json(file: Path, data: Mapping[str, object]) -> None:
    file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def _texts(
    winner: Winner, spec: Spec, license_name: str, package_version: str
) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file that is made from a template."""
    values = {
        "winner": winner,
        "spec": spec,
        "license": license_name,
        "version": package_version,
        "adaexplore": __version__,
        "place": winner.environment.gpu or winner.environment.cpu or spec.device,
        "needs": json.dumps(list(_needs(winner, spec))),
    }
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=False,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
    )
    for name in ("pyproject.toml", "README.md"):
        yield name, environment.get_template(f"{name}.j2").render(values)


def _needs(winner: Winner, spec: Spec) -> Iterator[str]:
    """Yield the requirements of a package."""
    yield f"torch>={_minor(spec.torch)}"
    if "triton" in winner.source:
        yield f"triton>={_minor(spec.triton)}"
    if winner.problem.language in ("cpp", "cuda"):
        yield from ("setuptools", "ninja")


def _minor(version: str) -> str:
    return ".".join(version.split("+")[0].split(".")[:2])
