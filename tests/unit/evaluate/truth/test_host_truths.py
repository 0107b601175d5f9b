"""Truths in the host's memory, while outputs are on a GPU; both are pretended here."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

from adaexplore.core.problem import Likeness, Problem, Tolerance
from adaexplore.evaluate.truth import mismatch, runs
from adaexplore.evaluate.truth.compare import share_within, unlikeness
from adaexplore.evaluate.truth.device_memory import pieces
from adaexplore.evaluate.truth.labels import labels_of
from adaexplore.evaluate.truth.mismatch import find_mismatch
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.evaluate.truth.truth import Truths
from adaexplore.sandbox.user.user_code import Instance

SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(32, 48)

    def forward(self, x):
        y = self.linear(x)
        return {returned}

def get_inputs():
    return [torch.randn(64, 32)]
"""


aten = torch.ops.aten


class Devices(TorchDispatchMode):
    """Tells apart the tensors of a pretended GPU and those of its host, and lets no operation mix.

    Only a single number of the host may meet tensors of the GPU, and one may be copied to the
    other, as with a real one.
    """

    def __init__(self):
        super().__init__()
        self.on_host = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        sides = {self.is_on_host(t) for t in given if t.dim() or not self.is_on_host(t)}
        assert len(sides) < 2 or func is aten.copy_.default, f"{func} on tensors of two devices"
        result = func(*args, **(kwargs or {}))
        if sides == {True}:
            self.put_on_host(*tree_leaves(result))
        return result

    def is_on_host(self, t):
        return t.untyped_storage()._cdata in self.on_host

    def put_on_host(self, *found):
        for t in found:
            if isinstance(t, torch.Tensor):
                storage = t.untyped_storage()
                self.on_host[storage._cdata] = storage  # kept, so that no other takes its place


@pytest.fixture(params=[1, 2], ids=["all", "every other"])
def devices(request, monkeypatch):
    """Keeps all truths, or every other, on the host; `to` a device makes a tensor of the GPU."""
    devices, to = Devices(), torch.Tensor.to
    count = itertools.count()

    def kept(value):
        with _disable_current_modes():
            copy = value.clone(memory_format=torch.contiguous_format)
        if next(count) % request.param == 0:
            devices.put_on_host(copy)
        return copy

    def moved(self, *args, **kwargs):
        if not (args and isinstance(args[0], torch.device)):
            return to(self, *args, **kwargs)
        with _disable_current_modes():
            return self.clone()

    monkeypatch.setattr(runs, "kept", kept)
    monkeypatch.setattr(torch.Tensor, "to", moved)
    monkeypatch.setattr(pieces, "ON_CPU", 512)
    monkeypatch.setattr(mismatch, "DESCRIBED", 512)
    with devices:
        yield devices


@pytest.fixture
def judged(tmp_path, devices):
    def judged(returned, precision="fp32"):
        source = SOURCE.format(returned=returned)
        problem = Problem("two", source, "triton", "cpu", target="sm_90")
        instance = Instance.load(
            source, "Model", device="cpu", seed=0, mode="as-built", folder=tmp_path
        )
        own = ReferenceRuns(problem, instance, instance.inputs(0))
        return own, Truths(own, [])

    return judged


RETURNED = [
    "(y, y.topk(3).values, y.topk(3).indices)",
    "((y * 8).to(torch.int32), y > 0)",
    pytest.param("torch.round(y * 8) / 8", marks=pytest.mark.slow),
    pytest.param("torch.where(y > 0, y, float('-inf'))", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("returned", RETURNED)
def test_verification_moves_truths_to_the_device_piece_by_piece(judged, devices, returned):
    own, truths = judged(returned)
    assert len(truths.sets) > 3
    first = truths.sets[0]
    assert devices.is_on_host(first.truths[0].value)
    outputs = [t for _, t in own.run("fp32", first.inputs)]
    for out, truth in zip(outputs, first.truths, strict=True):
        assert truth.classify(truth.deviation(out)) == "fp32"
        assert truth.deviation(out + 1).norm > 0.01
        assert share_within(out, truth, Tolerance(1e-3, 1e-3, "a")) == 1.0
        assert not unlikeness(out, truth, Likeness(0.99, 0.1, 0.1, "a"))
        others = {"b": truths.sets[1].truths[0].value} if out.dim() == 2 else {}
        others = {name: t for name, t in others.items() if t.shape == out.shape}
        found = find_mismatch(
            torch.zeros_like(out),
            truth.value,
            output="output",
            inputs="own",
            others=others,
            ties=truth.excused(out),
        )
        assert found.share > 0.3
    assert truths.of(first.inputs)
    labels_of(own, truths)


def test_an_operation_on_both_is_noticed(devices):
    one, other = torch.ones(3), torch.ones(3)
    devices.put_on_host(other)
    with pytest.raises(AssertionError, match="two devices"):
        one + other
    assert (one + other.to(torch.device("cpu"))).tolist() == [2.0] * 3
