"""Precision classes: how a reference runs in each, and how wrong a candidate of it may be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from adaexplore.core.problem import PRECISIONS, Precision

NORM_FACTOR: dict[Precision, float] = {"fp32": 4.0, "tf32": 2.0, "half": 2.0}
"""A candidate may be this many times as wrong as PyTorch's own run in the class."""

ELEMENT_FACTOR = 4.0
"""The worst element may exceed the reference's worst by this much more: extremes vary more."""

FLOOR: dict[Precision, float] = {"fp32": 2e-6, "tf32": 2.0**-10, "half": 2.0**-8}
"""Relative error that is always allowed in a class.

For fp32 some 16 roundings (2^-23 each): where PyTorch happens to be exact (a maximum, a copy), an
honest kernel that rounds differently would otherwise be refused. For the others one rounding of
an operand by truncation, the tensor cores' way: cuDNN and cuBLAS choose for themselves whether they
use TF32, and where they do not, their error would bound the class at that of fp32.
"""


FOREIGN_FLOOR: dict[Precision, float] = {"fp32": 1e-4, "tf32": 2.0**-7, "half": 2.0**-5}
"""The same on inputs unlike the problem's own. They ask whether a result is right, not how precise:
far from the numbers that a kernel was made for, honest ones may subtract what nearly cancels."""


def floors(dtype: torch.dtype, *, from_problem: bool) -> dict[Precision, float]:
    """The relative error that is always allowed in an output of this dtype, by class."""
    floor = FLOOR if from_problem else FOREIGN_FLOOR
    if not (dtype.is_floating_point or dtype.is_complex):
        return dict.fromkeys(floor, 0.0)
    if torch.finfo(dtype).eps <= torch.finfo(torch.float32).eps:
        return dict(floor)
    return dict.fromkeys(floor, floor["half"])


def up_to(precision: Precision) -> tuple[Precision, ...]:
    """The classes up to `precision`, strictest first."""
    return PRECISIONS[: PRECISIONS.index(precision) + 1]


def set_flags(precision: Precision) -> None:
    """Lets PyTorch's own kernels use TF32 unless the class is fp32."""
    torch.set_float32_matmul_precision("highest" if precision == "fp32" else "high")
    torch.backends.cudnn.allow_tf32 = precision != "fp32"


@contextmanager
def baseline_scope(precision: Precision, device: str, *, autocast: bool) -> Iterator[None]:
    """PyTorch as its users run it in this class: flags, and bfloat16 autocast for `half`.

    `autocast` is off for modules whose own dtype is half already.
    """
    matmul = torch.get_float32_matmul_precision()
    cudnn = torch.backends.cudnn.allow_tf32
    set_flags(precision)
    try:
        with (
            torch.no_grad(),
            torch.autocast(
                device.partition(":")[0],
                dtype=torch.bfloat16,
                enabled=autocast and precision == "half",
            ),
        ):
            yield
    finally:
        torch.set_float32_matmul_precision(matmul)
        torch.backends.cudnn.allow_tf32 = cudnn
