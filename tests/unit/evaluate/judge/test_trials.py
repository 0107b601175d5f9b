"""Trials of baselines in processes of their own; here on the CPU, where they are otherwise not."""

import random
import time
from dataclasses import replace

import pytest

from adaexplore.core.problem import Problem, Workload
from adaexplore.evaluate.judge import trials
from adaexplore.evaluate.judge.trials import try_baselines
from adaexplore.evaluate.timing.baselines_trial import Trial
from adaexplore.evaluate.wire import codec

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


def test_what_was_tried_is_not_tried_again(server, kept):
    first = try_baselines(server, PROBLEM, ["eager"])
    assert try_baselines(None, PROBLEM, ["eager"]) == first
    first += try_baselines(server, PROBLEM, ["no-such-baseline"])
    assert try_baselines(None, PROBLEM, ["eager", "no-such-baseline"]) == first
    assert first[1].why.startswith("its process ended: StopIteration")
    assert len(list(kept.iterdir())) == 1


def test_another_problem_is_tried_by_itself(server, kept):
    try_baselines(server, PROBLEM, ["eager"])
    try_baselines(server, replace(PROBLEM, seed=1), ["eager"])
    assert len(list(kept.iterdir())) == 2


def test_a_damaged_file_is_no_trial(server, kept):
    try_baselines(server, PROBLEM, ["eager"])
    [file] = kept.iterdir()
    file.write_text('[{"baseline": "eager"}, {"time')
    [trial] = try_baselines(server, PROBLEM, ["eager"])
    assert trial.times_us


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


def test_one_that_does_not_apply_is_left_out(server, kept):
    [trial] = try_baselines(server, PROBLEM, ["eager-channels-last"])
    assert trial.why == "it does not apply"


class FakeWorkers:
    """Workers whose builds take a while, and a log of what they were asked and when they ended."""

    def __init__(self):
        self.log = []

    def spawn(self, entry, *, name):
        return FakeWorker(self.log)


class FakeWorker:
    def __init__(self, log):
        self.log, self.name = log, ""

    def call(self, message, timeout_s):
        if message:
            self.name = message["baseline"]
            time.sleep(0.2 if self.name == "b" else 0.0)
            self.log.append("built")
            return codec.write(Trial(self.name))
        self.log.append("timed")
        return codec.write(Trial(self.name, {"inputs": 1.0}))

    def end(self):
        self.log.append("ended")


def test_none_is_timed_while_another_compiles(kept):
    workers = FakeWorkers()
    tried = try_baselines(workers, PROBLEM, list("abcd"))
    assert [trial.baseline for trial in tried] == list("abcd")
    assert workers.log == [
        *("built", "built", "built", "timed", "timed", "timed", "ended", "ended", "ended"),
        *("built", "timed", "ended"),
    ]
