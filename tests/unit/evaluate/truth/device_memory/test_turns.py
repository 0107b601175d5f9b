"""Truths are made beside searches that time; those of large tensors one after another."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import torch

from adaexplore.core.errors import InfrastructureError
from adaexplore.core.problem import Problem
from adaexplore.evaluate.judge import workload
from adaexplore.evaluate.judge.workload import JudgedWorkload
from adaexplore.evaluate.truth.device_memory import turns
from adaexplore.evaluate.truth.device_memory.room import FreeMemory
from adaexplore.sandbox.lock import (
    device_lock,
    is_wanted,
    join_judges,
    large_turn,
    lock_file,
)
from adaexplore.sandbox.user.user_code import Instance
from device_locks import is_free

SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return x{returned}

def get_inputs():
    return [torch.randn(16, {width})]
"""


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes the truths of a module; inputs or outputs of more than 1 KiB are large.

    Returns whether it has the turn for large work then.
    """
    monkeypatch.setenv("ADAEXPLORE_LOCKS", str(tmp_path))
    monkeypatch.setattr(turns, "room_on", lambda _: FreeMemory(128 << 10, 128 << 10))

    def make(returned=" + 1", width=8):
        source = SOURCE.format(returned=returned, width=width)
        problem = Problem("example", source, "triton", "cpu")
        instance = Instance.of(problem, tmp_path)
        (inputs,) = problem.workloads
        with device_lock("cpu", exclusive=False), ExitStack() as turn:
            JudgedWorkload(
                problem,
                instance,
                inputs,
                [],
                first_set=0,
                sharing=1,
                turn=turn,
                before_turn=lambda _: None,
            )
            return is_turn_taken("cpu")

    return make


def is_turn_taken(device):
    return not is_free(lock_file(device).with_suffix(".large"))


def test_who_waits_to_time_does_not_wait_for_all_sets(make, monkeypatch):
    done = []

    def time_alone():
        with device_lock("cpu", exclusive=True):
            done.append("timed")

    timing, run = threading.Thread(target=time_alone), Instance.__call__

    def run_beside(*args):
        if not done and not timing.is_alive():
            timing.start()
            while not is_wanted("cpu"):
                time.sleep(0.01)
        done.append("run")
        return run(*args)

    monkeypatch.setattr(Instance, "__call__", run_beside)
    make()
    timing.join()
    runs = [i for i, what in enumerate(done) if what == "run"]
    assert len(runs) > 10
    assert 0 < done.index("timed") < runs[5]


@pytest.mark.parametrize(
    ("returned", "width", "waits"),
    [(" + 1", 8, False), (" + 1", 32, True), (".repeat(4, 1)", 8, True)],
    ids=["small", "inputs", "outputs"],
)
def test_truths_of_large_tensors_are_made_in_turn(make, returned, width, waits):
    making = threading.Thread(target=make, args=(returned, width))
    with large_turn("cpu"):
        making.start()
        making.join(1.0 if waits else 60.0)
        assert making.is_alive() == waits
    making.join(60.0)
    assert not making.is_alive()


@pytest.mark.parametrize(("width", "is_large"), [(8, False), (32, True)])
def test_the_turn_lasts_until_it_is_ended_for_the_memory_that_timing_takes(make, width, is_large):
    assert make(width=width) == is_large
    assert not is_turn_taken("cpu")


def test_nothing_is_held_while_others_have_their_turn(make, monkeypatch):
    drawn, inputs = [], Instance.inputs

    def draw(*args):
        drawn.append(0)
        return inputs(*args)

    def wait(wanted, device):
        drawn.append("turn")
        return turns.turn_for_truths(wanted, device)

    monkeypatch.setattr(Instance, "inputs", draw)
    monkeypatch.setattr(workload, "turn_for_truths", wait)
    make(width=32)
    assert drawn[:3] == [0, "turn", 0]


def test_truths_of_large_tensors_wait_for_room_in_their_turn(make, monkeypatch):
    seen = []

    def wait(wanted, read, patience_s, may_come):
        with ThreadPoolExecutor(1) as another:
            seen.append(another.submit(is_turn_taken, "cpu").result())
        seen.append((wanted, read(), patience_s > 60, may_come()))
        return True

    monkeypatch.setattr(turns, "wait_for_room", wait)
    join_judges("cpu")
    make(width=32)
    assert seen[:2] == [True, (8 * 2048 + (32 << 10), turns.room_on("cpu"), True, False)]


def test_the_time_in_a_queue_is_a_part_of_the_patience(make, monkeypatch):
    left_s, in_queue = [], threading.Event()

    def queue(device):
        in_queue.set()
        return large_turn(device)

    monkeypatch.setattr(turns, "large_turn", queue)
    monkeypatch.setattr(
        turns, "wait_for_room", lambda _, __, patience_s, ___: left_s.append(patience_s)
    )
    making = threading.Thread(target=make, kwargs={"width": 32})
    with large_turn("cpu"):
        making.start()
        assert in_queue.wait(60.0)
        time.sleep(0.5)
    making.join(60.0)
    assert left_s[0] < turns.PATIENCE_S - 0.4


def test_larger_outputs_want_more_room_and_who_has_the_turn_waits_no_more(make, monkeypatch):
    waits = []
    monkeypatch.setattr(turns, "wait_for_room", lambda wanted, *_: waits.append(wanted))
    make(returned=".repeat(2, 1)", width=32)
    assert waits[:2] == [8 * 2048 + (32 << 10), 8 * 4096 + (32 << 10)]
    waits.clear()
    with large_turn("cpu"):
        make(width=32)
    assert not waits


def test_large_tensors_want_what_their_float64_runs_take_and_a_quarter_left_free(monkeypatch):
    monkeypatch.setattr(turns, "room_on", lambda _: FreeMemory(0, 128 << 20))
    small, large = (torch.empty(n, dtype=torch.uint8) for n in (1 << 20, (1 << 20) + 1))
    assert turns.wanted_for_truths([small], "cuda") == 0
    assert turns.wanted_for_truths([large], "cuda") == 8 * large.nbytes + (32 << 20)


class TestBeginning:
    """The driver has no memory for a context at first."""

    FULL = "CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' ..."
    BUSY = "CUDA error: CUDA-capable device(s) is/are busy or unavailable"

    @pytest.fixture
    def begin(self, monkeypatch):
        def begin(*errors):
            left, slept = list(errors), []

            def synchronize(_device):
                if left:
                    raise RuntimeError(left.pop(0))

            monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
            monkeypatch.setattr(time, "sleep", slept.append)
            monkeypatch.setattr(time, "monotonic", lambda: sum(slept))
            turns.begin_on("cuda:0")
            return sum(slept)

        return begin

    def test_it_is_tried_again_until_there_is_some(self, begin):
        assert begin() == 0
        assert 0 < begin(self.FULL, self.BUSY, self.FULL) < 10

    def test_where_none_comes_the_line_says_who_has_it(self, begin):
        with pytest.raises(InfrastructureError, match="others hold all memory of the GPU") as told:
            begin(*[self.FULL] * 1000)
        assert str(told.value).endswith("CUDA error: out of memory")

    def test_other_trouble_is_not_waited_for(self, begin):
        with pytest.raises(RuntimeError, match="no kernel image"):
            begin("CUDA error: no kernel image is available")
