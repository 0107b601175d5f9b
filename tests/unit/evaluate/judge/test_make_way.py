"""A candidate whose first call takes long is stopped while others time."""

from __future__ import annotations

import base64
import pickle
import threading
import time
from pathlib import Path

import pytest

from adaexplore.core.problem import Access
from adaexplore.evaluate.judge import conversation, verdict
from adaexplore.evaluate.judge.conversation import Conversation, Stop
from adaexplore.evaluate.judge.verdict import DeviceUse
from adaexplore.evaluate.wire import messages as wire
from adaexplore.sandbox import lock
from adaexplore.sandbox.lock import device_lock
from adaexplore.sandbox.user.values import Arguments

ALONE_S, LONG_S, QUIET_S = 2.5, 1.5, 2.0
SOURCE = """
import time
from torch import nn

time.sleep({seconds})

class ModelNew(nn.Module):
    def forward(self, x):
        return x
"""


@pytest.fixture
def talk(server, monkeypatch, tmp_path):
    monkeypatch.setenv(lock.LOCKS, str(tmp_path))
    monkeypatch.setattr(conversation, "_UNDISTURBED_S", 0.5)
    worker = server.spawn(
        "adaexplore.evaluate.candidate.worker:main", name="candidate", confined="cpu"
    )
    yield Conversation(worker, time.monotonic() + 60.0)
    worker.end()


def load(talk, seconds):
    init = base64.b64encode(pickle.dumps(Arguments())).decode()
    source = SOURCE.format(seconds=seconds)
    talk.ask(wire.Load(source, "cpu", 0, "as-built", "fp32", Access(), init))


@pytest.fixture
def timing(talk):
    """Somebody who wants the device alone; tells the candidate's states while it has it."""
    states = []

    def time_alone():
        with device_lock("cpu", exclusive=True):
            until = time.monotonic() + ALONE_S
            while time.monotonic() < until:
                stat = Path(f"/proc/{talk.pid}/stat").read_text()
                states.append(stat.rpartition(")")[2].split()[0])
                time.sleep(0.05)

    thread = threading.Thread(target=time_alone)
    yield thread, states
    thread.join(30.0)


def test_it_is_stopped_while_others_time_and_that_time_does_not_count(talk, timing):
    thread, states = timing
    device, deadline = DeviceUse("cpu", talk), talk.deadline
    began = time.monotonic()
    with device.hold(exclusive=False):
        thread.start()
        with talk.considerate(device.make_way), talk.impatient(QUIET_S):
            load(talk, LONG_S)
        assert set(states[5:]) == {"T"}  # a signal takes a moment; and they were done before it
    assert time.monotonic() - began > ALONE_S
    assert talk.deadline >= deadline + ALONE_S
    assert device.held_s < time.monotonic() - began - ALONE_S + 0.5


def test_what_holds_no_device_takes_nothing_off_the_time_for_which_it_was_held(talk, timing):
    thread, states = timing
    device = DeviceUse("cpu", talk)
    with device.while_nobody_times():
        thread.start()
        with talk.considerate(device.make_way), talk.impatient(QUIET_S):
            load(talk, LONG_S)
    assert states
    assert device.held_s == 0.0


def test_it_goes_on_where_nobody_waits(talk):
    device, deadline = DeviceUse("cpu", talk), talk.deadline
    with device.hold(exclusive=False), talk.considerate(device.make_way):
        load(talk, LONG_S)
    assert talk.deadline < deadline + 0.1


def test_a_hang_still_ends(talk, timing):
    thread, states = timing
    device = DeviceUse("cpu", talk)
    with device.hold(exclusive=False):
        thread.start()
        hangs = pytest.raises(Stop, match="it hangs")
        with talk.considerate(device.make_way), talk.impatient(QUIET_S), hangs:
            load(talk, 60.0)
    assert states


def test_who_has_the_device_alone_keeps_it(talk, timing):
    thread, states = timing
    device = DeviceUse("cpu", talk)
    with device.hold(exclusive=True):
        thread.start()
        with talk.considerate(device.make_way):
            load(talk, LONG_S)
        assert not states


def test_a_gpu_that_is_still_at_work_is_not_given_away(talk, monkeypatch):
    monkeypatch.setattr(verdict, "is_busy", lambda _: True)
    monkeypatch.setattr(lock, "physical", lambda _: "0")
    device, taken = DeviceUse("cuda:0", talk), threading.Event()

    def time_alone():
        with device_lock("cuda:0", exclusive=True):
            taken.set()

    waiting = threading.Thread(target=time_alone)
    with device.hold(exclusive=False):
        waiting.start()
        with talk.considerate(device.make_way):
            load(talk, LONG_S)
        assert not taken.is_set()
    waiting.join(30.0)
    assert taken.is_set()
