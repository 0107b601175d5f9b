import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.client import ModelOutageError
from adaexplore.llm.retry import RetryPolicy, TransientError, with_retries


class Clock:
    """Time that only sleeping takes."""

    def __init__(self):
        self.now = 0.0
        self.slept = []

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


def failing(*errors):
    """An attempt that raises each of `errors` in turn and then says "done"."""
    left = list(errors)

    def attempt():
        if left:
            raise left.pop(0)
        return "done"

    return attempt


def tried(attempt, patience, clock):
    rng = random.Random(0)
    return with_retries(attempt, patience, name="x:y", sleep=clock.sleep, clock=clock, rng=rng)


def test_a_first_success_does_not_wait():
    clock = Clock()

    assert tried(failing(), RetryPolicy(), clock) == ("done", 1)
    assert clock.slept == []


def test_only_transient_errors_are_retried():
    clock = Clock()

    with pytest.raises(BadInputError, match="mend it"):
        tried(failing(BadInputError("mend it")), RetryPolicy(), clock)
    assert clock.slept == []


def test_retries_end_after_the_attempts():
    clock = Clock()

    with pytest.raises(ModelOutageError, match="x:y gave no answer in 3 attempts: down"):
        tried(failing(*[TransientError("down")] * 9), RetryPolicy(attempts=3), clock)
    assert len(clock.slept) == 2


@given(st.lists(st.none() | st.floats(0, 100), max_size=30), st.floats(1, 300), st.integers(1, 40))
def test_no_attempt_begins_after_the_total_time(asked, total_s, attempts):
    clock = Clock()
    patience = RetryPolicy(attempts, total_s)
    began = []

    def attempt():
        began.append(clock.now)
        if len(began) <= len(asked):
            raise TransientError("down", asked[len(began) - 1])
        return "done"

    try:
        _, number = tried(attempt, patience, clock)
        assert number == len(began) == len(asked) + 1
    except ModelOutageError:
        assert len(began) <= len(asked)
    assert len(began) <= attempts
    assert began[-1] <= total_s


@given(st.integers(1, 60), st.none() | st.floats(0, 1000), st.randoms(use_true_random=False))
def test_waits_stay_within_their_bounds(failed, asked, rng):
    patience = RetryPolicy(first_wait_s=2.0, longest_wait_s=30.0)

    wait = patience.wait_s(failed, asked, rng)

    if asked is None:
        assert 0 <= wait <= min(30.0, 2.0 * 2 ** (failed - 1))
    else:
        assert asked <= wait <= asked + 2.0


def test_waits_are_spread_over_the_whole_range():
    rng = random.Random(1)

    waits = [RetryPolicy().wait_s(4, None, rng) for _ in range(1000)]

    assert min(waits) < 1
    assert max(waits) > 7
