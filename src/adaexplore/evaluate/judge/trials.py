"""Trials of the baselines on a GPU, side by side in processes of their own, and kept on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import torch

from adaexplore.core.problem import Problem
from adaexplore.evaluate.judge.environment import triton_version
from adaexplore.evaluate.kernels.build.compile_cache import share_compiled
from adaexplore.evaluate.timing.baselines_trial import TRIAL, Trial
from adaexplore.evaluate.timing.compiling import TOO_LONG
from adaexplore.evaluate.wire import codec
from adaexplore.sandbox.jobs import run_job
from adaexplore.sandbox.process import ForkServer, WorkerDiedError

COMPILE_S = 300.0
"""Seconds that Inductor may take for one baseline."""

_ABREAST = 3
_WAITING_S = 300.0  # for the device, and for memory to be filled
_FORM = "1"  # of the files, and of the way in which baselines are built


def try_baselines(
    server: ForkServer, problem: Problem, names: Sequence[str], compile_s: float = COMPILE_S
) -> list[Trial]:
    """Try each of these baselines on a problem, or read what earlier trials on this GPU found."""
    kept = _file(problem)
    known = _read(kept) if kept else {}
    missing = [name for name in names if name not in known]

    def attempt(name: str) -> Trial:
        return _attempt(server, problem, name, compile_s)

    with ThreadPoolExecutor(_ABREAST) as threads:
        known |= {trial.baseline: trial for trial in threads.map(attempt, missing)}
    if kept and missing:
        _write(kept, [trial for trial in known.values() if trial.lasts])
    return [known[name] for name in names]


def _attempt(server: ForkServer, problem: Problem, name: str, compile_s: float) -> Trial:
    request = {"problem": problem.to_json(), "baseline": name, "limit_s": compile_s}
    try:
        return codec.read(Trial, run_job(server, TRIAL, request, compile_s + _WAITING_S))
    except TimeoutError:
        return Trial(name, why="the device was busy, or a call hangs", lasts=False)
    except WorkerDiedError as error:
        if error.status == TOO_LONG:
            return Trial(name, why=f"it is not compiled after {compile_s:g} s")
        lines = error.log.strip().splitlines()
        return Trial(name, why=f"its process ended: {lines[-1] if lines else error}")


def _file(problem: Problem) -> Path | None:
    """Return the file of a problem's trials; None where candidates could write to it.

    Its name is the hash of all that decides their outcome.
    """
    folder = share_compiled()
    if folder is None:
        return None
    cudnn = str(torch.backends.cudnn.version())  # type: ignore[no-untyped-call]
    versions = [torch.__version__, str(torch.version.cuda), triton_version(), cudnn]
    parts = [_FORM, problem.digest, _model_of(problem.device), *versions]
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return folder / "baselines" / f"{name}.json"


def _model_of(device: str) -> str:
    return device if device == "cpu" else torch.cuda.get_device_properties(device).name


def _read(file: Path) -> dict[str, Trial]:
    """Return the trials in a file by baseline; none where it is not there or damaged."""
    try:
        kept = [codec.read(Trial, each) for each in json.loads(file.read_text(encoding="utf-8"))]
    except (OSError, ValueError):
        return {}
    return {trial.baseline: trial for trial in kept}


def _write(file: Path, trials: Sequence[Trial]) -> None:
    """Write the trials; the file is complete at every moment."""
    file.parent.mkdir(mode=0o700, exist_ok=True)
    draft = file.with_suffix(f".{id(trials)}.new")
    draft.write_text(json.dumps([asdict(trial) for trial in trials], indent=1), encoding="utf-8")
    draft.replace(file)
