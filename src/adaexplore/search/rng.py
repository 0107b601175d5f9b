"""Random generators that a resumed run can repeat."""

from __future__ import annotations

import hashlib
import random


def step_rng(seed: int, step: int) -> random.Random:
    """Return the generator of one step, the same in every process.

    It is seeded by sha256 over both numbers, so that neighbouring steps and seeds are independent.
    The draws of one step do not shift those of the next: a run resumed at step k continues as if it
    had never stopped.
    """
    digest = hashlib.sha256(f"{seed}/{step}".encode()).digest()
    return random.Random(int.from_bytes(digest, "big"))
