"""The files of a package."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from adaexplore.core.errors import BadInputError
from adaexplore.core.version import __version__
from adaexplore.package.describe import Described
from adaexplore.package.files import write_json, write_python_package, write_tests
from adaexplore.runtime.spec import Spec
from adaexplore.ship.trial import Trial
from adaexplore.ship.winner import ShippedKernel

_HERE = Path(__file__).parent
VERDICTS = "verdicts.json"


def write_package(
    winner: ShippedKernel,
    described: Described,
    folder: Path,
    *,
    license_name: str,
    package_version: str,
) -> Path:
    """Write the package of a winner to a new folder, and return that of its Python package."""
    spec = described.spec
    home = folder / "src" / spec.name
    try:
        home.mkdir(parents=True)
        (folder / "tests").mkdir()
    except OSError as error:
        raise BadInputError(f"cannot write {folder}: {error.strerror}") from error
    write_python_package(described, home)
    write_tests(spec, folder / "tests" / "test_kernel.py")
    for file, text in _texts(winner, spec, license_name, package_version):
        (folder / file).write_text(text, encoding="utf-8")
    return home


def write_verdicts(winner: ShippedKernel, trial: Trial, folder: Path) -> None:
    """Write the verdict of the judge, and the trial of the package."""
    write_json(folder / VERDICTS, {**winner.verdicts(), "trial": trial.to_json()})


def package_name(name: str) -> str:
    """Return the name of a package for the name of a problem."""
    plain = re.sub(r"\W+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).strip("_").lower()
    return f"{plain}_kernel" if plain[:1].isalpha() else f"kernel_{plain}"


def _texts(
    winner: ShippedKernel, spec: Spec, license_name: str, package_version: str
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


def _needs(winner: ShippedKernel, spec: Spec) -> Iterator[str]:
    """Yield the requirements of a package."""
    yield f"torch>={_minor(spec.torch)}"
    if "triton" in winner.source:
        yield f"triton>={_minor(spec.triton)}"
    if winner.problem.language in ("cpp", "cuda"):
        yield from ("setuptools", "ninja")


def _minor(version: str) -> str:
    return ".".join(version.split("+")[0].split(".")[:2])
