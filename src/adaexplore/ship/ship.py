"""The winner of a run as an installable package, tried in a process of its own."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.core.version import __version__
from adaexplore.ship.describe import describe_winner
from adaexplore.ship.package.spec import Spec
from adaexplore.ship.winner import Winner, winner_of
from adaexplore.ship.write import package_name, write_package, write_spec

UNLICENSED = "LicenseRef-Proprietary"


@dataclass(frozen=True, slots=True)
class Shipped:
    """A written package: its folder, its specification, and its largest error when it was tried."""

    folder: Path
    spec: Spec
    error: float


def ship(run: Path, folder: Path, *, name: str = "", license_name: str = UNLICENSED) -> Shipped:
    """Write the winner of a run as a package to a new folder.

    The package is tried before it is there: right on its workloads, on variations of their inputs,
    and with weights that change under it. Raises `BadInputError` where that fails, and for a run
    that claims no kernel.
    """
    if folder.exists() and any(folder.iterdir()):
        raise BadInputError(f"{folder} is not empty; give a new folder")
    winner = winner_of(run)
    name = name or package_name(winner.problem.name)
    if not name.isidentifier():
        raise BadInputError(f"--name {name}: no name of a Python package; use letters, digits, _")
    with tempfile.TemporaryDirectory(prefix="adaexplore-ship-") as scratch:
        built = Path(scratch) / "package"
        described = describe_winner(winner, name, Path(scratch))
        home = write_package(
            winner, described, built, license_name=license_name, package_version=__version__
        )
        shipped = _tried(winner, described.spec, built, home)
        shutil.copytree(
            built, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    return dataclasses.replace(shipped, folder=folder)


def run_verify(folder: Path, name: str, options: Sequence[str] = ()) -> Mapping[str, Any]:
    """Run the package's verification in a process of its own, and return what it found.

    Raises `BadInputError`, with the last line of its error, where it ends without a result.
    """
    paths = [str(folder.resolve() / "src"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", f"{name}.verify", *options],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        cwd=folder,
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise BadInputError(f"{folder}: the kernel fails when it is tried: {last}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _tried(winner: Winner, spec: Spec, folder: Path, home: Path) -> Shipped:
    """Return the package, which has a new candidate at each call if its winner keeps values."""
    error = _error(run_verify(folder, spec.name, ["--no-times"]))
    if error <= spec.error:
        return Shipped(folder, spec, error)
    fresh = dataclasses.replace(spec, fresh=True)
    write_spec(fresh, home)
    found = run_verify(folder, spec.name)
    if _error(found) > spec.error:
        raise BadInputError(
            f"{winner.problem.name}: the winner is wrong by {error:.1e} on other inputs or other "
            "weights than its constructor had (allowed: "
            f"{spec.error:.1e}); it keeps values that it computed from weights, so search again"
        )
    for workload, each in zip(fresh.workloads, found["workloads"], strict=True):
        time_us = each["times"]["kernel_us"] if each["times"] else 0.0
        if time_us > workload.baseline_us > 0:
            raise BadInputError(
                f"{winner.problem.name}: the winner keeps values that it computed from weights; "
                f"computed at every call, it takes {time_us:.0f} us on {workload.name}, more than "
                f"the {workload.baseline_us:.0f} us of the strongest baseline"
            )
    return Shipped(folder, fresh, _error(found))


def _error(found: Mapping[str, Any]) -> float:
    return max(float(each["error"]) for each in found["workloads"])
