"""The cost of copying outputs, by their layout in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

import torch

from adaexplore.core.protocols.clock import Clock
from adaexplore.sandbox.user.values import NamedTensor

_TRIED = 3
_SPREAD = 2  # sizes of the tensor that a layout may span: honest outputs have few gaps


class OutputCopyCost:
    """Copies of outputs like `outputs` to the contiguous places that the judge has for them.

    A candidate's may lie in memory in another order than the reference's (channels last), and to
    copy them takes longer then. That is no work out of the timer's sight. `make_clock` is called
    where a copy has to be timed: a clock of a GPU holds memory there.
    """

    def __init__(self, outputs: Sequence[NamedTensor], make_clock: Callable[[], Clock]) -> None:
        self._like = [tensor for _, tensor in outputs]
        self._make_clock = make_clock
        self._known_us: dict[tuple[int, tuple[int, ...]], float] = {}

    def extra_us(self, layouts: Sequence[Sequence[int]]) -> float:
        """Return the extra time with these strides over the reference's own."""
        pairs = enumerate(zip(layouts, self._like, strict=True))
        return sum(self._extra_us(i, tuple(strides), like) for i, (strides, like) in pairs)

    def _extra_us(self, index: int, strides: tuple[int, ...], like: torch.Tensor) -> float:
        if strides == like.stride() or not _is_plausible(strides, like):
            return 0.0
        extra_us = self._copy_us(index, strides, like) - self._copy_us(index, like.stride(), like)
        return max(extra_us, 0.0)

    def _copy_us(self, index: int, strides: tuple[int, ...], like: torch.Tensor) -> float:
        key = (index, strides)
        if key not in self._known_us:
            source = torch.empty_strided(like.shape, strides, dtype=like.dtype, device=like.device)
            place = torch.empty(like.shape, dtype=like.dtype, device=like.device)

            def copy(_: int) -> object:
                return place.copy_(source)

            clock = self._make_clock()
            clock.warm(copy)
            self._known_us[key] = median(clock.block(copy, _TRIED, lambda _, __: None))
        return self._known_us[key]


def _is_plausible(strides: tuple[int, ...], like: torch.Tensor) -> bool:
    if len(strides) != like.dim() or like.numel() == 0 or min(strides, default=0) < 0:
        return False
    span = 1 + sum((n - 1) * s for n, s in zip(like.shape, strides, strict=True))
    return span <= _SPREAD * like.numel()
