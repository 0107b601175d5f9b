"""Preparing a reference where others use the same GPU, with references that claim not to fit."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Problem
from adaexplore.evaluate.judge import judge
from adaexplore.evaluate.timing.baselines.trial import BaselineTrial
from adaexplore.evaluate.truth.device_memory import room, turns
from adaexplore.evaluate.truth.device_memory.room import FreeMemory
from adaexplore.evaluate.wire.judge_messages import Prepare
from adaexplore.sandbox.lock import device_lock, large_turn, lock_file
from device_locks import is_free


def no_memory():
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")


def no_memory_for_more():
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 30.00 GiB.")


def no_memory_told():
    try:
        no_memory()
    except torch.OutOfMemoryError as error:
        raise BadProblemError("example.py: its float64 run does not fit on the device") from error


def no_library():
    raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")


def use_of(device, *, lean):
    """How a device is used now."""
    if not is_free(lock_file(device)):
        return "lean, alone" if lean else "alone"
    assert not lean
    return "beside" if is_free(lock_file(device).with_suffix(".large")) else "in turn"


@pytest.fixture
def prepared(monkeypatch, tmp_path):
    """Prepares a reference that does one of `does` each time; says for each how it had the device.

    `free` are readings of the device's free memory in GiB, of 80. A `large` one takes the turn for
    large work, and must have it until it is timed.
    """

    monkeypatch.setenv("ADAEXPLORE_LOCKS", str(tmp_path))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _: None)

    def prepared(device, *does, free=(80,), beside=0, others=True, large=False):
        tries, left, readings = [], list(does), list(free)

        def read(_device):
            return FreeMemory(
                (readings.pop(0) if len(readings) > 1 else readings[0]) << 30, 80 << 30
            )

        monkeypatch.setattr(judge, "room_on", read)
        monkeypatch.setattr(judge, "has_other_judges", lambda _: others)
        monkeypatch.setattr(time, "sleep", lambda _: None)

        class Reference:
            def __init__(self, problem, _folder, *, brief, lean, own_only, turn, try_each):
                assert not brief
                assert not own_only
                assert (try_each is None) == (problem.device == "cpu")
                self.problem, self.device, self.lean = problem, problem.device, lean
                tries.append(use_of(self.device, lean=lean))
                if large:
                    turn.enter_context(large_turn(self.device))
                left.pop(0)()

            def try_baselines(self):
                """They were tried before."""

            def complete(self):
                self.require_turn()

            def time_baselines(self):
                self.require_turn()

            def require_turn(self):
                assert not large or not is_free(lock_file(self.device).with_suffix(".large"))

            def measure_limits(self):
                """Takes no time."""

        monkeypatch.setattr(judge, "Reference", Reference)
        monkeypatch.setattr(judge, "compile_in_parallel", lambda: None)
        problem = Problem("example", "class Model: ...", "triton", device)
        try:
            request = Prepare(problem.to_json(), 0, brief=False, timeout_s=1.0, beside=beside)
            judge._prepared(problem, tmp_path, None, request)
        except (BadProblemError, RuntimeError) as error:
            return tries, str(error)
        return tries, ""

    return prepared


def nothing():
    """It fits."""


def test_what_fits_is_prepared_beside_others(prepared):
    assert prepared("cuda:0", nothing) == (["beside"], "")


def test_a_large_reference_has_its_turn_until_it_is_timed(prepared):
    assert prepared("cuda:0", nothing, large=True) == (["beside"], "")
    assert is_free(lock_file("cuda:0").with_suffix(".large"))


def test_a_large_reference_that_fails_gives_its_turn_back(prepared):
    tries = prepared("cuda:0", no_memory, nothing, large=True)
    assert tries == (["beside", "in turn"], "")
    assert is_free(lock_file("cuda:0").with_suffix(".large"))


@pytest.mark.parametrize("trouble", [no_memory, no_memory_told, no_library])
def test_what_finds_no_room_is_prepared_once_it_has_the_turn(prepared, trouble):
    assert prepared("cuda:0", trouble, nothing) == (["beside", "in turn"], "")


def test_what_finds_no_room_in_its_turn_makes_do_with_less_alone(prepared):
    tries = prepared("cuda:0", no_memory, no_memory, nothing, others=False)
    assert tries == (["beside", "in turn", "lean, alone"], "")


def test_room_that_others_took_is_waited_for_again_and_twice_as_much(prepared):
    free = [21, 39, 41]
    tries = prepared("cuda:0", no_memory, no_memory, nothing, free=free)
    assert tries == (["beside", "in turn", "in turn"], "")


def test_in_the_end_less_must_do_though_others_may_give_room_back(prepared):
    tries, _ = prepared("cuda:0", *[no_memory] * 5, nothing, free=[21, 41, 80])
    assert tries == ["beside", "in turn", "in turn", "in turn", "lean, alone"]


def test_what_runs_out_at_its_first_allocation_waits_for_more_than_that(prepared):
    def no_memory_for_weights():
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 172.00 MiB.")

    tries = prepared("cuda:0", no_memory_for_weights, nothing, free=[1, 4, 6])
    assert tries == (["beside", "in turn"], "")


def test_room_is_waited_for(prepared):
    free = [1, 5, 19, 21]
    assert prepared("cuda:0", no_memory, nothing, free=free) == (["beside", "in turn"], "")


def test_room_that_no_other_judge_holds_is_not_waited_for(prepared):
    tries = prepared("cuda:0", no_memory, nothing, free=[1, 5, 19, 21], others=False)
    assert tries == (["beside", "lean, alone"], "")


def test_what_needs_more_once_there_is_room_is_waited_for_again(prepared):
    free = [21, 29, 31]
    tries = prepared("cuda:0", no_memory, no_memory_for_more, nothing, free=free)
    assert tries == (["beside", "in turn", "in turn"], "")


def test_where_no_room_comes_less_must_do(prepared):
    assert prepared("cuda:0", no_memory, nothing, free=[1]) == (["beside", "lean, alone"], "")


def test_what_finds_none_for_the_least_is_too_large(prepared):
    tries, error = prepared("cuda:0", no_memory, no_memory, no_memory, others=False)
    assert tries == ["beside", "in turn", "lean, alone"]
    assert error.startswith("example.py: verifying it takes more memory than the device has free")


class TestBesideJudgesOfTheSameProblem:
    @pytest.fixture(autouse=True)
    def took(self, monkeypatch):
        monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _: 20 << 30)

    @pytest.mark.parametrize(("beside", "fits"), [(1, True), (2, True), (3, False)])
    def test_each_judge_needs_as_much_again(self, prepared, beside, fits):
        _, error = prepared("cuda:0", nothing, free=[60], beside=beside)
        assert error == ("" if fits else "example.py: too little memory for another judge")

    def test_a_spare_judge_waits_for_no_room(self, prepared):
        tries, error = prepared("cuda:0", no_memory, beside=1)
        assert tries == ["beside"]
        assert "more memory than the device has free" in error


def test_on_the_cpu_there_is_one_try(prepared):
    assert prepared("cpu", no_memory_told)[0] == ["beside"]


def test_other_trouble_is_no_reason_to_try_again(prepared):
    def broken():
        raise RuntimeError("shapes do not match")

    assert prepared("cuda:0", broken) == (["beside"], "shapes do not match")


class Memory:
    """The memory of a GPU in GiB, that several judges take from."""

    def __init__(self, total):
        self.total, self.taken, self.changing = total, 0, threading.Lock()

    def take(self, more):
        with self.changing:
            if self.taken + more > self.total:
                no_memory()
            self.taken += more

    def room(self, _device):
        return FreeMemory((self.total - self.taken) << 30, self.total << 30)


@pytest.mark.parametrize("others", [0, 3], ids=["alone", "beside small ones"])
def test_references_of_gigabytes_at_once_are_all_prepared_at_the_first_try(
    monkeypatch, tmp_path, others
):
    """Each has 6 GiB of inputs: 45 GiB for its truths, 84 to be timed, 70 until its search ends.

    Their baselines, which compile for minutes, are tried side by side.
    """
    monkeypatch.setenv("ADAEXPLORE_LOCKS", str(tmp_path))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _: None)
    monkeypatch.setattr(judge, "has_other_judges", lambda _: True)
    monkeypatch.setattr(turns, "has_other_judges", lambda _: True)
    monkeypatch.setattr(room, "_LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(turns, "PATIENCE_S", 10.0)
    monkeypatch.setattr(judge, "wanted_by", lambda *_: 84 << 30)
    memory, tries, all_try = Memory(140), [], threading.Barrier(5, timeout=20.0)

    def try_baselines(_server, problem, names):
        all_try.wait()
        with device_lock(problem.device, exclusive=True):
            return [BaselineTrial(name) for name in names]

    monkeypatch.setattr(judge, "try_baselines", try_baselines)
    monkeypatch.setattr(judge, "release_memory", lambda: None)
    for module in (judge, turns):
        monkeypatch.setattr(module, "room_on", memory.room)

    class Reference:
        def __init__(self, problem, _folder, *, turn, try_each, **_):
            self.problem, self.held = problem, 0
            self.large = problem.name == "large"
            tries.append(problem.name)
            if self.large:
                assert try_each(["eager"]) == [BaselineTrial("eager")]
                turn.enter_context(turns.turn_for_truths(86 << 30, problem.device))
            self.take(45 if self.large else 5)

        def __del__(self):
            memory.take(-self.held)

        def take(self, more):
            memory.take(more)
            self.held += more
            time.sleep(0.02)

        def try_baselines(self):
            """Those of small ones are tried here."""

        def complete(self):
            self.take(39 if self.large else 5)

        def time_baselines(self):
            self.take(-14 if self.large else -2)

        def measure_limits(self):
            """Takes no memory."""

    def search(name):
        problem = Problem(name, "class Model: ...", "triton", "cuda:0")
        request = Prepare(problem.to_json(), 0, brief=False, timeout_s=1.0)
        reference = judge._prepared(problem, tmp_path, None, request)
        time.sleep(0.05)
        return reference.held

    monkeypatch.setattr(judge, "Reference", Reference)
    names = [*["large"] * 5, *["small"] * others]
    with ThreadPoolExecutor(len(names)) as searches:
        held = list(searches.map(search, names))
    assert held == [70] * 5 + [8] * others
    assert sorted(tries) == sorted(names)
