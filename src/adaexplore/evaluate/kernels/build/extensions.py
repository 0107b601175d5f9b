"""Build of a candidate's extensions before the candidate gets the GPU.

Compiling a C++ or CUDA extension takes seconds to minutes, and no GPU. So the candidate is
imported, constructed and called on tensors without data in a child of its process, which sees no
GPU either. The extensions lie in the candidate's own folder, where PyTorch finds them again and
compiles nothing. Only a failing build is reported here: the real call reports any other failure.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
import traceback
from pathlib import Path
from typing import IO

from adaexplore.core import codec
from adaexplore.evaluate.kernels.ahead import call_without_data, stand_back, target_for
from adaexplore.evaluate.wire.faults import BUILD_FAILED, describe
from adaexplore.evaluate.wire.messages import Build, Raised
from adaexplore.sandbox.family import children

BUILD_S = 300.0
"""Time limit for building a candidate's extensions."""

_IDLE_S = 10.0  # after this time without a compiler, the child will start none


class BuildFailedError(Exception):
    """A build failed in the child; `raised` describes the exception."""

    def __init__(self, raised: Raised) -> None:
        self.raised = raised
        super().__init__(raised.message)


def build_ahead(request: Build) -> None:
    """Build the extensions of a candidate.

    Raises `BuildFailedError`. The process must not have used CUDA yet.
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
        failure = report.read()
    if failure:
        raise BuildFailedError(codec.read(Raised, json.loads(failure)))


def _build(request: Build, report: IO[bytes]) -> None:
    stand_back()
    try:
        call_without_data(request, target_for(request.capability))
    except Exception as error:  # noqa: BLE001 - the real call reports it
        if BUILD_FAILED in "".join(traceback.format_exception(error)):
            report.write(json.dumps(codec.write(describe(error, Path.cwd()))).encode())
            report.flush()


def _wait(pid: int) -> None:
    """Wait for the child to end; kill it once it has run no compiler for `_IDLE_S`.

    It is not killed while a compiler runs, because PyTorch's lock on the extension would stay.
    """
    until = time.monotonic() + _IDLE_S
    while not os.waitpid(pid, os.WNOHANG)[0]:
        if children(pid):
            until = time.monotonic() + _IDLE_S
        elif time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
