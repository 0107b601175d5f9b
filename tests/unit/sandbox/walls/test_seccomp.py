"""The filter on kernels whose Landlock cannot confine signals: a supervisor decides.

Signals to others are of number 0, which is checked like any other and does nothing: a test of a
broken filter must not end the machine's processes.
"""

import errno
import os
import signal
import subprocess
from multiprocessing.connection import wait

import pytest
from worker_entries import SLEEPER

from adaexplore.sandbox.channel import Channel, ChannelClosedError
from adaexplore.sandbox.walls import seccomp
from adaexplore.sandbox.walls.limits import ResourceLimits
from adaexplore.sandbox.walls.syscalls import known_machine
from adaexplore.sandbox.watchdog import Watchdog

pytestmark = pytest.mark.skipif(not known_machine(), reason="system calls are not known")


@pytest.fixture
def filtered(tmp_path):
    """Run a function in a child under the filter; return its error number, or None."""

    def filtered(function):
        ours, theirs = Channel.pair()
        pid = os.fork()
        if pid == 0:
            ours.close()
            _serve(theirs, function)
        theirs.close()
        _, [listener] = ours.receive_with_fds(30.0)
        watch = Watchdog(pid, tmp_path, ResourceLimits(), listener)
        try:
            return _attend(watch, ours)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            watch.close()
            ours.close()

    return filtered


def _serve(channel, function):
    try:
        listener = seccomp.install(gpu=False, signals=True)
        channel.send({}, [listener])
        os.close(listener)
        function()
        channel.send({"errno": None})
    except OSError as error:
        channel.send({"errno": error.errno})
    finally:
        os._exit(0)


def _attend(watch, channel):
    while True:
        ready = wait([watch.listener, channel], 30.0)
        assert ready
        if channel in ready:
            return channel.receive(30.0)["errno"]
        watch.answer()


def with_a_child(action):
    def run():
        child = os.fork()
        if child == 0:
            signal.pause()
        try:
            action(child)
        finally:
            os.kill(child, signal.SIGKILL)

    return run


@pytest.fixture(scope="module")
def stranger():
    process = subprocess.Popen(SLEEPER)
    yield process
    process.kill()
    process.wait()


class TestSignals:
    def test_signals_to_other_processes_are_stopped(self, filtered, stranger):
        assert filtered(lambda: os.kill(stranger.pid, 0)) == errno.EPERM
        assert filtered(lambda: os.kill(os.getppid(), 0)) == errno.EPERM

    def test_signals_to_all_processes_are_stopped(self, filtered):
        assert filtered(lambda: os.kill(-1, 0)) == errno.EPERM

    def test_signals_to_other_groups_are_stopped(self, filtered):
        assert filtered(lambda: os.killpg(os.getpgid(os.getppid()), 0)) == errno.EPERM

    def test_signals_to_itself_and_its_children_arrive(self, filtered):
        assert filtered(lambda: os.kill(os.getpid(), 0)) is None
        assert filtered(with_a_child(lambda child: os.kill(child, 0))) is None
        assert filtered(lambda: signal.raise_signal(signal.SIGCHLD)) is None

    def test_signals_by_a_process_descriptor_are_stopped(self, filtered, stranger):
        def send():
            signal.pidfd_send_signal(os.pidfd_open(stranger.pid), 0)

        assert filtered(send) == errno.EPERM


class TestScheduling:
    def test_scheduling_of_other_processes_is_denied(self, filtered, stranger):
        assert filtered(lambda: os.sched_setaffinity(stranger.pid, {0})) == errno.EPERM

    def test_scheduling_of_itself_is_allowed(self, filtered):
        cores = os.sched_getaffinity(0)
        assert filtered(lambda: os.sched_setaffinity(os.getpid(), cores)) is None
        assert filtered(with_a_child(lambda child: os.sched_setaffinity(child, cores))) is None


def test_an_end_with_an_open_question_is_noticed(tmp_path):
    """The child dies while it waits to fork: nobody is left to answer."""
    ours, theirs = Channel.pair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _serve(theirs, os.fork)
    theirs.close()
    _, [listener] = ours.receive_with_fds(30.0)
    assert wait([listener], 30.0)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert seccomp.receive(listener) is None
    with pytest.raises(ChannelClosedError):
        ours.receive(30.0)
    os.close(listener)
