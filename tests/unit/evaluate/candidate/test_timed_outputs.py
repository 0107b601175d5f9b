"""A real process of a candidate delivers the outputs of timed calls to the judge's memory.

On a GPU the honest layouts of the corpus do: memory there is shared between judges and candidates
alone, not with a process of tests.
"""

import base64
import pickle
import textwrap
import time
from types import SimpleNamespace

import pytest
import torch

from adaexplore.core.problem import Access
from adaexplore.evaluate.judge.conversation import Conversation, Stop
from adaexplore.evaluate.judge.load import give_slots
from adaexplore.evaluate.judge.timed import timed_calls
from adaexplore.evaluate.timing.audit import Own
from adaexplore.evaluate.timing.fresh import FreshInputs
from adaexplore.evaluate.wire import messages as wire
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import Arguments, tensors_of

CALLS = 2
SOURCE = """
import torch
from torch import nn

class {name}(nn.Module):
    def forward(self, x):
        return {result}

def get_inputs():
    return [torch.randn(8, 16)]
"""


@pytest.fixture
def fresh(tmp_path):
    source = SOURCE.format(name="Model", result="x * 2")
    reference = Instance.load(
        source, "Model", device="cpu", seed=0, mode="as-built", folder=tmp_path
    )
    first = reference.inputs(0)
    return FreshInputs(reference, first, reference(first), CALLS)


@pytest.fixture
def timed(server, fresh):
    """Time two calls of a candidate that returns `result`; its outputs had `strides` before."""
    workers = []

    def timed(result, strides):
        worker = server.spawn("adaexplore.evaluate.candidate.worker:main", name="candidate")
        workers.append(worker)
        talk = Conversation(worker, time.monotonic() + 60.0)
        init = base64.b64encode(pickle.dumps(Arguments())).decode()
        source = textwrap.dedent(SOURCE.format(name="ModelNew", result=result))
        talk.ask(wire.Load(source, "cpu", 0, "as-built", "fp32", Access(), init))
        baselines = SimpleNamespace(own=Own(0.0))
        workload = SimpleNamespace(name="w", fresh=fresh, first_slot=0, baselines=baselines)
        reference = SimpleNamespace(timed=[workload], problem=SimpleNamespace(device="cpu"))
        give_slots(talk, reference, {"w": (strides,)})
        fresh.poison(CALLS)
        timed_calls(talk, workload, CALLS)

    yield timed
    for worker in workers:
        worker.kill()


@pytest.mark.parametrize(
    ("result", "strides"),
    [
        pytest.param("(x * 2).t().contiguous().t()", (1, 8), id="as verified"),
        pytest.param("x * 2", (1, 8), id="contiguous in place of transposed"),
        pytest.param("(x * 2).t().contiguous().t()", (16, 1), id="transposed"),
        pytest.param("torch.cat([x * 2, x], 1)[:, :16]", (32, 1), id="with gaps"),
        pytest.param("x * 2", (1 << 40, -3), id="forged strides"),
    ],
)
def test_every_output_is_right_in_the_places_of_the_verified_layout(timed, fresh, result, strides):
    timed(result, strides)
    [places] = fresh.places((strides,))
    for slot, place in zip(fresh.given.inputs, places.tensors, strict=True):
        assert torch.equal(place, tensors_of(slot)[0] * 2)


def test_an_output_in_the_verified_layout_is_copied_in_the_order_of_memory(timed, fresh):
    timed("(x * 2).t().contiguous().t()", (1, 8))
    [ring] = fresh.out_rings
    for slot, place in zip(fresh.given.inputs, ring.tensors, strict=True):
        assert torch.equal(place.flatten(), (tensors_of(slot)[0] * 2).t().flatten())


def test_a_row_that_a_copy_would_repeat_is_refused(timed):
    with pytest.raises(Stop, match=r"output is 1x16 of torch\.float32 on cpu in a timed call"):
        timed("x[:1] * 2", (16, 1))
