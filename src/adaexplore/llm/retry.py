"""Retries with exponential backoff and full jitter."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from adaexplore.core.protocols.client import ModelOutageError
from adaexplore.core.text.units import plural

T = TypeVar("T")


class TransientError(Exception):
    """Failed attempt that may succeed later, described in one line.

    `retry_after_s` is the wait that the provider requested, None if it requested none.
    """

    def __init__(self, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number and duration of the attempts at one reply.

    Waits double from `first_wait_s` to at most `longest_wait_s`, each drawn uniformly from zero to
    that bound ("full jitter", so that clients which failed together do not retry together). No
    attempt begins more than `total_s` after the first one.
    """

    attempts: int = 8
    total_s: float = 900.0
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0

    def wait_s(self, failed: int, asked_s: float | None, rng: random.Random) -> float:
        """Return the wait after `failed` attempts, at least the one that the provider requested."""
        if asked_s is not None:
            return asked_s + rng.uniform(0, self.first_wait_s)
        return rng.uniform(0, min(self.longest_wait_s, self.first_wait_s * 2 ** (failed - 1)))


def with_retries(
    attempt: Callable[[], T],
    policy: RetryPolicy,
    *,
    name: str,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    rng: random.Random | None = None,
) -> tuple[T, int]:
    """Call `attempt` until it returns; return its result and the number of attempts.

    Only `TransientError` is retried. Raises `ModelOutageError`, which names `name`, once the
    attempts are used up or the next one would begin after the policy's total time.
    """
    rng = rng or random.Random()
    deadline = clock() + policy.total_s
    number = 0
    while True:
        number += 1
        try:
            return attempt(), number
        except TransientError as error:
            wait = policy.wait_s(number, error.retry_after_s, rng)
            if number >= policy.attempts or clock() + wait > deadline:
                attempts = plural(number, "attempt")
                asked = error.retry_after_s
                later = f"; it asks to wait {asked:.0f} s" if asked else ""
                raise ModelOutageError(
                    f"{name} gave no answer in {attempts}: {error}{later}"
                ) from None
        sleep(wait)
