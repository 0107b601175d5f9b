"""What a candidate looks like, apart from how fast it is: for policies that keep kernels apart."""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from functools import cached_property
from typing import Protocol

from adaexplore.candidate import Candidate

Cell = tuple[int, ...]
Vector = tuple[float, ...]

DIMENSIONS = 64

_TOKEN = re.compile(r"\w+|[^\w\s]")
_KERNELS = ("@triton.jit", "__global__", "#pragma omp parallel")
_LAUNCHES = ("](", "<<<")  # Triton's kernel[grid](...), CUDA's kernel<<<grid>>>(...)
_MATRIX = ("tl.dot", "wmma", "mma_sync", "F.linear", "matmul")
_ATOMIC = ("tl.atomic_", "atomicAdd", "atomicMax", "atomicMin", "#pragma omp atomic")
_MOST = 4


class Traits(Protocol):
    """Two views of a candidate.

    `cell` are coordinates in a grid of kinds of kernels, such as MAP-Elites keeps; `vector` is a
    point of length 1 (or 0) whose distance from another says how much of the text differs.
    """

    @property
    def cell(self) -> Cell:
        """Coordinates in the grid."""
        ...

    @property
    def vector(self) -> Vector:
        """The point."""
        ...


class SourceTraits:
    """Traits as the source shows them, each computed when it is asked for."""

    def __init__(self, candidate: Candidate) -> None:
        self._source = candidate.source

    @cached_property
    def cell(self) -> Cell:
        """Length in doublings, kernels, launches; whether it has matrix products, and atomics."""
        source = self._source  # plain substrings: ten thousand sources are read when a run resumes
        return (
            len(source).bit_length(),
            min(sum(map(source.count, _KERNELS)), _MOST),
            min(sum(map(source.count, _LAUNCHES)), _MOST),
            int(any(sign in source for sign in _MATRIX)),
            int(any(sign in source for sign in _ATOMIC)),
        )

    @cached_property
    def vector(self) -> Vector:
        """Tokens, hashed into `DIMENSIONS` signed sums of `1 + ln(count)`, scaled to length 1.

        Feature hashing after Weinberger et al. 2009 (arXiv 0902.2206).
        """
        sums = [0.0] * DIMENSIONS
        for token, count in Counter(_TOKEN.findall(self._source)).items():
            code = zlib.crc32(token.encode())
            sign = 1.0 if code & 1 else -1.0
            sums[(code >> 1) % DIMENSIONS] += sign * (1 + math.log(count))
        length = math.hypot(*sums)
        return tuple(value / length for value in sums) if length else tuple(sums)
