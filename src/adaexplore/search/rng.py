"""Randomness that a resumed run can repeat."""

from __future__ import annotations

import hashlib
import random


def step_rng(seed: int, step: int) -> random.Random:
    """A generator for one step, the same in every process whatever ran before.

    Seeded by sha256 over both numbers, so that neighbouring steps and seeds share nothing. What one
    step draws does not shift the next: resuming at step k continues as if never stopped.
    """
    digest = hashlib.sha256(f"{seed}/{step}".encode()).digest()
    return random.Random(int.from_bytes(digest, "big"))
