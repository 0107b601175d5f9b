"""Baselines as the judge builds, checks and chooses them, on the CPU; some are made up."""

import contextlib
import os
import time
from typing import ClassVar

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters

from adaexplore.core.problem import Problem
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.timing.baselines import built as baselines_built
from adaexplore.evaluate.timing.baselines import offered as baselines_offered
from adaexplore.evaluate.timing.baselines.built import by_speed, strongest
from adaexplore.evaluate.timing.baselines.offered import (
    Baseline,
    Subject,
    captured,
    channels_last,
    compiled,
    eager,
    names_offered,
)
from adaexplore.evaluate.timing.baselines.trial import BaselineTrial
from adaexplore.sandbox.family import threads_of
from adaexplore.sandbox.user.training import TrainingStep, gradients_of
from adaexplore.sandbox.user.values import Inputs

SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(32, 16)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(8, 32)]
"""


def subject(model, *shapes, device="cpu"):
    return Subject(model, Inputs([torch.randn(shape) for shape in shapes]), device)


def slowed(seconds):
    def build(subject):
        call = eager(subject)

        def later(inputs):
            time.sleep(seconds)
            return call(inputs)

        return later

    return build


def wrong(subject):
    call = eager(subject)
    return lambda inputs: [(path, t + 1.0) for path, t in call(inputs)]


def frozen(subject):
    """Outputs of the inputs that it was built with, as of a graph whose inputs are not copied."""
    outputs = eager(subject)(subject.inputs)
    return lambda inputs: outputs


def overwriting(subject):
    """Every call's outputs in the same place, as of a graph whose outputs are not copied."""
    call, [(path, place)] = eager(subject), eager(subject)(subject.inputs)

    def again(inputs):
        place.copy_(call(inputs)[0][1])
        return [(path, place)]

    return again


def failing(subject):
    raise RuntimeError("it cannot be captured\nand more lines")


@pytest.fixture
def offers(monkeypatch):
    """Offer these baselines beside eager."""

    def offers(**builds):
        entries = [Baseline(name.replace("_", "-"), build) for name, build in builds.items()]
        monkeypatch.setattr(baselines_offered, "OFFERED", (Baseline("eager", eager), *entries))

    return offers


@pytest.fixture
def reference(tmp_path):
    return Reference(Problem("example", SOURCE, "cpp", "cpu"), tmp_path)


@pytest.fixture
def tried(tmp_path):
    """Returns a reference whose baselines were tried, with these outcomes."""

    def tried(*trials):
        problem = Problem("example", SOURCE, "cpp", "cpu")
        reference = Reference(problem, tmp_path, try_each=lambda _: list(trials))
        reference.try_baselines()
        return reference

    return tried


def watching(seen):
    """Note the fewest processors that a thread of this process may use in each call.

    The busiest threads are placed, and after other tests the calling one may not be among them.
    """

    def build(subject):
        call = eager(subject)

        def watched(inputs):
            allowed = []
            for thread in threads_of(os.getpid()):
                with contextlib.suppress(ProcessLookupError):  # threads of earlier tests end
                    allowed.append(len(os.sched_getaffinity(thread)))
            seen.append(min(allowed))
            return call(inputs)

        return watched

    return build


