"""Trials of the baselines on a GPU, side by side in processes of their own, and kept on disk."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch

from adaexplore.core import codec
from adaexplore.core.problem import Problem
from adaexplore.evaluate.kernels.build.compile_cache import share_compiled
from adaexplore.evaluate.timing.baselines.compiling import TOO_LONG
from adaexplore.evaluate.timing.baselines.trial import TRIAL, BaselineTrial
from adaexplore.evaluate.timing.environment import triton_version
from adaexplore.evaluate.truth.device_memory.room import room_on, wait_for_room
from adaexplore.sandbox.cores import measuring
from adaexplore.sandbox.lock import device_lock
from adaexplore.sandbox.process import ForkServer, Worker, WorkerDiedError

COMPILE_S = 300.0
"""Seconds that Inductor may take for one baseline."""

_ABREAST = 3
_WAITING_S = 300.0  # for the device, and for memory to be filled
_TIMING_S = 120.0  # of one baseline, which has been called before
_EXCEPTION = re.compile(r"[\w.]*(Error|Exception|Interrupt|Iteration|Exit)\b")
_FORM = "5"  # of the files, and of the way in which baselines are built and timed


def try_baselines(
    server: ForkServer, problem: Problem, names: Sequence[str], compile_s: float = COMPILE_S
) -> list[BaselineTrial]:
    """Try each of these baselines on a problem, or read what earlier trials on this GPU found."""
    kept = _file(problem)
    known = _read(kept) if kept else {}
    missing = [name for name in names if name not in known]

    def keep(trials: Sequence[BaselineTrial]) -> None:
        known.update({trial.baseline: trial for trial in trials})
        if kept:
            _write(kept, [trial for trial in known.values() if trial.lasts])

    for start in range(0, len(missing), _ABREAST):
        batch = missing[start : start + _ABREAST]
        keep(_try_together(server, problem, batch, compile_s))
    patient_until = time.monotonic() + _WAITING_S
    for name in missing:
        if known[name].wanted:
            patience_s = patient_until - time.monotonic()
            keep([_try_alone(server, problem, known[name], compile_s, patience_s)])
    return [known[name] for name in names]


def _try_together(
    server: ForkServer, problem: Problem, names: Sequence[str], compile_s: float
) -> list[BaselineTrial]:
    """Build baselines side by side; then time one after the other, while none of them compiles.

    All are timed in one hold of the device: for each hold, those that share it come to rest.
    """
    given = problem.to_json()
    workers = [server.spawn(TRIAL, name="trial") for _ in names]

    def build(worker: Worker, name: str) -> BaselineTrial:
        request = {"problem": given, "baseline": name, "limit_s": compile_s}
        return _asked(worker, name, request, compile_s, compile_s + _WAITING_S)

    def timed(worker: Worker, trial: BaselineTrial) -> BaselineTrial:
        with measuring(worker.pid):
            return _asked(worker, trial.baseline, {}, compile_s, _TIMING_S)

    try:
        with ThreadPoolExecutor(len(names)) as threads:
            built = list(threads.map(build, workers, names))
        if all(trial.why for trial in built):
            return built
        with device_lock(problem.device, exclusive=True):
            pairs = zip(workers, built, strict=True)
            tried = [trial if trial.why else timed(worker, trial) for worker, trial in pairs]
    finally:
        for worker in workers:
            worker.end()
    return tried


def _try_alone(
    server: ForkServer, problem: Problem, trial: BaselineTrial, compile_s: float, patience_s: float
) -> BaselineTrial:
    """Return the outcome of a trial that lacked memory, tried again once there is room."""
    if not wait_for_room(trial.wanted, partial(room_on, problem.device), patience_s):
        return trial
    [again] = _try_together(server, problem, [trial.baseline], compile_s)
    return again


def _asked(
    worker: Worker, name: str, request: Mapping[str, Any], compile_s: float, timeout_s: float
) -> BaselineTrial:
    """Return the worker's reply, or the reason why there is none."""
    try:
        return codec.read(BaselineTrial, worker.call(request, timeout_s))
    except TimeoutError:
        return BaselineTrial(name, why="the device was busy, or a call hangs", lasts=False)
    except WorkerDiedError as error:
        if error.status == TOO_LONG:
            return BaselineTrial(name, why=f"it is not compiled after {compile_s:g} s")
        return BaselineTrial(name, why=f"its process ended: {_reason(error)}", lasts=False)


def _reason(error: WorkerDiedError) -> str:
    """Return the last exception in the log of a process, or else its last line.

    CUDA's exceptions go on with lines of advice.
    """
    lines = error.log.strip().splitlines()
    exceptions = [line for line in lines if _EXCEPTION.match(line)]
    return next(reversed(exceptions or lines), str(error))


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


def _read(file: Path) -> dict[str, BaselineTrial]:
    """Return the trials in a file by baseline; none where it is not there or damaged."""
    try:
        kept = [
            codec.read(BaselineTrial, each) for each in json.loads(file.read_text(encoding="utf-8"))
        ]
    except (OSError, ValueError):
        return {}
    return {trial.baseline: trial for trial in kept}


def _write(file: Path, trials: Sequence[BaselineTrial]) -> None:
    """Write the trials; the file is complete at every moment."""
    file.parent.mkdir(mode=0o700, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}.{threading.get_ident()}.new")
    draft.write_text(json.dumps([asdict(trial) for trial in trials], indent=1), encoding="utf-8")
    draft.replace(file)
