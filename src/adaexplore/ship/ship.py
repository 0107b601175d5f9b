"""The winner of a run as an installable package, tried in a process of its own."""

from __future__ import annotations

import dataclasses
import keyword
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.errors import BadInputError
from adaexplore.core.version import __version__
from adaexplore.package.describe import describe_kernel
from adaexplore.package.files import write_spec
from adaexplore.runtime.spec import Spec
from adaexplore.sandbox.lock import device_lock
from adaexplore.ship.hub import refuse_compiled, write_hub
from adaexplore.ship.trial import FailedTrialError, Trial, place_of_trial, run_trial
from adaexplore.ship.winner import ShippedKernel, winner_of
from adaexplore.ship.write import package_name, write_package, write_verdicts

UNLICENSED = "LicenseRef-Proprietary"
_REQUIRED = {"torch", "triton"}


@dataclass(frozen=True, slots=True)
class Shipped:
    """A written package: its folder, its specification, and its trial."""

    folder: Path
    spec: Spec
    trial: Trial


def ship(
    run: Path,
    folder: Path,
    *,
    name: str = "",
    license_name: str = UNLICENSED,
    hub: Path | None = None,
) -> Shipped:
    """Write the winner of a run as a package to a new folder.

    With `hub`, also to another new folder, in the layout of Hugging Face's `kernels`.

    The package is tried before it is there: right on its workloads, on variations of their inputs,
    and with weights that change under it. Raises `BadInputError` where that fails, and for a run
    that claims no kernel.
    """
    for new in filter(None, (folder, hub)):
        if new.is_dir() and any(new.iterdir()):
            raise BadInputError(f"{new} is not empty; give a new folder")
        if new.exists() and not new.is_dir():
            raise BadInputError(f"{new} is a file; give a new folder")
    winner = winner_of(run)
    if hub:
        refuse_compiled(winner.source)
    name = name or package_name(winner.problem.name)
    if not name.isidentifier():
        raise BadInputError(f"--name {name}: no name of a Python package; use letters, digits, _")
    if keyword.iskeyword(name) or name in sys.stdlib_module_names | _REQUIRED:
        raise BadInputError(f"--name {name}: Python or torch has this name; give another")
    if not license_name.strip():
        raise BadInputError("--license is empty; give an SPDX identifier, or leave it out")
    with tempfile.TemporaryDirectory(prefix="adaexplore-ship-") as scratch:
        built = Path(scratch) / "package"
        described = describe_kernel(
            winner.problem, winner.source, name, Path(scratch), winner.times_us
        )
        for layer in (cut.layers[0] for cut in described.spec.cuts):
            if not layer.code and not layer.library:
                raise BadInputError(
                    f"{run}: the source of {layer.kind} is not known, so no package can tell its "
                    "forward from another; define the class in a file"
                )
        home = write_package(
            winner, described, built, license_name=license_name, package_version=__version__
        )
        spec, trial = _tried(winner, described.spec, built, home)
        write_verdicts(winner, trial, built)
        try:
            shutil.copytree(built, folder, dirs_exist_ok=True)
        except OSError as error:
            raise BadInputError(f"cannot write {folder}: {error.strerror or error}") from error
    if hub:
        write_hub(folder, spec, hub, license_name)
    return Shipped(folder, spec, trial)


def _tried(winner: ShippedKernel, spec: Spec, folder: Path, home: Path) -> tuple[Spec, Trial]:
    """Return the trial of a package, which makes a new candidate at each call if it must."""
    first = _trial(winner, folder, spec)
    if first.error <= spec.error:
        return spec, first
    fresh = dataclasses.replace(spec, fresh=True)
    write_spec(fresh, home)
    trial = _trial(winner, folder, spec)
    if trial.error > spec.error:
        gradients = "its gradients are wrong, or " if spec.backward else ""
        raise BadInputError(
            f"{winner.problem.name}: the winner is wrong by {first.error:.1e} on other inputs or "
            f"other weights than its constructor had (allowed: {spec.error:.1e}); {gradients}it "
            "keeps values that it computed from weights, so search again"
        )
    if trial.speedup < 1:
        raise BadInputError(
            f"{winner.problem.name}: the winner keeps values that it computed from weights; "
            f"computed at every call, its speedup is {trial.speedup:.2f}x; search again"
        )
    return fresh, trial


def _trial(winner: ShippedKernel, folder: Path, spec: Spec) -> Trial:
    try:
        with device_lock(place_of_trial(spec.device), exclusive=True):
            return run_trial(folder, spec.name)
    except FailedTrialError as error:
        raise BadInputError(
            f"{winner.problem.name}: the kernel fails when it is tried: {error}"
        ) from error