class TestTimed:
    """Baselines are timed as candidates are, on inputs that no candidate can reach."""

    def test_threads_have_processors_of_their_own_and_get_back_what_they_had(
        self, offers, reference
    ):
        seen, before = [], os.sched_getaffinity(0)
        offers(watched=watching(seen))
        workload = reference.first
        assert workload.baselines.build("watched")
        workload.prepare_timing()
        seen.clear()
        workload.baselines.time(workload.fresh, ["watched"])
        assert seen[-1] == 1
        assert os.sched_getaffinity(0) == before

    def test_they_work_on_none_of_the_slots_that_candidates_can_write_to(self, offers, reference):
        seen = []

        def build(subject):
            call = eager(subject)

            def watched(inputs):
                seen.append(inputs.args[0].data_ptr())
                return call(inputs)

            return watched

        offers(watched=build)
        workload = reference.first
        assert workload.baselines.build("watched")
        workload.prepare_timing()
        seen.clear()
        workload.baselines.time(workload.fresh, ["watched"])
        shared = [slot.args[0].data_ptr() for slot in workload.fresh.given.inputs]
        shared += [checked.inputs.args[0].data_ptr() for checked in workload.sets]
        assert seen
        assert not set(seen) & set(shared)

    def test_what_passing_the_turnstile_costs_is_part_of_what_the_judge_found(
        self, offers, reference
    ):
        workload = reference.first
        workload.prepare_timing()
        workload.baselines.time(workload.fresh, ["eager"])
        assert 1.0 < workload.baselines.own.overhead_us < 1e6


class TestOffered:
    @pytest.mark.parametrize(
        ("model", "shape", "more"),
        [
            (nn.Linear(8, 8), (2, 8), set()),
            (nn.Conv1d(3, 4, 3), (2, 3, 8), set()),
            (nn.Conv2d(3, 4, 3), (2, 3, 8, 8), {"eager-channels-last"}),
            (nn.ConvTranspose3d(3, 4, 3), (2, 3, 8, 8, 8), {"eager-channels-last"}),
            (nn.Conv2d(3, 4, 3), (2, 192), set()),
        ],
    )
    def test_on_the_cpu_only_what_builds_fast_and_applies(self, model, shape, more):
        assert set(names_offered(subject(model, shape))) == {"eager", "compile"} | more

    def test_on_a_gpu_graphs_and_tuning_too(self):
        names = names_offered(subject(nn.Conv2d(3, 4, 3), (2, 3, 8, 8), device="cuda:0"))
        assert set(names) >= {
            "eager-cuda-graph",
            "compile-reduce-overhead",
            "compile-max-autotune",
            "compile-channels-last",
        }


class TestChannelsLast:
    MODEL = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(2), nn.Conv1d(4, 4, 3))

    def test_the_result_is_the_same(self):
        one = subject(self.MODEL, (2, 3, 8, 8))
        with torch.no_grad():
            [(_, expected)] = eager(one)(one.inputs)
            [(_, out)] = channels_last(eager)(one)(one.inputs)
        torch.testing.assert_close(out, expected)

    def test_the_layout_is_a_copy_s(self):
        seen = []

        def build(converted):
            seen.append((converted.model[0].weight, converted.inputs.args[0]))
            return eager(converted)

        channels_last(build)(subject(self.MODEL, (2, 3, 8, 8)))
        for tensor in seen[0]:
            assert tensor.is_contiguous(memory_format=torch.channels_last)
        assert self.MODEL[0].weight.is_contiguous()


class Reusing(nn.Module):
    """A module as CUDA graph trees run it: each call overwrites the output of the call before."""

    def __init__(self):
        super().__init__()
        self.place = torch.zeros(2, 4)

    def forward(self, x):
        return self.place.copy_(x)


def test_of_a_training_step_the_module_is_compiled_forward_and_backward():
    model, inputs = nn.Linear(4, 3), Inputs([torch.rand(2, 4)])
    step = TrainingStep(model, gradients_of(model, inputs))
    given = step.with_upstream(inputs)
    torch.compiler.reset()
    counters.clear()
    found = compiled()(Subject(step, given, "cpu"))(given)
    expected = eager(Subject(step, given, "cpu"))(given)
    assert [path for path, _ in found] == [path for path, _ in expected]
    torch.testing.assert_close([t for _, t in found], [t for _, t in expected])
    assert counters["stats"]["unique_graphs"] == 1
    assert counters["graph_break"] == {}
    assert counters["aot_autograd"]["ok"] == 1


