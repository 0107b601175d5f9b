"""The rules of the grammar, by family; importing this package fills `base.CATALOGUE`."""

from adaexplore_lab.synthesize.productions import (
    attention,
    branches,
    conv,
    indexing,
    losses,
    matmul,
    norms,
    pointwise,
    pooling,
    reductions,
    scans,
)

__all__ = [
    "attention",
    "branches",
    "conv",
    "indexing",
    "losses",
    "matmul",
    "norms",
    "pointwise",
    "pooling",
    "reductions",
    "scans",
]
