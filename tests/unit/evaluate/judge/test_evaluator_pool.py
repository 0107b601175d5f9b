"""Several evaluators as one: real judges on the CPU, and computed ones for what is rare."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadProblemError, InfrastructureError
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation import Failed, Passed, Timing
from adaexplore.core.verdict.uses import Use
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.evaluate.judge.evaluators.pool import EvaluatorPool, evaluators_for
from adaexplore.evaluate.judge.failures import out_of_room
from adaexplore.evaluate.truth.device_memory.room import FreeMemory

ENOUGH_S = 20.0
REFERENCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2

def get_inputs():
    return [torch.randn(64, 128)]
"""
RIGHT = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(8):
            out = torch.relu(x) * 2
        return out
"""


def right(number):
    return Candidate(f"{RIGHT}\n# {number}\n", "cpp")


def wrong(number):
    return Candidate(f"{RIGHT}\n# {number}\n".replace("* 2", "* 3"), "cpp")


@pytest.fixture
def judges(server):
    problem = Problem("example", REFERENCE, "cpp", "cpu")
    made = [
        LocalEvaluator(server, problem, timeout_s=60.0, memory_bytes=2 << 30, brief=True)
        for _ in range(2)
    ]
    yield made
    for judge in made:
        judge.close()


class TestRealJudges:
    def test_each_thread_gets_the_verdict_on_its_own_candidate(self, judges):
        pool = EvaluatorPool(judges)
        facts = pool.prepare()
        assert facts.precision == "fp32"
        asked = [wrong(1), right(1), wrong(2)]
        with ThreadPoolExecutor(3) as threads:
            verdicts = list(threads.map(pool.evaluate, asked))
        assert [v.status for v in verdicts] == ["wrong_output", "passed", "wrong_output"]
        assert pool.prepare() == facts

    def test_closing_ends_what_is_going_on(self, judges):
        pool = EvaluatorPool(judges[:1])
        pool.prepare()
        endless = Candidate(RIGHT.replace("range(8)", "iter(int, 1)"), "cpp")
        with ThreadPoolExecutor(2) as threads:
            running = [threads.submit(pool.evaluate, endless) for _ in range(2)]
            time.sleep(0.3)
            pool.close()
            for each in running:
                assert isinstance(each.exception(ENOUGH_S), InfrastructureError)
        assert pool.evaluate(wrong(1)).status == "wrong_output"  # what is used again starts again


def passed():
    return Passed("fp32", 0.0, Timing(1.0, (1.0, 1.0), {"eager": 1.0}, 1.0, (1.0, 1.0), 1.0, 7))


class Computed:
    """An evaluator that does what functions say."""

    def __init__(self, judge=lambda _: passed(), prepare=lambda: None):
        self._judge, self._prepare = judge, prepare
        self.judged, self.parents = [], []
        self.prepared = threading.Event()
        self.closed = 0

    def prepare(self):
        self._prepare()
        self.prepared.set()
        return {}

    def evaluate(self, candidate, parent=None, *, again=False):
        self.judged.append(candidate)
        self.parents.append(parent)
        return self._judge(candidate)

    def close(self):
        self.closed += 1


def ready(pool, *evaluators):
    """The pool, with these behind it."""
    pool.prepare()
    for evaluator in evaluators:
        assert evaluator.prepared.wait(ENOUGH_S)
    time.sleep(0.05)  # they join right after
    return pool


def test_uses_are_tried_by_an_evaluator_that_can():
    class Trying(Computed):
        def try_uses(self, candidate):
            return (Use("pickle", "holds"),)

    winner = right(1)
    assert EvaluatorPool([Trying()]).try_uses(winner) == (Use("pickle", "holds"),)
    assert EvaluatorPool([Computed()]).try_uses(winner) == ()


def test_a_child_goes_to_the_judge_that_has_its_parent(eventually):
    together = threading.Barrier(2, timeout=ENOUGH_S)
    busy = [True]

    def judge(_):
        if busy[0]:
            together.wait()
        return passed()

    both = [Computed(judge), Computed(judge)]
    pool = ready(EvaluatorPool(both), *both)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(pool.evaluate, [right(1), right(2)]))
    busy[0] = False
    parents = [evaluator.judged[0] for evaluator in both]
    assert set(parents) == {right(1), right(2)}
    for evaluator, parent in zip(both, parents, strict=True):
        for number in (3, 4):
            pool.evaluate(right(number), parent)
        assert evaluator.parents[1:] == [parent, parent]


def test_a_judge_that_cannot_be_prepared_is_done_without():
    def no_memory():
        raise BadProblemError("example.py: takes more memory than the device has free")

    first, second = Computed(), Computed(prepare=no_memory)
    pool = EvaluatorPool([first, second])
    assert [pool.evaluate(right(n)).status for n in range(3)] == ["passed"] * 3
    assert len(first.judged) == 3


def test_the_first_has_to_be_prepared():
    def bad():
        raise BadProblemError("example.py: NaN")

    with pytest.raises(BadProblemError):
        EvaluatorPool([Computed(prepare=bad), Computed()]).prepare()


@pytest.mark.parametrize(
    ("cores", "parallel", "judges"), [(2, 8, 1), (8, 8, 2), (16, 8, 4), (128, 64, 4), (128, 2, 2)]
)
def test_judges_are_as_many_as_there_are_cores_and_work_for(monkeypatch, cores, parallel, judges):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)))
    assert evaluators_for(parallel) == judges


@pytest.mark.parametrize(("problems", "judges"), [(1, 4), (2, 2), (3, 1), (9, 1)])
def test_problems_that_share_a_device_share_its_judges(monkeypatch, problems, judges):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(32)))
    assert evaluators_for(16, problems=problems) == judges


def test_others_are_prepared_for_a_candidate_that_waits_if_not_ahead():
    begun, may_end = threading.Event(), threading.Event()

    def judge(_):
        begun.set()
        assert may_end.wait(ENOUGH_S)
        return passed()

    def let_end(_):
        may_end.set()
        return passed()

    first, second = Computed(judge), Computed(let_end)
    pool = EvaluatorPool([first, second], ahead=False)
    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(pool.evaluate, right(1))
        assert begun.wait(ENOUGH_S)
        assert not second.prepared.is_set()
        other = threads.submit(pool.evaluate, right(2))
        assert [each.result(ENOUGH_S).status for each in (one, other)] == ["passed"] * 2
    assert (len(first.judged), len(second.judged)) == (1, 1)
    assert second.prepared.is_set()


def test_a_closed_pool_prepares_no_further_judges():
    may_go_on = threading.Event()
    second = Computed(prepare=lambda: may_go_on.wait(ENOUGH_S))
    third = Computed()
    pool = EvaluatorPool([Computed(), second, third])
    pool.prepare()
    helper = pool._helper
    pool.close()
    may_go_on.set()
    helper.join(ENOUGH_S)
    assert not third.prepared.is_set()


SHORT = Failed("out_of_memory", "there is none")


class TestMemory:
    @pytest.mark.parametrize(
        "short",
        [SHORT, out_of_room(SHORT, FreeMemory(free=1 << 30, total=140 << 30))],
        ids=["out of memory", "others hold it"],
    )
    def test_a_gpu_s_is_tried_again_without_the_others(self, eventually, short):
        others_are_there = [True]

        def judge(_):
            return short if others_are_there[0] else passed()

        every = [Computed(judge) for _ in range(3)]
        pool = ready(EvaluatorPool(every, on_gpu=True), *every)
        _, second, third = every
        second.prepared.clear()
        third.prepared.clear()
        ending = second.close

        def close():
            others_are_there[0] = False
            ending()

        second.close = close
        assert pool.evaluate(right(1)).status == "passed"
        assert (second.closed, third.closed) == (1, 1)
        assert eventually(second.prepared.is_set)  # and is there again, for the next
        assert pool.evaluate(right(2)).status == "passed"
        assert not third.prepared.is_set()  # what took the memory

    def test_a_pool_keeps_its_judges_where_a_candidate_takes_all_memory_alone(self, eventually):
        both = [Computed(lambda c: SHORT if c == right(1) else passed()) for _ in range(2)]
        pool = ready(EvaluatorPool(both, on_gpu=True), *both)
        both[1].prepared.clear()
        assert pool.evaluate(right(1)).status == "out_of_memory"
        assert eventually(both[1].prepared.is_set)

    def test_the_candidate_waits_for_those_that_are_being_judged(self):
        begun, may_end = threading.Event(), threading.Event()

        def judge(candidate):
            if candidate == right(1):
                begun.set()
                assert may_end.wait(ENOUGH_S)
                return passed()
            return Failed("out_of_memory", "there is none")

        both = [Computed(judge), Computed(judge)]
        pool = ready(EvaluatorPool(both, on_gpu=True), *both)
        with ThreadPoolExecutor(2) as threads:
            slow = threads.submit(pool.evaluate, right(1))
            assert begun.wait(ENOUGH_S)
            large = threads.submit(pool.evaluate, right(2))
            time.sleep(0.1)
            assert not large.done()
            assert [evaluator.closed for evaluator in both] == [0, 0]
            may_end.set()
            assert slow.result(ENOUGH_S).status == "passed"
            assert large.result(ENOUGH_S).status == "out_of_memory"

    def test_on_the_cpu_each_has_a_limit_of_its_own(self):
        both = [Computed(lambda _: Failed("out_of_memory", "there is none")) for _ in range(2)]
        pool = ready(EvaluatorPool(both), *both)
        assert pool.evaluate(right(1)).status == "out_of_memory"
        assert len(both[0].judged) + len(both[1].judged) == 1
