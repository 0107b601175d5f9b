"""The spec of this very package, read once."""

from __future__ import annotations

from pathlib import Path

from adaexplore.runtime.spec import Spec, versions

HERE = Path(__file__).parent
SPEC = Spec.read(HERE)


def versions_in_words() -> str:
    """Return the versions that the kernel was verified with, and those of today."""
    torch, triton = versions()
    verified = f"torch {SPEC.torch}" + (f" and Triton {SPEC.triton}" if SPEC.triton else "")
    today = f"torch {torch}" + (f" and Triton {triton}" if triton else "")
    return f"it was verified with {verified}; here are {today}"
