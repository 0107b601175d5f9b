"""Workers that wait for another job: how many, how long, how large, and how they end."""

import subprocess
import sys
from dataclasses import dataclass

import pytest

from adaexplore.serve.warm import WarmLimits, WarmPool

LARGE = "import sys; kept = bytearray(b'x' * (64 << 20)); print(flush=True); sys.stdin.read()"


@dataclass
class Worker:
    process: subprocess.Popen


@pytest.fixture
def start():
    """Make a function that starts a process which ends with its standard input."""
    started = []

    def start(*command: str) -> Worker:
        process = subprocess.Popen(
            command or ["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        started.append(process)
        return Worker(process)

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()


def kept(pool: WarmPool, *keys: str) -> list[str]:
    return [key for key in keys if pool.take(key) is not None]


def test_the_one_that_has_waited_the_longest_ends(start, eventually):
    pool, first = WarmPool(WarmLimits(2)), start()
    for key, worker in {"a": first, "b": start(), "c": start()}.items():
        pool.give(key, worker)
    assert eventually(lambda: first.process.poll() == 0)
    assert kept(pool, "a", "b", "c") == ["b", "c"]
    assert kept(pool, "b") == []  # a worker does one job at a time


def test_a_second_with_the_same_key_takes_the_place_of_the_first(start, eventually):
    pool, first, second = WarmPool(WarmLimits(2)), start(), start()
    pool.give("a", first)
    pool.give("a", second)
    assert eventually(lambda: first.process.poll() == 0)
    assert pool.take("a") is second


def test_they_wait_for_a_limited_time(start):
    pool = WarmPool(WarmLimits(2, seconds=-1.0))
    pool.give("a", start())
    assert kept(pool, "a") == []


def test_they_hold_a_limited_memory_together(start, monkeypatch):
    monkeypatch.setattr("adaexplore.serve.warm._WEIGH_S", -1.0)
    pool = WarmPool(WarmLimits(9, bytes=100 << 20))
    for key in "abc":
        worker = start(sys.executable, "-c", LARGE)
        worker.process.stdout.readline()
        pool.give(key, worker)
    assert kept(pool, "a", "b", "c") == ["c"]


@pytest.mark.parametrize("alone", [True, False])
def test_on_a_gpu_none_waits_beside_another_problem(start, alone):
    pool = WarmPool(WarmLimits(2, alone=alone))
    pool.give("a", start())
    pool.make_room()
    assert kept(pool, "a") == ([] if alone else ["a"])


def test_a_worker_that_was_lost_gets_no_job(start):
    pool, lost = WarmPool(WarmLimits(2)), start()
    pool.give("a", lost)
    lost.process.kill()
    lost.process.wait()
    assert pool.take("a") is None


def test_one_that_does_not_end_is_killed(start):
    pool, stubborn = WarmPool(WarmLimits(2)), start("sleep", "60")
    pool.give("a", stubborn)
    pool.close()
    assert stubborn.process.poll() == -9


def test_no_worker_waits_where_none_may(start):
    pool = WarmPool(WarmLimits())
    assert not pool.is_open
    pool.give("a", start())
    assert kept(pool, "a") == []
