"""The versions of torch and Triton that a run needs, checked without importing either."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

from adaexplore.core.errors import BadInputError

MINIMUM = {"torch": (2, 11), "triton": (3, 6)}
"""The oldest versions that the tests run on; pyproject.toml and README.md state them too."""


def require_versions(*, triton: bool) -> None:
    """Check the installed torch, and Triton where the run needs it or has it.

    Raises `BadInputError` for one that is missing or too old.
    """
    _require("torch")
    if triton or _installed("triton"):
        _require("triton")


def _require(package: str) -> None:
    found, minimum = _installed(package), ".".join(map(str, MINIMUM[package]))
    if not found:
        raise BadInputError(
            f"{package} is not installed: pip install '{package}>={minimum}' (the build that fits "
            "this machine: https://pytorch.org/get-started)"
        )
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
    if numbers < MINIMUM[package]:
        raise BadInputError(
            f"{package} {found} is too old: adaexplore needs {package} {minimum} or newer"
        )


def _installed(package: str) -> str:
    """Return the version of an installed package, empty where there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
