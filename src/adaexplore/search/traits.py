"""Behaviour descriptors of candidates, independent of speed, for quality-diversity policies."""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Mapping
from functools import cached_property

from adaexplore.core.candidate import Candidate
from adaexplore.core.node import Node
from adaexplore.core.protocols.policy import Cell, Traits, Vector
from adaexplore.core.verdict.descriptor import Descriptor
from adaexplore.core.verdict.evaluation import Passed

DIMENSIONS = 64

_TOKEN = re.compile(r"\w+|[^\w\s]")
_KERNELS = ("@triton.jit", "__global__", "#pragma omp parallel")
_LAUNCHES = ("](", "<<<")  # Triton's kernel[grid](...), CUDA's kernel<<<grid>>>(...)
_MATRIX = ("tl.dot", "wmma", "mma_sync", "F.linear", "matmul")
_ATOMIC = ("tl.atomic_", "atomicAdd", "atomicMax", "atomicMin", "#pragma omp atomic")
_MAX_COUNT = 4
_MIN_SHARE = 0.05
"""Kernels with a smaller share of the time come and go with the noise of a profile."""


class SourceTraits:
    """Traits of the source text, computed on first use."""

    def __init__(self, candidate: Candidate) -> None:
        self._source = candidate.source

    @cached_property
    def cell(self) -> Cell:
        """log2 of the length; numbers of kernels, launches; flags for matrix products, atomics."""
        source = self._source  # substrings, because a resumed run reads up to ten thousand sources
        return (
            len(source).bit_length(),
            min(sum(map(source.count, _KERNELS)), _MAX_COUNT),
            min(sum(map(source.count, _LAUNCHES)), _MAX_COUNT),
            int(any(sign in source for sign in _MATRIX)),
            int(any(sign in source for sign in _ATOMIC)),
        )

    @cached_property
    def vector(self) -> Vector:
        """Token counts, hashed into `DIMENSIONS` signed sums of `1 + ln(count)`, of length 1.

        Feature hashing after Weinberger et al. 2009 (arXiv 0902.2206).
        """
        counts = Counter(_TOKEN.findall(self._source))
        return _hashed({token: 1 + math.log(count) for token, count in counts.items()})


class CompiledTraits:
    """Traits of a correct kernel as it was compiled and run, combined with those of its source."""

    def __init__(self, candidate: Candidate, descriptor: Descriptor) -> None:
        self._in_source = SourceTraits(candidate)
        self._descriptor = descriptor

    @cached_property
    def cell(self) -> Cell:
        """Number of kernels in the source, of own and of library kernels above `_MIN_SHARE` of the
        time; log2 of the threads of a block; flags for matrix products, atomics, asynchronous
        copies."""
        found, used = self._descriptor, self._descriptor.instructions
        return (
            self._in_source.cell[1],
            min(sum(share >= _MIN_SHARE for share in found.own), _MAX_COUNT),
            min(sum(share >= _MIN_SHARE for share in found.library), _MAX_COUNT),
            math.prod(found.block).bit_length(),
            int("dot" in used or "tensor-core" in used),
            int("atomic" in used),
            int("tma" in used or "async-copy" in used),
        )

    @cached_property
    def vector(self) -> Vector:
        """Vectors of the source and of the descriptor's features, concatenated with equal weight.

        Features are hashed like tokens and scaled so that typical maxima are about 1.
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
    """Return the traits of the compiled candidate, or those of its source without a descriptor."""
    evaluation = node.evaluation
    if isinstance(evaluation, Passed) and evaluation.descriptor:
        return CompiledTraits(node.candidate, evaluation.descriptor)
    return SourceTraits(node.candidate)


def distance(first: Traits, second: Traits) -> float:
    """Return a distance between 0 and 2; of the sources alone where one has no descriptor."""
    a, b = first.vector, second.vector
    if len(a) == len(b):
        return math.dist(a, b)
    a, b = _normalised(a[:DIMENSIONS]), _normalised(b[:DIMENSIONS])
    return math.dist(a, b)


def _hashed(weights: Mapping[str, float]) -> Vector:
    """Return the weights in `DIMENSIONS` signed sums by a hash of their names, of length 1."""
    sums = [0.0] * DIMENSIONS
    for name, weight in weights.items():
        code = zlib.crc32(name.encode())
        sums[(code >> 1) % DIMENSIONS] += weight if code & 1 else -weight
    return _normalised(tuple(sums))


def _normalised(vector: Vector) -> Vector:
    length = math.hypot(*vector)
    return tuple(value / length for value in vector) if length else vector
