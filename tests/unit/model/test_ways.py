"""A model timed end to end in its fastest way."""

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters

from adaexplore.model.calls import calls_of
from adaexplore.model.placements import Placements
from adaexplore.model.ways import Stopwatch


class Pointwise(nn.Module):
    """Many passes over memory, of which a compiler makes one."""

    def forward(self, x):
        for _ in range(30):
            x = x * 1.01 + 0.1
        return x


@pytest.mark.slow
def test_what_was_compiled_is_not_compiled_again_to_be_timed_beside_another():
    model = Pointwise().eval()
    watch = Stopwatch(model, calls_of([(torch.rand(1 << 21),)]), Placements(model), "fp32", "cpu")
    with torch.no_grad():
        first, second = watch.fastest(()), watch.fastest(())
        assert (first.ways, second.ways) == (("compile",), ("compile",))
        compiled = counters["frames"]["total"]
        watch.ratio(first, second)
    assert counters["frames"]["total"] == compiled


def test_the_fastest_kinds_of_compilation_are_tried_again():
    model = Pointwise().eval()
    told = []
    watch = Stopwatch(
        model, calls_of([(torch.rand(8),)]), Placements(model), "fp32", "cpu", told.append
    )
    with torch.no_grad():
        found = watch.fastest(())
        assert found.compilations(2) == {"compile"}
        assert watch.fastest((), found.compilations(0)).times_us[0].keys() == {"eager"}
    assert told == ["call-1: eager", "call-1: compile", "call-1: eager"]


class Broken(nn.Module):
    """A module within which a compiler has to begin anew."""

    def forward(self, x):
        x = x * 2
        torch._dynamo.graph_break()
        return x + 1


@pytest.mark.slow
def test_the_tenth_form_of_a_call_is_compiled_as_the_first():
    model = nn.Sequential(Broken()).eval()
    calls = calls_of([(torch.rand(size),) for size in range(8, 18)])
    watch = Stopwatch(model, calls, Placements(model), "fp32", "cpu")
    before = counters["stats"]["unique_graphs"]
    with torch.no_grad():
        watch.fastest(())
    assert counters["stats"]["unique_graphs"] - before == 2 * len(calls)
