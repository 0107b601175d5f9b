"""A package, verified and timed again with the torch, the Triton and the device of today."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from adaexplore.core.errors import BadInputError
from adaexplore.runtime.spec import Spec, gpu_of
from adaexplore.sandbox.lock import device_lock
from adaexplore.ship.trial import LIMIT_S, FailedTrialError, Trial, place_of_trial, run_trial
from adaexplore.ship.write import VERDICTS


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim about a workload, and the words that tell how it failed, empty where it holds."""

    workload: str
    claim: str
    failure: str


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings about a package.

    `today` is None where the package gave no result; `failure` is the last line of its error then.
    """

    name: str
    allowed_error: float
    tolerance: float
    shipped: Trial
    today: Trial | None
    failure: str = ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The claims that the outputs are right, and that the speedup is still there."""
        return tuple(self._findings())

    @property
    def is_good(self) -> bool:
        """Return whether every claim holds."""
        return not any(each.failure for each in self.findings)

    def __str__(self) -> str:
        """Return the result in one line."""
        failures = [f"{f.workload}: {f.failure}" for f in self.findings if f.failure]
        if failures or self.today is None:
            return f"{self.name}: FAILED; {'; '.join(failures)}"
        return (
            f"{self.name}: good; error {self.today.error:.1e}, speedup {self.today.speedup:.2f}x "
            f"(shipped with {self.shipped.speedup:.2f}x); {_versions(self.today)}"
        )

    def _findings(self) -> Iterator[Finding]:
        if self.today is None:
            for then in self.shipped.workloads:
                yield Finding(then.workload, "runs", self.failure)
            return
        for then, now in zip(self.shipped.workloads, self.today.workloads, strict=True):
            wrong = f"error {now.error:.1e}, allowed {self.allowed_error:.1e}"
            is_right = now.error <= self.allowed_error
            yield Finding(now.workload, "is right", "" if is_right else wrong)
            slow = (
                f"speedup {now.speedup:.2f}x, shipped with {then.speedup:.2f}x, "
                f"tolerance {self.tolerance:.0%}"
            )
            is_fast = now.speedup >= (1 - self.tolerance) * then.speedup
            yield Finding(now.workload, "is fast", "" if is_fast else slow)


def check(folder: Path, *, tolerance: float, limit_s: float = LIMIT_S) -> Checked:
    """Verify and time a package again; `tolerance` is the part of the speedup that may be lost.

    A package without a result after `limit_s` seconds does not run.

    Raises `BadInputError` for a folder that is no package or a damaged one, and on a machine
    without its GPU.
    """
    found = sorted(folder.glob("src/*/spec.json"))
    if not found or not (folder / VERDICTS).is_file():
        raise BadInputError(f"{folder}: no package of adaexplore ship")
    with _damage(found[0]):
        spec = Spec.read(found[0].parent)
    _refuse_other_gpu(folder, spec)
    with _damage(folder / VERDICTS) as verdicts:
        shipped = Trial.from_json(json.loads(verdicts.read_text(encoding="utf-8"))["trial"])
    try:
        with device_lock(place_of_trial(spec.device), exclusive=True):
            today = run_trial(folder, spec.name, limit_s)
    except FailedTrialError as error:
        return Checked(spec.name, spec.error, tolerance, shipped, None, str(error))
    return Checked(spec.name, spec.error, tolerance, shipped, today)


@contextmanager
def _damage(file: Path) -> Iterator[Path]:
    """Refuse a file whose reading, the body, raises: it is not as `adaexplore ship` wrote it."""
    try:
        yield file
    except (ValueError, LookupError, TypeError) as error:
        raise BadInputError(
            f"{file} is damaged; make the package again: adaexplore ship"
        ) from error


def _refuse_other_gpu(folder: Path, spec: Spec) -> None:
    if spec.device == "cpu":
        return
    here = gpu_of(torch.device(spec.device)) if torch.cuda.is_available() else ""
    if here != spec.gpu:
        raise BadInputError(
            f"{folder}: needs a GPU of compute capability {spec.gpu}, here is {here or 'none'}"
        )


def _versions(trial: Trial) -> str:
    named = {"torch": trial.torch, "Triton": trial.triton, "GPU": trial.gpu}
    return ", ".join(f"{name} {version}" for name, version in named.items() if version)
