"""Candidates that passed are kept, stopped, and ended when they can no longer be timed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from adaexplore.core.candidate import Candidate
from adaexplore.evaluate.judge.live_parents import LiveParents

SLEEP = "import time; time.sleep(600)"
WITH_A_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEP!r}])"


class Process:
    """A process as its worker and as the conversation with it."""

    def __init__(self, code=SLEEP):
        self._process = subprocess.Popen([sys.executable, "-c", code])
        self.pid = self._process.pid
        self.frozen = False
        self.deadline = 0.0

    def freeze(self):
        self.frozen = True

    def end(self):
        self._process.kill()
        self._process.wait()

    @property
    def lives(self):
        return self._process.poll() is None


@pytest.fixture
def process():
    made = []

    def process(code=SLEEP):
        made.append(Process(code))
        return made[-1]

    yield process
    for each in made:
        each.end()


def candidate(number):
    return Candidate(f"# {number}", "cpp")


@pytest.fixture
def kept(process):
    """Parents on the CPU, and the processes of the first so many candidates."""

    def kept(count):
        parents, processes = LiveParents("cpu"), [process() for _ in range(count)]
        for number, each in enumerate(processes):
            parents.add(candidate(number), each, each)
        return parents, processes

    return kept


def test_the_last_candidates_are_kept_and_stopped(kept):
    parents, processes = kept(6)
    assert [p.lives for p in processes] == [False, False, True, True, True, True]
    assert all(p.frozen for p in processes)
    assert parents.find(candidate(1), 0.0) is None
    found = parents.find(candidate(3), 12.0)
    assert (found.talk, found.talk.deadline) == (processes[3], 12.0)


def test_one_that_was_asked_for_is_kept_longer(kept, process):
    parents, processes = kept(4)
    parents.find(candidate(0), 0.0)
    parents.add(candidate(4), new := process(), new)
    assert [p.lives for p in (*processes, new)] == [True, False, True, True, True]


def test_the_same_candidate_is_kept_once(kept, process):
    parents, processes = kept(1)
    parents.add(candidate(0), again := process(), again)
    assert processes[0].lives
    assert not again.lives


def test_a_dropped_parent_is_ended_and_found_no_more(kept):
    parents, processes = kept(2)
    found = parents.find(candidate(0), 0.0)
    assert not found.lost
    found.drop()
    assert found.lost
    assert [p.lives for p in processes] == [False, True]
    assert parents.find(candidate(0), 0.0) is None
    assert parents.find(candidate(1), 0.0) is not None


def has_child(pid):
    return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def test_a_candidate_with_children_is_not_kept(process):
    parents, one = LiveParents("cpu"), process(WITH_A_CHILD)
    until = time.monotonic() + 30.0
    while not has_child(one.pid) and time.monotonic() < until:
        time.sleep(0.01)
    parents.add(candidate(0), one, one)
    assert not one.lives


def test_one_that_has_ended_is_found_no_more(kept):
    parents, [one] = kept(1)
    one._process.kill()
    one._process.wait()
    assert parents.find(candidate(0), 0.0) is None


def test_all_are_ended_at_once_and_it_is_told_if_there_were_any(kept):
    parents, processes = kept(3)
    assert parents.clear()
    assert not any(p.lives for p in processes)
    assert not parents.clear()


@pytest.mark.parametrize(("free", "lives"), [(60, [False, True, True]), (40, [False] * 3)])
def test_a_gpu_keeps_two_while_half_of_its_memory_is_free(monkeypatch, process, free, lives):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (free, 100))
    parents, processes = LiveParents("cuda:0"), [process() for _ in range(3)]
    for number, each in enumerate(processes):
        parents.add(candidate(number), each, each)
    assert [p.lives for p in processes] == lives
