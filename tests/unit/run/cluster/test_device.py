"""The process of a device: its judges of several problems, with computed ones in their place."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.run.cluster import device as device_module
from adaexplore.run.cluster.device import Device, JudgingOrder, longest_canary_s

ENOUGH_S = 20.0
PROBLEM = Problem("example", "", "triton", "cuda:0")
CANDIDATE = Candidate("", "triton")


class Judge:
    """An evaluator; `working` is called with the name of its problem while it evaluates."""

    longest_s = 100.0
    working = staticmethod(lambda _: None)
    alive = frozenset()
    prepared = ()

    def __init__(self, server, problem, **options):
        self.name = problem.name
        self._is_ready = False

    def prepare(self):
        if not self._is_ready:
            self._is_ready = True
            Judge.alive.add(self)
            Judge.prepared.append(self.name)
        return ReferenceFacts()

    def evaluate(self, candidate, parent=None, *, again=False):
        self.prepare()
        Judge.working(self.name)
        assert self in Judge.alive, "closed while it was at work"
        return Failed("wrong_output", "an ordinary verdict")

    def close(self):
        self._is_ready = False
        Judge.alive.discard(self)


@pytest.fixture
def device(monkeypatch):
    monkeypatch.setattr(Judge, "working", staticmethod(lambda _: None))
    monkeypatch.setattr(Judge, "alive", set())
    monkeypatch.setattr(Judge, "prepared", [])
    monkeypatch.setattr(device_module, "_forget_threads_of_ray", lambda: None)
    monkeypatch.setattr(device_module, "start_server", lambda problem: None)
    monkeypatch.setattr(device_module, "kind_of_evaluator", lambda problem: Judge)
    device = Device()
    device._seats = 4  # as `begin` finds on a GPU
    return device


def order(number):
    return JudgingOrder(replace(PROBLEM, name=f"p{number}").to_json(), 1.0, 1)


def status(device, number):
    return device.evaluate(order(number), CANDIDATE, None, False)["status"]


def test_judges_at_work_are_not_ended_for_those_of_another_problem(device):
    all_work = threading.Barrier(6, timeout=ENOUGH_S)
    Judge.working = staticmethod(lambda _: all_work.wait())
    with ThreadPoolExecutor(6) as threads:
        verdicts = list(threads.map(lambda n: status(device, n), range(6)))
    assert verdicts == ["wrong_output"] * 6
    assert sorted(Judge.prepared) == [f"p{n}" for n in range(6)]


def test_of_idle_judges_those_used_last_are_kept(device):
    for number in (0, 1, 2, 3, 0, 4, 5):
        status(device, number)
    assert sorted(judge.name for judge in Judge.alive) == ["p0", "p3", "p4", "p5"]
    status(device, 0)
    assert Judge.prepared.count("p0") == 1


def test_judges_that_are_closed_before_a_call_prepares_them_do_not_stay(device):
    with device._pool_of(order(0)) as pool:
        device.close(order(0))
        pool.prepare()
        assert len(Judge.alive) == 1
    assert Judge.alive == set()


def test_the_canary_may_wait_for_evaluations_that_have_the_device():
    short, long = replace(order(0), timeout_s=10.0), replace(order(0), timeout_s=600.0)
    assert longest_canary_s(long) - longest_canary_s(short) >= 600.0 - 10.0
