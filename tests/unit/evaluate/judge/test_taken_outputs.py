"""Outputs of timed calls as the judge takes them; the candidate's process is played by the test."""

import os
import sys
from types import SimpleNamespace

import pytest
import torch

from adaexplore.core.verdict.evaluation import Failed
from adaexplore.evaluate.judge.check import Reached
from adaexplore.evaluate.judge.conversation import Stop
from adaexplore.evaluate.judge.timed import TimedCandidate
from adaexplore.evaluate.timing.audit import Own
from adaexplore.evaluate.timing.fresh import FreshInputs
from adaexplore.evaluate.timing.turnstile.on_host import HostGate, HostTurnstile
from adaexplore.evaluate.wire import messages as wire
from adaexplore.sandbox.user.user_code import Instance

CALLS = 2
BLOCKS = 14
SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.randn(8, 16)]
"""

timed_module = sys.modules[TimedCandidate.__module__]


class PlayedProcess:
    """A candidate's process that times its calls as `play(gate, slots, places)` does."""

    pid = os.getpid()
    created_tasks = 0

    def __init__(self, play, fresh):
        self.turnstile = HostTurnstile()
        self._play, self._fresh = play, fresh

    def freeze(self):
        pass

    def thaw(self):
        pass

    def ask(self, request):
        if isinstance(request, wire.Time):
            slots = [slot.args[0] for slot in self._fresh.given.inputs[: request.count]]
            [ring] = self._fresh.out_rings
            self._play(HostGate(self.turnstile.other_end), slots, ring.tensors)
        return SimpleNamespace(times_us=(50.0,) * CALLS)


@pytest.fixture
def block_of(tmp_path, monkeypatch):
    """Return a function that times a block of a played process; raises `Stop`."""
    reference = Instance.load(
        SOURCE, "Model", device="cpu", seed=0, mode="as-built", folder=tmp_path
    )
    first = reference.inputs(0)
    fresh = FreshInputs(reference, first, reference(first), CALLS)

    def is_near(inputs, outputs, _):
        if not torch.equal(outputs[0], inputs.args[0] * 2):
            raise Stop(Failed("wrong_output", "it is wrong"))
        return True

    workload = SimpleNamespace(
        fresh=fresh,
        problem=SimpleNamespace(device="cpu"),
        set_numbers=(0,),
        first_slot=0,
        baselines=SimpleNamespace(own=Own(10.0)),
        is_near=is_near,
    )

    def block(play, *, telling=False):
        talk = PlayedProcess(play, fresh)
        monkeypatch.setattr(timed_module, "may_read", lambda pid: telling)
        return TimedCandidate(talk, workload, Reached(), ((16, 1),)).block(CALLS)

    return block


def refusals(block_of, play):
    """Return for each of several blocks whether it is refused."""
    found = []
    for _ in range(BLOCKS):
        try:
            block_of(play)
            found.append(False)
        except Stop:
            found.append(True)
    return found


def honest(gate, slots, places):
    for slot, place in zip(slots, places, strict=True):
        gate.enter(0)
        place.copy_(slot * 2)
    gate.leave()


def test_honest_calls_are_believed(block_of):
    assert len(block_of(honest)) == CALLS


def test_outputs_that_are_delivered_after_the_next_inputs_were_asked_for_are_missing(block_of):
    def all_at_once(gate, slots, places):
        for _ in slots:
            gate.enter(0)
        for slot, place in zip(slots, places, strict=True):
            place.copy_(slot * 2)
        gate.leave()

    assert any(refusals(block_of, all_at_once))


def test_outputs_that_are_mended_later_stay_wrong(block_of):
    def mends(gate, slots, places):
        for place in places:
            gate.enter(0)
            place.zero_()
        gate.leave()
        for slot, place in zip(slots, places, strict=True):
            place.copy_(slot * 2)

    assert any(refusals(block_of, mends))


def test_the_inputs_of_the_next_call_are_not_there_yet(block_of):
    seen = []

    def looks_ahead(gate, slots, places):
        for i, (slot, place) in enumerate(zip(slots, places, strict=True)):
            gate.enter(0)
            ahead = [other.clone() for other in slots[i + 1 :]]
            seen.append(ahead)
            place.copy_(slot * 2)
        gate.leave()
        for early, late in zip(seen[-CALLS], slots[1:], strict=True):
            assert not bool((early == late).any())

    block_of(looks_ahead)


def test_a_process_that_does_not_ask_for_every_call_is_refused(block_of):
    with pytest.raises(Stop, match="not asked for the inputs of every timed call"):
        block_of(lambda gate, slots, places: gate.enter(0))


class TestPlaces:
    """Outputs have to be where the process says that it made them, and not in the places alone."""

    def believed(self, block_of, play):
        try:
            return len(block_of(play, telling=True)) == CALLS
        except Stop as stop:
            return "not where its process says" not in stop.verdict.reason

    def test_outputs_that_were_made_elsewhere_are_believed(self, block_of):
        made = [torch.zeros(8, 16)]

        def delivers(gate, slots, places):
            for slot, place in zip(slots, places, strict=True):
                gate.enter(0, [made[-1].data_ptr()])
                made.append(slot * 2)
                place.copy_(made[-1])
            gate.leave([made[-1].data_ptr()])

        assert all(self.believed(block_of, delivers) for _ in range(4))

    @pytest.mark.parametrize("told", ["nowhere", "the place itself", "another tensor"])
    def test_outputs_that_were_made_in_their_places_are_not(self, block_of, told):
        other = torch.zeros(8, 16)

        def works_there(gate, slots, places):
            at = 0
            for slot, place in zip(slots, places, strict=True):
                gate.enter(0, [at])
                torch.mul(slot, 2, out=place)
                where = {"the place itself": place, "another tensor": other}
                at = where[told].data_ptr() if told in where else 8
            gate.leave([at])

        assert not any(self.believed(block_of, works_there) for _ in range(4))
