"""The line about another program that has the device."""

import os
import subprocess
import sys

import pytest

from adaexplore.cli.terminal import waits
from adaexplore.cli.terminal.waits import DeviceWatch
from adaexplore.sandbox.lock import device_lock, holders

DEVICE = f"test-{os.getpid()}"
HOLDS = """
import sys
from adaexplore.sandbox.lock import device_lock
with device_lock(sys.argv[1], exclusive=False):
    print("has it", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def stranger():
    """The id of a process of another program that has the device."""
    command = [sys.executable, "-c", HOLDS, DEVICE]
    # a session of its own, and a parent that is gone: no descendant of this process
    forks = f"import subprocess, sys; subprocess.Popen({command!r}, start_new_session=True)"
    with subprocess.Popen(
        [sys.executable, "-c", forks], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout.readline() == "has it\n"
        parent.wait()
        [pid] = holders(DEVICE)
        yield pid
        parent.stdin.close()


@pytest.fixture
def looks(monkeypatch):
    """What the watch has seen so far, at each of its looks."""
    found = []

    def seen(device):
        found.append(holders(device))
        return found[-1]

    monkeypatch.setattr(waits, "_LOOK_S", 0.02)
    monkeypatch.setattr(waits, "holders", seen)
    return found


@pytest.fixture
def watch(looks):
    """A watch that has not begun, and what it has told."""
    lines = []
    watch = DeviceWatch(DEVICE, lines.append)
    yield watch, lines
    watch.stop()


def test_another_program_that_has_the_device_is_named_once(stranger, watch, looks, eventually):
    looking, told = watch
    looking.start()
    assert eventually(lambda: looks.count({stranger}) > 5)
    [line] = told
    assert line.startswith(f"waiting for {DEVICE}: process {stranger} ({sys.executable} -c")
    assert "\n" not in line
    assert line.endswith("…) has it")


def test_nothing_is_told_while_this_program_has_it_too(stranger, watch, looks, eventually):
    looking, told = watch
    with device_lock(DEVICE, exclusive=False):
        looking.start()
        assert eventually(lambda: looks.count({stranger, os.getpid()}) > 5)
        looking.stop()
    assert told == []


def test_a_free_device_has_no_holders():
    with device_lock(DEVICE, exclusive=True):
        assert holders(DEVICE) == {os.getpid()}
    assert holders(DEVICE) == set()
    assert holders(f"{DEVICE}-never-used") == set()
