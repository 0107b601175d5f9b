"""Rounds that were disturbed are taken again."""

import itertools

import pytest

from adaexplore.evaluate.timing.rounds import Block, is_quiet, quiet_rounds, timed_block


def rounds(*waited: float):
    """Return a function that takes rounds of a quiet party and one that waited, again and again."""
    shares = itertools.cycle(waited)
    return lambda: {"quiet": Block(1.0), "other": Block(2.0, waited=next(shares))}


def test_quiet_rounds_are_all_that_is_taken():
    assert len(quiet_rounds(rounds(0.0), 4)) == 4


def test_a_disturbed_round_is_taken_again():
    found = quiet_rounds(rounds(0.5, 0.0), 4)
    assert [blocks["other"].waited for blocks in found] == [0.0] * 4


def test_on_a_machine_that_stays_busy_all_rounds_count():
    found = quiet_rounds(rounds(0.5, 0.5, 0.5, 0.0), 4)
    assert len(found) == 12
    assert sum(map(is_quiet, found)) == 3


@pytest.mark.parametrize(("waited", "quiet"), [(0.019, True), (0.021, False)])
def test_two_percent_of_waiting_are_quiet(waited, quiet):
    assert is_quiet({"eager": Block(1.0), "compile": Block(1.0, waited=waited)}) is quiet


def test_a_block_knows_the_share_of_its_time_that_its_threads_waited():
    waited_us = iter([5e6, 8e6 + 10 * 5.0])
    block = timed_block(lambda count: [1.0] * (count - 1) + [11.0], 10, lambda: next(waited_us))
    assert (block.time_us, block.excess_us, block.calls) == (1.0, 1.0, 10)
    assert block.waited > 100.0  # three seconds, in a block of no time
