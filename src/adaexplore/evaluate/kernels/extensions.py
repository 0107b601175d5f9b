"""Building a candidate's extensions before it is given the GPU.

A C++ or CUDA extension takes compilers seconds to minutes, and no GPU. So the candidate is
imported, constructed and called on tensors without data in a child of its process, which sees no
GPU either. What that builds lies in the candidate's own folder, where PyTorch finds it again and
compiles nothing. Only a failing build is told: whatever else goes wrong is left for the real call.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
import traceback
from pathlib import Path
from typing import IO, Any

from adaexplore.evaluate.kernels.ahead import call_without_data, stand_back, target_for
from adaexplore.evaluate.wire.faults import BUILD_FAILED, describe
from adaexplore.sandbox.family import children

BUILD_S = 300.0
"""How long a candidate's extensions may take to build."""

_IDLE_S = 10.0  # who has had no compiler at work for so long will start none


def build_ahead(request: dict[str, Any]) -> dict[str, Any]:
    """Builds the extensions of the candidate of a request, which is as for `compile_ahead`.

    Returns {}, or the reply that tells of the build that failed. The process must not have used
    CUDA yet.
    """
    with tempfile.TemporaryFile() as report:
        pid = os.fork()
        if pid == 0:
            try:
                _build(request, report)
            finally:
                os._exit(0)
        _wait(pid)
        report.seek(0)
        said = report.read()
    reply: dict[str, Any] = json.loads(said) if said else {}
    return reply


def _build(request: dict[str, Any], report: IO[bytes]) -> None:
    stand_back()
    try:
        call_without_data(request, target_for(request["capability"]))
    except Exception as error:  # noqa: BLE001 - the real call will say it
        if BUILD_FAILED in "".join(traceback.format_exception(error)):
            report.write(json.dumps({"raised": describe(error, Path.cwd())}).encode())
            report.flush()


def _wait(pid: int) -> None:
    """Until the child has ended; it is ended when it has no compilers at work for a while.

    Never while there are any: PyTorch's lock on what they build would stay.
    """
    until = time.monotonic() + _IDLE_S
    while not os.waitpid(pid, os.WNOHANG)[0]:
        if children(pid):
            until = time.monotonic() + _IDLE_S
        elif time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
