"""Trials of baselines in processes of their own; here on the CPU, where they are otherwise not."""

import os
import random
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from adaexplore.core import codec
from adaexplore.core.errors import InfrastructureError
from adaexplore.core.problem import Problem, Workload
from adaexplore.evaluate.judge import trials
from adaexplore.evaluate.judge.trials import try_baselines
from adaexplore.evaluate.timing.baselines import trial as trial_module
from adaexplore.evaluate.timing.baselines.trial import BaselineTrial
from adaexplore.evaluate.truth.device_memory.room import FreeMemory
from adaexplore.sandbox.cores import CORES
from adaexplore.sandbox.lock import device_lent, device_lock, lock_file
from device_locks import is_free

SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(64, 64)]

def get_more():
    return [torch.randn(256, 256)]
"""
COMPILING = 'torch.compiler.set_stance("default")'  # the tests' server compiles nothing
PROBLEM = Problem("example", SOURCE, "cpp", "cpu")
TWO = replace(
    PROBLEM,
    workloads=(
        Workload("untimed", timed=False),
        Workload("small"),
        Workload("large", draw="get_more()"),
    ),
)


@pytest.fixture
def kept(monkeypatch, tmp_path):
    monkeypatch.setattr(trials, "share_compiled", lambda: tmp_path)
    return tmp_path / "baselines"


def test_a_time_for_each_timed_workload(server, kept):
    [trial] = try_baselines(server, TWO, ["eager"])
    assert trial.times_us.keys() == {"small", "large"}
    assert min(trial.times_us.values()) > 0
    assert (trial.baseline, trial.why) == ("eager", "")


def test_where_candidates_could_write_nothing_is_kept(server, monkeypatch):
    monkeypatch.setattr(trials, "share_compiled", lambda: None)
    [trial] = try_baselines(server, PROBLEM, ["eager"])
    assert trial.times_us


def test_no_memory_now_may_be_memory_later(server, kept):
    source = SOURCE.replace(
        "return torch.relu(x)", 'raise torch.OutOfMemoryError("CUDA out of memory")'
    )
    [trial] = try_baselines(server, replace(PROBLEM, source=source), ["eager"])
    assert trial.why == "it does not fit on the device beside what else is there"
    [file] = kept.iterdir()
    assert file.read_text() == "[]"


def test_one_that_is_not_compiled_in_time_is_left_out(server, kept):
    new = f"return x + {random.random()}"  # Inductor keeps what it has compiled
    source = SOURCE.replace("return torch.relu(x)", new) + COMPILING
    [trial] = try_baselines(server, replace(PROBLEM, source=source), ["compile"], compile_s=0.01)
    assert trial.why == "it is not compiled after 0.01 s"
    assert trial.lasts


def test_a_crash_is_told_in_one_line(server, kept):
    [trial] = try_baselines(server, PROBLEM, ["no-such-baseline"])
    assert trial.why.startswith("its process ended: StopIteration")
    assert not trial.lasts


def test_of_a_long_message_the_exception_is_told(server, kept):
    source = SOURCE.replace("return torch.relu(x)", 'raise SystemExit("bad\\nadvice")')
    [trial] = try_baselines(server, replace(PROBLEM, source=source), ["eager"])
    assert trial.why == "its process ended: SystemExit: bad"


def test_one_that_could_not_begin_for_lack_of_memory_is_tried_again():
    def begin():
        raise InfrastructureError("others hold all memory")

    trial = trial_module._outcome("eager", "cuda:0", begin)
    assert (trial.why, trial.lasts) == ("others hold all memory", False)
    assert trial.wanted > 0


def test_one_that_does_not_apply_is_left_out(server, kept):
    [trial] = try_baselines(server, PROBLEM, ["eager-channels-last"])
    assert trial.why == "it does not apply"


def test_a_reference_without_memory_is_no_crash(server, kept):
    source = SOURCE.replace(
        "return [torch.randn(64, 64)]", 'raise torch.OutOfMemoryError("CUDA out of memory")'
    )
    [trial] = try_baselines(server, replace(PROBLEM, source=source), ["eager"])
    assert trial.why == "it does not fit on the device beside what else is there"
    assert not trial.lasts


def is_held_alone(device):
    return not is_free(lock_file(device))


class FakeWorkers:
    """Workers whose builds take a while, and a log of what they were asked and when they ended."""

    def __init__(self, **outcome):
        self.log = []
        self.outcome = outcome

    def spawn(self, entry, *, name):
        return FakeWorker(self.log, self.outcome)

    def tried(self, problem=PROBLEM, names=("a",)):
        """Try baselines; return the trials, and the number of those that were timed for it."""
        before = self.log.count("timed")
        trials = try_baselines(self, problem, names)
        return trials, self.log.count("timed") - before


class FakeWorker:
    def __init__(self, log, outcome):
        self.log, self.outcome, self.name = log, outcome, ""
        self.pid = os.getpid()

    def call(self, message, timeout_s):
        if message:
            self.name, self.device = message["baseline"], message["problem"]["device"]
            time.sleep(0.2 if self.name == "slow" else 0.0)
            self.log.append("built")
            return codec.write(BaselineTrial(self.name))
        self.log.append("timed")
        assert is_held_alone(self.device), "another may use the device"
        return codec.write(BaselineTrial(self.name, {"inputs": 1.0}, **self.outcome))

    def end(self):
        self.log.append("ended")


def test_none_is_timed_while_another_compiles(kept):
    workers = FakeWorkers()
    names = ["a", "slow", "c", "d"]
    tried = try_baselines(workers, PROBLEM, names)
    assert [trial.baseline for trial in tried] == names
    assert workers.log == [
        *("built", "built", "built", "timed", "timed", "timed", "ended", "ended", "ended"),
        *("built", "timed", "ended"),
    ]


@pytest.mark.skipif(not os.sched_getaffinity(0) >= {0, 1}, reason="needs processors 0 and 1")
@pytest.mark.parametrize(("given", "niceness"), [("1/0", 10), ("", 0)])
def test_building_stands_behind_where_measurements_have_cores(
    server, kept, monkeypatch, given, niceness
):
    monkeypatch.setenv(CORES, given)
    check = f"import os\n        assert os.getpriority(os.PRIO_PROCESS, 0) == {niceness}\n        "
    source = SOURCE.replace("return torch.relu(x)", f"{check}return torch.relu(x)")
    [trial] = try_baselines(server, replace(PROBLEM, source=source), ["eager"])
    assert trial.why == ""


class TestRoom:
    """A baseline that lacks memory once, on a device that gives some back."""

    @pytest.fixture
    def tried(self, kept, monkeypatch):
        def tried(*free):
            workers, readings = LackingWorkers(), list(free)
            monkeypatch.setattr(
                trials, "room_on", lambda _: FreeMemory(readings.pop(0) << 30, 80 << 30)
            )
            monkeypatch.setattr(time, "sleep", lambda _: None)
            monkeypatch.setattr(trials, "_WAITING_S", 4.0)
            return try_baselines(workers, PROBLEM, ["large", "b"]), workers.log

        return tried

    def test_it_is_tried_alone_once_there_is_room(self, tried):
        [large, _], log = tried(10, 21)
        assert large.times_us
        assert log == ["built", "timed", "ended", "ended", "built", "timed", "ended"]

    def test_where_none_comes_it_is_left_out(self, tried):
        [large, other], log = tried(10, 10, 10)
        assert (large.why, bool(other.times_us)) == ("no room", True)
        assert log.count("ended") == 2


class LackingWorkers(FakeWorkers):
    """Workers of which the first has no memory for the baseline `large`."""

    def __init__(self):
        super().__init__()
        self.lacking = True

    def spawn(self, entry, *, name):
        return LackingWorker(self)


class LackingWorker(FakeWorker):
    def __init__(self, workers):
        super().__init__(workers.log, {})
        self.workers = workers

    def call(self, message, timeout_s):
        if message.get("baseline") == "large" and self.workers.lacking:
            self.workers.lacking = False
            return codec.write(BaselineTrial("large", why="no room", wanted=20 << 30, lasts=False))
        return super().call(message, timeout_s)


class TestKept:
    def test_what_was_tried_is_not_tried_again(self, kept):
        workers = FakeWorkers()
        first, timed = workers.tried(names=["a", "b"])
        assert timed == 2
        assert workers.tried(names=["a", "b"]) == (first, 0)
        assert workers.tried(names=["b", "c", "a"])[1] == 1
        assert len(list(kept.iterdir())) == 1

    @pytest.mark.parametrize("outcome", [{"why": "no memory"}, {"waited": 0.3}])
    def test_what_does_not_last_is_tried_again(self, kept, outcome):
        workers = FakeWorkers(**outcome, lasts=False)
        assert workers.tried()[1] == workers.tried()[1] == 1

    def test_what_was_tried_before_an_interruption_is_kept(self, kept):
        workers = FakeWorkers()

        class Interrupted(FakeWorkers):
            def spawn(self, entry, *, name):
                if self.log.count("timed") == 3:
                    raise KeyboardInterrupt
                return super().spawn(entry, name=name)

        names = ["a", "b", "c", "d"]
        with pytest.raises(KeyboardInterrupt):
            try_baselines(Interrupted(), PROBLEM, names)
        assert workers.tried(names=names)[1] == 1

    def test_a_failure_that_lasts_is_kept_with_its_reason(self, kept):
        workers = FakeWorkers(why="it cannot be captured")
        first, _ = workers.tried()
        assert workers.tried() == (first, 0)

    def test_a_damaged_file_is_no_trial(self, kept):
        workers = FakeWorkers()
        first, _ = workers.tried()
        [file] = kept.iterdir()
        file.write_text('[{"baseline": "a"}, {"time')
        assert workers.tried() == (first, 1)
        assert workers.tried() == (first, 0)

    @pytest.mark.parametrize("change", [{"seed": 1}, {"source": SOURCE + "#"}, {"mode": "eval"}])
    def test_another_problem_is_tried_by_itself(self, kept, change):
        workers = FakeWorkers()
        workers.tried()
        assert workers.tried(replace(PROBLEM, **change))[1] == 1
        assert workers.tried()[1] == 0

    def test_files_of_an_earlier_form_are_not_read(self, kept, monkeypatch):
        workers = FakeWorkers()
        with monkeypatch.context() as earlier:
            earlier.setattr(trials, "_FORM", "0")
            workers.tried()
        assert workers.tried()[1] == 1


@pytest.fixture
def machine(monkeypatch):
    """Return a function that makes this a machine with a GPU and these versions."""

    def make(gpu="H200", torch_version="2.11", cuda="13.0", triton="3.6", cudnn=91000):
        properties = SimpleNamespace(name=gpu)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
        monkeypatch.setattr(torch, "__version__", torch_version)
        monkeypatch.setattr(torch.version, "cuda", cuda)
        monkeypatch.setattr(trials, "triton_version", lambda: triton)
        monkeypatch.setattr(torch.backends.cudnn, "version", lambda: cudnn)

    return make


def test_who_lent_a_gpu_has_it_back_while_baselines_are_timed(kept, machine):
    machine()
    with device_lock("cuda:0", exclusive=True), device_lent("cuda:0"):
        assert FakeWorkers().tried(replace(PROBLEM, device="cuda:0"))[1] == 1
        assert not is_held_alone("cuda:0")


@pytest.mark.parametrize(
    "other",
    [
        {"gpu": "H100"},
        {"torch_version": "2.12"},
        {"cuda": "12.9"},
        {"cuda": None},
        {"triton": "3.7"},
        {"triton": ""},
        {"cudnn": 91001},
        {"torch_version": "2.111", "cuda": "3.0"},  # the same characters, one after the other
    ],
)
def test_another_gpu_or_version_is_tried_by_itself(kept, machine, other):
    on_gpu, workers = replace(PROBLEM, device="cuda:0"), FakeWorkers()
    machine()
    workers.tried(on_gpu)
    machine(**other)
    assert workers.tried(on_gpu)[1] == 1
    machine()
    assert workers.tried(on_gpu)[1] == 0
