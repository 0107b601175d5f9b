"""Asking again: how long to wait for a provider, and when to give up on it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from adaexplore.core.client import ModelOutageError

T = TypeVar("T")


class TransientError(Exception):
    """An attempt failed in a way that may pass; its text says how, in one line.

    `retry_after_s` is the wait that the provider asked for, None if it asked for none.
    """

    def __init__(self, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long one reply is tried for.

    Waits double from `first_wait_s` to at most `longest_wait_s`, each drawn uniformly from zero to
    that ("full jitter", so that clients which failed together do not come back together). No new
    attempt begins more than `total_s` after the first one did.
    """

    attempts: int = 8
    total_s: float = 900.0
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0

    def wait_s(self, failed: int, asked_s: float | None, rng: random.Random) -> float:
        """The wait after `failed` attempts: never shorter than the one that was asked for."""
        if asked_s is not None:
            return asked_s + rng.uniform(0, self.first_wait_s)
        return rng.uniform(0, min(self.longest_wait_s, self.first_wait_s * 2 ** (failed - 1)))


def with_retries(
    attempt: Callable[[], T],
    patience: RetryPolicy,
    *,
    who: str,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    rng: random.Random | None = None,
) -> tuple[T, int]:
    """What `attempt` returns, and at which attempt it did.

    Only `TransientError` is tried again. Raises `ModelOutageError`, which names `who`, when the
    attempts are used up or the next one would begin after the patience is.
    """
    rng = rng or random.Random()
    deadline = clock() + patience.total_s
    number = 0
    while True:
        number += 1
        try:
            return attempt(), number
        except TransientError as error:
            wait = patience.wait_s(number, error.retry_after_s, rng)
            if number >= patience.attempts or clock() + wait > deadline:
                attempts = f"{number} attempt{'s' if number > 1 else ''}"
                asked = error.retry_after_s
                later = f"; it asks to wait {asked:.0f} s" if asked else ""
                raise ModelOutageError(
                    f"{who} gave no answer in {attempts}: {error}{later}"
                ) from None
        sleep(wait)
