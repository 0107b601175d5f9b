"""A script, run as `python FILE` would run it, in a worker's process of its own."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from hashlib import sha256
from pathlib import Path
from typing import Any

_TOLD = 400
"""Characters of an error that are told."""


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Run the source of {"source", "name", "on_gpu"} as a program; a job (see `sandbox.jobs`).

    Returns {"why", "printed"}: `why` says in one line how it failed, and is empty where it came to
    its end; `printed` is the sha256 of all that it printed on its standard output.
    """
    file = Path.cwd() / request["name"]
    file.write_text(request["source"], encoding="utf-8")
    output = Path.cwd() / "printed"
    sys.argv = [str(file)]
    if request["on_gpu"]:
        _see_the_gpu()
    with output.open("wb") as sink:
        kept = os.dup(1)
        os.dup2(sink.fileno(), 1)
        try:
            why = _run(file)
            sys.stdout.flush()
        finally:
            os.dup2(kept, 1)
    return {"why": why, "printed": sha256(output.read_bytes()).hexdigest()}


def _see_the_gpu() -> None:
    """Initialize CUDA: before that, PyTorch asks a library that sees no GPU in a confined process.

    Triton finds no driver then.
    """
    import torch  # only here: a script on the CPU may do without

    torch.cuda.init()  # type: ignore[no-untyped-call]


def _run(file: Path) -> str:
    try:
        runpy.run_path(str(file), run_name="__main__")
    except SystemExit as end:
        return "" if end.code in (None, 0) else f"it exited with {end.code}"[:_TOLD]
    except BaseException as error:  # noqa: BLE001 - the script's, which has no types in common
        return traceback.format_exception_only(error)[-1].strip().splitlines()[0][:_TOLD]
    return ""
