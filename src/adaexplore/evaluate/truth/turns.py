"""Turns on a device that the making of truths shares with searches that time on it."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from adaexplore.evaluate.truth.room import room_on
from adaexplore.sandbox.lock import is_wanted, stand_back

_LARGE = 1 / 128
"""The share of a GPU's memory, for inputs or outputs, whose float64 runs take ten times as much."""


def let_others_time(device: str) -> None:
    """Stand back from a device for those that wait to have it alone."""
    if is_wanted(device):
        if device != "cpu":
            torch.cuda.synchronize(device)
        stand_back(device)


def are_large(tensors: Iterable[torch.Tensor], device: str) -> bool:
    """Return True for tensors whose truths fill much of a GPU's memory while they are made."""
    return 0 < _LARGE * room_on(device).total < sum(t.nbytes for t in tensors)