@pytest.mark.parametrize("mode", ["reduce-overhead", "max-autotune"])
def test_outputs_that_the_next_call_overwrites_are_cloned_in_the_call(monkeypatch, mode):
    monkeypatch.setattr(torch, "compile", lambda model, **_: model)
    call = compiled(mode)(subject(Reusing(), (2, 4)))
    [(_, zeros)] = call(Inputs([torch.zeros(2, 4)]))
    call(Inputs([torch.ones(2, 4)]))
    assert not zeros.any()


def test_outputs_that_last_are_not_cloned(monkeypatch):
    class Keeping(nn.Module):
        def forward(self, x):
            self.out = x + 1.0
            return self.out

    model = Keeping()
    monkeypatch.setattr(torch, "compile", lambda model, **_: model)
    call = compiled("max-autotune")(subject(model, (2, 4)))
    [(_, out)] = call(Inputs([torch.zeros(2, 4)]))
    assert out is model.out


class FixedAddresses:
    """A captured call as CUDA replays it: from the same inputs, to the same outputs."""

    def __init__(self, call):
        self._call = call
        self.outputs = call()

    def replay(self):
        for (_, place), (_, tensor) in zip(self.outputs, self._call(), strict=True):
            place.copy_(tensor)


def test_a_replay_copies_inputs_in_and_outputs_out(monkeypatch):
    def capture(call, device):
        graph = FixedAddresses(call)
        return graph, graph.outputs

    monkeypatch.setattr(baselines_offered, "warm_aside", lambda *_: None)
    monkeypatch.setattr(baselines_offered, "capture", capture)
    one = subject(nn.Threshold(-9.0, 0.0), (2, 4))
    given = one.inputs.args[0].clone()
    call = captured(one)
    first, second = torch.ones(2, 4), torch.zeros(2, 4)
    [(_, ones)] = call(Inputs([first]))
    [(_, zeros)] = call(Inputs([second]))
    assert torch.equal(ones, first)
    assert torch.equal(zeros, second)
    assert torch.equal(one.inputs.args[0], given)


def test_dynamo_keeps_the_code_of_every_baseline_and_workload(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda model, **_: model)
    with torch._dynamo.config.patch(recompile_limit=8):
        compiled()(Subject(nn.Linear(4, 4), Inputs([torch.zeros(2, 4)]), "cpu", forms=5))
        assert torch._dynamo.config.recompile_limit >= 5 * len(baselines_offered.OFFERED)


