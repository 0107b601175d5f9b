"""Blocks on a GPU whose process gives sums with its notices; the test plays the turnstile."""

import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from adaexplore.evaluate.judge.check import Reached
from adaexplore.evaluate.judge.conversation import Stop
from adaexplore.evaluate.judge.timed import TimedCandidate
from adaexplore.evaluate.timing.audit import Own
from adaexplore.evaluate.timing.turnstile import sums
from adaexplore.evaluate.timing.turnstile.protocol import Passages
from adaexplore.evaluate.wire import messages as wire

COUNT = 4
BLOCKS = 40

timed_module = sys.modules[TimedCandidate.__module__]


class Turnstile:
    """Passes every call and gives these sums."""

    def __init__(self, told):
        self._told = told

    @contextmanager
    def attended(self, count, opened, left, *_, **__):
        yield Passages([1000.0] * count, 0.0, [0.0] * count, self._told)
        for i in range(count):
            left(i, ())


@pytest.fixture
def block_of(monkeypatch):
    """Return a function that times a block with these sums; the output of call `i` is `i`."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    monkeypatch.setattr(timed_module, "_latency_us", lambda device: 0.0)
    monkeypatch.setattr(sums, "sum_of", lambda outputs, key, _: 1000 * key + int(outputs[0]))
    ring = SimpleNamespace(copy_of=lambda i: torch.tensor([i]), tensors=())
    fresh = SimpleNamespace(
        given=SimpleNamespace(open=lambda i: 0, open_slowly=False, key=lambda i: 7 + i),
        places=lambda layout: [ring],
        refill=lambda count: None,
        poison=lambda count: None,
        original=lambda i: i,
    )
    workload = SimpleNamespace(
        fresh=fresh,
        problem=SimpleNamespace(device="cuda:0"),
        set_numbers=(0,),
        first_slot=0,
        baselines=SimpleNamespace(own=Own(0.0)),
        is_near=lambda *_: True,
    )

    def block(told):
        talk = SimpleNamespace(
            pid=1,
            created_tasks=0,
            turnstile=Turnstile(told),
            thaw=lambda: None,
            freeze=lambda: None,
            ask=lambda request: wire.CallTimes((1000.0,) * COUNT),
        )
        return TimedCandidate(talk, workload, Reached(), ()).block(COUNT)

    return block


def right():
    return [1000 * (7 + i) + i for i in range(COUNT)]


def refusals(block_of, told):
    found = []
    for _ in range(BLOCKS):
        try:
            block_of(told)
        except Stop as stop:
            found.append(stop.verdict)
    return found


def test_the_sums_of_the_delivered_outputs_are_believed(block_of):
    assert refusals(block_of, right()) == []


def test_other_sums_are_refused(block_of):
    found = refusals(block_of, [told + 1 for told in right()])
    assert len(found) == BLOCKS
    assert found[0].status == "rejected"
    assert "the notice came before they were complete" in found[0].reason


@pytest.mark.parametrize("call", range(COUNT))
def test_a_process_that_tells_too_early_in_one_call_is_refused_in_some_blocks(block_of, call):
    told = right()
    told[call] = told[call - 1]
    assert 0 < len(refusals(block_of, told)) < BLOCKS
