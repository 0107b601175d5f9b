"""What a candidate looks like, apart from how fast it is: for policies that keep kernels apart."""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Mapping
from functools import cached_property

from adaexplore.core.candidate import Candidate
from adaexplore.core.descriptor import Descriptor
from adaexplore.core.evaluation import Passed
from adaexplore.core.node import Node
from adaexplore.core.policy import Cell, Traits, Vector

DIMENSIONS = 64

_TOKEN = re.compile(r"\w+|[^\w\s]")
_KERNELS = ("@triton.jit", "__global__", "#pragma omp parallel")
_LAUNCHES = ("](", "<<<")  # Triton's kernel[grid](...), CUDA's kernel<<<grid>>>(...)
_MATRIX = ("tl.dot", "wmma", "mma_sync", "F.linear", "matmul")
_ATOMIC = ("tl.atomic_", "atomicAdd", "atomicMax", "atomicMin", "#pragma omp atomic")
_MOST = 4
_MATTERS = 0.05
"""Kernels with less of the time come and go with the noise of a profile."""


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
        counts = Counter(_TOKEN.findall(self._source))
        return _hashed({token: 1 + math.log(count) for token, count in counts.items()})


class CompiledTraits:
    """Traits of a correct kernel as it was compiled and run, beside those of its source."""

    def __init__(self, candidate: Candidate, descriptor: Descriptor) -> None:
        self._in_source = SourceTraits(candidate)
        self._descriptor = descriptor

    @cached_property
    def cell(self) -> Cell:
        """Kernels in the source; own and library kernels that matter; threads of a block in
        doublings; whether it has matrix products, atomics, asynchronous copies."""
        found, used = self._descriptor, self._descriptor.instructions
        return (
            self._in_source.cell[1],
            min(sum(share >= _MATTERS for share in found.own), _MOST),
            min(sum(share >= _MATTERS for share in found.library), _MOST),
            math.prod(found.block).bit_length(),
            int("dot" in used or "tensor-core" in used),
            int("atomic" in used),
            int("tma" in used or "async-copy" in used),
        )

    @cached_property
    def vector(self) -> Vector:
        """The source's vector beside one of the descriptor's features, each with half the weight.

        Features are hashed as tokens are; each is about 1 where it says the most.
        """
        found = self._descriptor
        features = {f"own {i}": share for i, share in enumerate(found.own)}
        features |= {f"library {i}": share for i, share in enumerate(found.library)}
        features |= dict.fromkeys(found.instructions, 1.0)
        features["launches"] = math.log2(1 + found.launches) / 4
        features["programs"] = math.log2(math.prod(found.grid)) / 16 if all(found.grid) else 0.0
        features["threads"] = math.log2(math.prod(found.block)) / 8 if all(found.block) else 0.0
        features["traffic"] = math.log10(1 + found.bytes_per_s) / 13
        both = (*self._in_source.vector, *_hashed(features))
        return tuple(math.sqrt(0.5) * value for value in both)


def traits_of(node: Node) -> Traits:
    """Of its candidate as compiled and run, or as its source shows them where nobody knows."""
    evaluation = node.evaluation
    if isinstance(evaluation, Passed) and evaluation.descriptor:
        return CompiledTraits(node.candidate, evaluation.descriptor)
    return SourceTraits(node.candidate)


def distance(first: Traits, second: Traits) -> float:
    """Between 0 and 2; of their sources where only one of them was described."""
    a, b = first.vector, second.vector
    if len(a) == len(b):
        return math.dist(a, b)
    a, b = _of_length_one(a[:DIMENSIONS]), _of_length_one(b[:DIMENSIONS])
    return math.dist(a, b)


def _hashed(weights: Mapping[str, float]) -> Vector:
    """Weights in `DIMENSIONS` signed sums by a hash of their names, scaled to length 1."""
    sums = [0.0] * DIMENSIONS
    for name, weight in weights.items():
        code = zlib.crc32(name.encode())
        sums[(code >> 1) % DIMENSIONS] += weight if code & 1 else -weight
    return _of_length_one(tuple(sums))


def _of_length_one(vector: Vector) -> Vector:
    length = math.hypot(*vector)
    return tuple(value / length for value in vector) if length else vector