class TestChoice:
    def test_the_two_fastest_are_timed_beside_candidates(self, reference, offers, monkeypatch):
        monkeypatch.setattr(baselines_built, "_CLOSE", 1e9)
        offers(compile=slowed(0.02), eager_slow=slowed(0.01), eager_fast=slowed(0.0005))
        reference.complete()
        reference.time_baselines()
        assert set(reference.beside) == {"eager", "eager-fast"}
        assert set(reference.every) == {"eager", "compile", "eager-slow", "eager-fast"}
        assert set(reference.facts().baselines_us) == set(reference.every)

    @pytest.mark.parametrize("bad", [wrong, frozen, overwriting, failing])
    def test_one_that_fails_or_is_wrong_is_left_out_with_a_note(self, reference, offers, bad):
        offers(compile_bad=bad)
        reference.complete()
        assert reference.every == ("eager",)
        why = "it cannot be captured" if bad is failing else "its result is wrong"
        assert reference.notes[-1] == f"baseline compile-bad is left out: {why}"

    def test_after_trials_only_the_two_fastest_are_built(self, tried, offers):
        built = []

        def noted(name):
            def build(subject):
                built.append(name)
                return slowed(0.001)(subject)

            return build

        names = ("compile", "compile-a", "compile-b", "compile-c")
        offers(**{name.replace("-", "_"): noted(name) for name in names})
        times_us = {"eager": 900.0, "compile": 700.0, "compile-a": 500.0, "compile-b": 600.0}
        trials = [BaselineTrial(name, {"inputs": us}) for name, us in times_us.items()]
        reference = tried(*trials, BaselineTrial("compile-c", why="it crashed"))
        reference.complete()
        assert built == ["compile-a", "compile-b"]
        assert reference.notes[-1] == "baseline compile-c is left out: it crashed"
        reference.time_baselines()
        assert set(reference.beside) <= {"eager", "compile-a", "compile-b"}
        assert reference.facts().baselines_us["compile"] == pytest.approx(700.0)
        assert reference.complete_baselines()
        assert built == ["compile-a", "compile-b", "compile"]
        assert not reference.complete_baselines()

    def test_the_next_fastest_takes_the_place_of_one_that_is_wrong(self, tried, offers):
        offers(compile_a=wrong, compile_b=slowed(0.0), compile_c=slowed(0.0), compile_d=slowed(0.0))
        times_us = {"eager": 9.0, "compile-a": 1.0, "compile-b": 2.0, "compile-c": 3.0}
        trials = [BaselineTrial(name, {"inputs": us}) for name, us in times_us.items()]
        reference = tried(*trials, BaselineTrial("compile-d", {"inputs": 4.0}))
        reference.complete()
        assert set(reference.every) == {"eager", "compile-b", "compile-c"}
        reference.time_baselines()
        assert "compile-a" not in reference.facts().baselines_us
        assert "compile-d" in reference.facts().baselines_us

    def test_trials_on_a_busy_machine_are_told(self, tried):
        reference = tried(BaselineTrial("eager", {"inputs": 9.0}, waited=0.07))
        reference.complete()
        reference.time_baselines()
        assert "their threads waited for " in reference.notes[-1]
        assert int(reference.notes[-1].partition("waited for ")[2].partition("%")[0]) >= 7

    def test_where_every_trial_failed_eager_is_left(self, tried):
        reference = tried(*(BaselineTrial(name, why="no memory") for name in ("eager", "compile")))
        reference.complete()
        reference.time_baselines()
        assert reference.beside == ("eager",)

    def test_each_is_tried_once_and_eager_with_the_first(self, tmp_path, offers):
        asked = []

        def try_each(names):
            asked.append(list(names))
            return [BaselineTrial(name, {"inputs": 1.0}) for name in names]

        offers(compile_a=slowed(0.0))
        problem = Problem("example", SOURCE, "cpp", "cpu")
        reference = Reference(problem, tmp_path, try_each=try_each)
        reference.try_baselines()
        offers(compile_a=slowed(0.0), compile_b=slowed(0.0))
        reference.try_baselines()
        reference.try_baselines()
        assert asked == [["eager", "compile-a"], ["compile-b"]]

    def test_a_brief_reference_has_eager_alone(self, tmp_path, offers):
        offers(compile=failing)
        problem = Problem("example", SOURCE, "cpp", "cpu")
        reference = Reference(problem, tmp_path, brief=True, try_each=failing)
        reference.try_baselines()
        reference.complete()
        assert (reference.every, reference.notes) == (("eager",), [])


class TestRanking:
    SMALL: ClassVar = {"eager": 1.0, "compile": 2.0, "a": 5.0, "b": 6.0}
    LARGE: ClassVar = {"eager": 90.0, "compile": 40.0, "a": 3.0, "b": 4.0, "c": 1.0}

    def test_the_geometric_mean_over_workloads_counts(self):
        assert by_speed([self.SMALL, self.LARGE]) == ["a", "b", "compile", "eager"]

    def test_the_fastest_of_each_workload_is_beside(self):
        assert strongest([self.SMALL, self.LARGE]) == ("a", "b", "eager")

    @pytest.mark.parametrize(("second", "beside"), [(80.0, ("a", "eager")), (100.0, ("a",))])
    def test_a_second_that_is_far_slower_takes_no_time_beside_candidates(self, second, beside):
        assert strongest([{"eager": second, "a": 20.0, "b": 200.0}] * 2) == ("a",)
        assert strongest([{"eager": second, "a": 30.0}, {"eager": 40.0, "a": 30.0}]) == beside
