"""The difference of a kernel's outputs from the original's."""

from __future__ import annotations

import torch
from torch import Tensor


def relative_error(found: list[Tensor], expected: list[Tensor]) -> float:
    """Return the largest relative error of a tensor; infinite for other forms or integers."""
    worst = 0.0
    for one, other in zip(found, expected, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            return float("inf")
        if not other.is_floating_point():
            worst = worst if torch.equal(one, other) else float("inf")
            continue
        wide = other.double()
        if not torch.equal(one.isfinite(), other.isfinite()):
            return float("inf")
        keep = wide.isfinite()
        norm = wide[keep].norm().item()
        off = (one.double() - wide)[keep].norm().item()
        worst = max(worst, off / norm if norm else off)
    return worst
