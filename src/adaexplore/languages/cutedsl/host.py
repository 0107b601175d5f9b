"""CuTe DSL on the machine of the candidates: checks of its presence and a trial compilation."""

from __future__ import annotations

import contextlib
import importlib
import runpy
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from adaexplore.core.text.headline import headline

_PACKAGES = ("nvidia-cutlass-dsl", "apache-tvm-ffi")  # the second takes PyTorch's tensors
_TRIAL = """
import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import make_fake_compact_tensor

@cute.kernel
def twice(x: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    x[i] = x[i] * 2.0

@cute.jit
def launch(x: cute.Tensor):
    twice(x).launch(grid=[1, 1, 1], block=[128, 1, 1])

x = make_fake_compact_tensor(cutlass.Float32, (128,))
cute.compile(launch, x, options="--enable-tvm-ffi --gpu-arch " + ARCH)
"""


def lacking() -> str | None:
    """Return the missing requirement of CuTe DSL and its remedy; None if nothing lacks."""
    missing = [package for package in _PACKAGES if not _version(package)]
    if not missing:
        return None
    lacks = "is" if len(missing) == 1 else "are"
    return f"{' and '.join(missing)} {lacks} not installed; pip install {' '.join(missing)}"


def load() -> None:
    """Import CuTe DSL, which takes seconds; `try_compiling` reports a failing import."""
    with contextlib.suppress(Exception):
        importlib.import_module("cutlass.cute.runtime")


def try_compiling(request: dict[str, Any]) -> dict[str, Any]:
    """Run a job: compile a kernel for the compute capability in `request` (such as "9.0").

    It takes no GPU. Returns the package's version in "versions"; "unusable" is the reason of a
    failure, in one line, or "".
    """
    installed = _version(_PACKAGES[0])
    file = Path("cutedsl_trial.py")  # a kernel's source is read in its file
    file.write_text(_TRIAL)
    target = f"sm_{request.get('compute_capability', '').replace('.', '') or '90'}"
    try:
        runpy.run_path(str(file), {"ARCH": architecture(target)})
    except Exception as error:  # noqa: BLE001 - a version for another machine raises anything
        reason = headline(f"{type(error).__name__}: {error}")
        return {
            "unusable": f"CuTe DSL {installed} does not compile for {target}: {reason}",
            "versions": {},
        }
    return {"unusable": "", "versions": {"cutedsl": installed}}


def architecture(target: str) -> str:
    """Return the architecture with all instructions of a target such as "sm_90"."""
    return f"{target}a" if int(target.removeprefix("sm_")) >= 90 else target


def _version(package: str) -> str:
    """Return a package's version; empty if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
