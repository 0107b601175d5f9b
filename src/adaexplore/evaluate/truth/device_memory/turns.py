"""Turns on a device that the making of truths shares with searches that time on it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

import torch

from adaexplore.core.errors import InfrastructureError
from adaexplore.evaluate.truth.device_memory.room import (
    LEFT_FREE,
    release_memory,
    room_on,
    wait_for_room,
)
from adaexplore.sandbox.lock import (
    device_lent,
    has_large_turn,
    has_other_judges,
    is_wanted,
    large_turn,
    stand_back,
)
from adaexplore.sandbox.user.user_code import is_out_of_memory

_LARGE = 1 / 128
"""The share of a GPU's memory, for inputs or outputs, from which on truths are made by turns."""
_RUNS = 8
"""The float64 runs of large inputs or outputs take their size so many times at most."""
_BEGINNING_S, _LOOK_EVERY_S = 120.0, 2.0
PATIENCE_S = 900.0
"""For other judges to give memory back: copies in the host's memory take minutes longer."""


def begin_on(device: str) -> None:
    """Begin to use a GPU: for a second the driver makes a context, which needs no lock.

    A context needs memory: where others hold all of it, wait for two minutes. Raises
    `InfrastructureError` after them.
    """
    if device == "cpu":
        return
    patient_until = time.monotonic() + _BEGINNING_S
    while True:
        try:
            torch.cuda.synchronize(device)
        except RuntimeError as error:
            if not _lacks_memory_to_begin(error):
                raise
            if time.monotonic() > patient_until:
                raise InfrastructureError(
                    f"others hold all memory of the GPU, and none is left to begin with; end them "
                    f"(nvidia-smi lists them) and go on: {str(error).splitlines()[0]}"
                ) from error
        else:
            return
        time.sleep(_LOOK_EVERY_S)


def _lacks_memory_to_begin(error: RuntimeError) -> bool:
    """Return whether the driver could make no context for lack of memory; it gives two reasons."""
    return is_out_of_memory(error) or "busy or unavailable" in str(error)


def let_others_time(device: str) -> None:
    """Stand back from a device for those that wait to have it alone."""
    if is_wanted(device):
        if device != "cpu":
            torch.cuda.synchronize(device)
        stand_back(device)


def wanted_for_truths(tensors: Iterable[torch.Tensor], device: str) -> int:
    """Return the bytes of a GPU that the truths of large tensors want free; 0 for small tensors."""
    total, size = room_on(device).total, sum(t.nbytes for t in tensors)
    return _RUNS * size + int(LEFT_FREE * total) if 0 < _LARGE * total < size else 0


@contextmanager
def turn_for_truths(wanted: int, device: str) -> Iterator[None]:
    """Hold the turn for large work, once `wanted` bytes are free or other judges free no more.

    Patience is for the turn and for room together, so that each in a queue does not spend it anew.
    Who has the turn already has waited for room.
    """
    if has_large_turn(device):
        yield
        return
    release_memory()
    patient_until = time.monotonic() + PATIENCE_S
    with large_turn(device):
        with device_lent(device):
            others = partial(has_other_judges, device)
            patience_s = patient_until - time.monotonic()
            wait_for_room(wanted, partial(room_on, device), patience_s, others)
        yield
