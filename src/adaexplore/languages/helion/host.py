"""Helion on the machine of the candidates: checks of its presence and of its PyTorch version.

Pins `helion.kernel` and `BoundKernel.to_triton_code`.
"""

from __future__ import annotations

import contextlib
import importlib
import runpy
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from adaexplore.core.text.headline import headline

_TRIAL = """
import torch
import helion
import helion.language as hl

@helion.kernel(config=helion.Config(block_sizes=[128]))
def twice(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = 2 * x[tile]
    return out
"""


def lacking() -> str | None:
    """Return the missing requirement of Helion and its remedy; None if nothing lacks."""
    missing = [name for name in ("helion", "triton") if find_spec(name) is None]
    if missing:
        names = " and ".join(missing)
        return f"{names} cannot be imported; pip install {' '.join(missing)}"
    return None


def load() -> None:
    """Import Helion, which takes seconds; `try_generating` reports a failing import."""
    with contextlib.suppress(Exception):
        importlib.import_module("helion")


def try_generating(request: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - job signature
    """Run a job: generate the Triton code of a kernel with Helion, which takes no GPU.

    Returns Helion's version in "versions"; "unusable" is the reason of a failure, in one line, or
    "".
    """
    import torch

    installed = version("helion")
    file = Path("helion_trial.py")  # Helion reads a kernel's source in its file
    file.write_text(_TRIAL)
    try:
        trial = runpy.run_path(str(file))
        trial["twice"].bind((torch.empty(1024, device="meta"),)).to_triton_code()
    except Exception as error:  # noqa: BLE001 - a version for another PyTorch raises anything
        reason = headline(f"{type(error).__name__}: {error}")
        both = f"Helion {installed} does not work with torch {torch.__version__}"
        return {"unusable": f"{both}; install a version for it ({reason})", "versions": {}}
    return {"unusable": "", "versions": {"helion": installed}}
