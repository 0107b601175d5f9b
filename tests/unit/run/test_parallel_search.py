"""The loop with several steps in flight: overlap, durability and end."""

import itertools
import random
import threading
import time
from dataclasses import replace

import pytest
from test_search import FakeEvaluator, FakeProposer, best_of, passed, record

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadInputError, InfrastructureError
from adaexplore.core.node import ROOT_ID
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import (
    BudgetSpentError,
    Message,
    ModelOutageError,
    Prompt,
    Reply,
)
from adaexplore.core.protocols.listener import Listener, follow
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.run.search import Search
from adaexplore.store import create_run, open_run

STEPS = 12
ENOUGH_S = 20.0


class Heard(Listener):
    """A listener that records events and threads, and interrupts at a given moment."""

    def __init__(self, interrupt_at=None):
        self.told = []
        self.threads = set()
        self._left = interrupt_at

    def _hear(self, *what):
        self.told.append(what)
        self.threads.add(threading.get_ident())
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                raise KeyboardInterrupt

    def step_begun(self, step, step_kind):
        self._hear("step_begun", step)

    def waiting(self, reason, wait_s):
        self._hear("waiting", reason, wait_s)

    def evaluating(self, step, proposal):
        self._hear("evaluating", step)

    def recorded(self, node, *, best):
        self._hear("recorded", node.id, best)

    def stopping(self, reason):
        self._hear("stopping", reason)

    def those(self, what):
        return [told[1] for told in self.told if told[0] == what]


class Proposer(FakeProposer):
    """A proposer that takes a few milliseconds."""

    def begin(self, context):
        time.sleep(random.uniform(0.0, 0.01))
        return (yield from super().begin(context))


class Evaluator(FakeEvaluator):
    """An evaluator that takes a few milliseconds and counts concurrent calls."""

    def __init__(self):
        super().__init__()
        self._lock = threading.Lock()
        self.now = self.most = 0

    def evaluate(self, candidate, parent=None, *, again=False):
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(random.uniform(0.0, 0.02))
        try:
            return super().evaluate(candidate, parent)
        finally:
            with self._lock:
                self.now -= 1


class Asking:
    """A proposer that asks once and proposes the reply."""

    def begin(self, context):
        reply = yield Prompt((Message("user", f"seed {context.seed}"),), context.step_kind)
        return Proposal(Candidate(reply.text, "cpp"), "asking", reply.text)

    def close(self):
        pass


class Client:
    """A client that replies by a function of the call's number and records the conversations."""

    model = "fake:model"

    def __init__(self, answer=lambda number: None):
        self._answer = answer
        self._numbers = itertools.count(1)
        self.asked = []

    def ask(self, prompt):
        number = next(self._numbers)
        self.asked.append(prompt.messages[0].text)
        return Reply(self._answer(number) or f"class ModelNew: {prompt.digest}", self.model)

    def close(self):
        pass


class Run:
    def __init__(self, path, parallel=4, **options):
        self.path, self.parallel = path, parallel
        create_run(path, record(**{"steps": STEPS, "confirm": False} | options)).close()
        self.evaluator = Evaluator()
        self.proposer = Proposer()

    def search(self, listener=None, client=None, **options):
        listener = listener or Heard()
        proposer = Asking() if client else self.proposer
        with open_run(self.path) as directory:
            search = Search(
                directory.store,
                {"fake": proposer},
                self.evaluator,
                directory.best_path,
                clients={"fake": client} if client else None,
                parallel=options.pop("parallel", self.parallel),
                **options,
            )
            follow(search.run(), listener)
        return listener

    def kept(self):
        with open_run(self.path) as directory:
            return directory.store.nodes(), directory.store.asks(), directory.store.calls()


@pytest.fixture
def new_run(tmp_path):
    numbers = itertools.count()
    return lambda *words, **options: Run(tmp_path / f"run-{next(numbers)}", *words, **options)


def is_whole(run, steps=STEPS):
    """Assert that exactly the planned steps were made, each from its own ask."""
    nodes, asks, _ = run.kept()
    assert [node.id for node in nodes] == list(range(1, steps + 1))
    assert all(ROOT_ID <= node.parent_id < node.id for node in nodes)
    assert all(node.parent_id or node.step_kind == "large" for node in nodes)
    assert [ask.ask.id for ask in asks] == list(range(1, steps + 1))
    assert {ask.state for ask in asks} == {"done"}
    return nodes, asks


class TestSteps:
    @pytest.mark.parametrize("parallel", [2, 5, 40])
    def test_exactly_the_planned_steps_are_made(self, new_run, parallel):
        run = new_run(parallel)
        run.search()
        nodes, asks = is_whole(run)
        assert len(run.proposer.contexts) == STEPS
        assert max(ask.ask.id - 1 - ask.ask.seen for ask in asks) == min(parallel, STEPS) - 1
        assert len(run.evaluator.evaluated) == len(set(run.evaluator.evaluated))
        assert (run.path / "best.py").read_text() == best_of(nodes).candidate.source

    def test_proposals_and_evaluations_overlap(self, new_run):
        run = new_run(4, steps=4)
        together = threading.Barrier(4, timeout=ENOUGH_S)

        def begin(context):
            yield from ()
            if context.in_flight >= 2:  # two are proposed only while the others are evaluated
                together.wait()
            return Proposal(Candidate(f"class ModelNew: {context.in_flight}", "cpp"), "fake", "")

        def evaluate(candidate, parent=None, *, again=False):
            if candidate.source[-1] in "01":
                together.wait()
            return passed(1.0)

        run.proposer.begin, run.evaluator.evaluate = begin, evaluate
        run.search()
        is_whole(run, 4)

    def test_the_number_of_steps_in_flight_is_limited(self, new_run):
        run = new_run(3)
        heard = run.search()
        under_way, most = 0, 0
        for what, *_ in heard.told:
            under_way += (what == "step_begun") - (what == "recorded")
            most = max(most, under_way)
        assert most == 3
        assert run.evaluator.most <= 3

    def test_one_thread_emits_all_events_in_order(self, new_run):
        heard = new_run().search()
        assert heard.threads == {threading.get_ident()}
        assert heard.those("recorded") == list(range(1, STEPS + 1))
        assert sorted(heard.those("step_begun")) == list(range(1, STEPS + 1))
        for step in heard.those("evaluating"):
            moments = [heard.told.index((what, step)) for what in ("step_begun", "evaluating")]
            assert moments == sorted(moments)

    def test_a_step_sees_the_nodes_that_existed_when_it_was_chosen(self, new_run):
        run = new_run()
        run.search()
        _, asks = is_whole(run)
        seen = {ask.ask.seed: ask.ask.seen for ask in asks}
        for context in run.proposer.contexts:
            assert len(context.history) == seen[context.seed]


class TestDuplicates:
    def test_identical_candidates_in_flight_share_one_evaluation(self, new_run):
        run = new_run(4, steps=4)
        run.proposer.variety = 1
        proposed, judge = threading.Semaphore(0), run.evaluator.evaluate

        class Counting(Heard):
            def evaluating(self, step, proposal):
                super().evaluating(step, proposal)
                proposed.release()

        def once_all_are_there(candidate, parent=None, **_):
            for _ in range(4):
                assert proposed.acquire(timeout=ENOUGH_S)
            return judge(candidate, parent)

        run.evaluator.evaluate = once_all_are_there
        run.search(Counting())
        nodes, _ = is_whole(run, 4)
        real = [node for node in nodes if not node.proposal.failure]
        assert len(run.evaluator.evaluated) == 1
        assert [node.reused for node in real] == [False] + [True] * (len(real) - 1)

    def test_infrastructure_trouble_is_not_shared(self, new_run):
        run = new_run(4, steps=6)
        run.proposer.variety = 1
        verdicts = iter([Failed("infra_error", "no luck")])
        judge = run.evaluator.evaluate
        run.evaluator.evaluate = lambda *asked, **_: next(verdicts, None) or judge(*asked)
        run.search()
        nodes, _ = is_whole(run, 6)
        real = [node for node in nodes if not node.proposal.failure]
        assert real[0].evaluation.status == "infra_error"
        assert [node.reused for node in real[1:]] == [False] + [True] * (len(real) - 2)


class TestStopping:
    def test_repeated_interruptions_lose_no_step(self, new_run):
        run, rng, before = new_run(), random.Random(1), []
        for _ in range(20):
            with pytest.raises(KeyboardInterrupt):
                run.search(Heard(interrupt_at=rng.randint(1, 9)), parallel=rng.randint(1, 5))
            after, asks, _ = run.kept()
            assert after[: len(before)] == before
            assert len(asks) <= STEPS
            before = after
            if len(before) > STEPS - 3:
                break
        run.search()
        nodes, _ = is_whole(run)
        assert nodes[: len(before)] == before

    def test_an_interruption_does_not_wait_for_steps_in_flight(self, new_run):
        run = new_run(3)
        over = threading.Event()
        judge = run.evaluator.evaluate

        def stuck(candidate, parent=None, **_):
            over.wait(ENOUGH_S)
            return judge(candidate, parent)

        run.evaluator.evaluate = stuck
        with pytest.raises(KeyboardInterrupt):
            run.search(Heard(interrupt_at=6))
        assert not over.is_set()
        over.set()
        _, asks, _ = run.kept()
        assert {ask.state for ask in asks} <= {"open", "queued", "done"}
        run.evaluator.evaluate = judge
        run.search(parallel=1)
        is_whole(run)

    def test_an_answered_prompt_is_not_asked_again(self, new_run):
        run, client, rng = new_run(), Client(), random.Random(2)
        for _ in range(4):
            with pytest.raises(KeyboardInterrupt):
                run.search(Heard(interrupt_at=rng.randint(5, 9)), client)
        _, _, before = run.kept()
        answered = {call.prompt.messages[0].text for call in before}
        client.asked.clear()
        run.search(client=client)
        is_whole(run)
        assert not answered & set(client.asked)

    def test_a_session_with_fewer_steps_at_once_continues_the_run(self, new_run):
        run = new_run(8)
        with pytest.raises(KeyboardInterrupt):
            run.search(Heard(interrupt_at=8))
        assert len(run.kept()[1]) == 8
        run.search(parallel=2)
        is_whole(run)

    def test_queued_candidates_are_evaluated_in_parallel(self, new_run):
        run, heard = new_run(5, steps=5), Heard()
        with open_run(run.path) as directory:
            proposers = {"fake": run.proposer}
            search = Search(
                directory.store, proposers, run.evaluator, directory.best_path, parallel=3
            )
            for _ in range(5):
                search._ledger.turn(search._ledger.ask("fake").id)
            follow(search.finish_queued(), heard)
        is_whole(run, 5)
        assert not heard.those("step_begun")


class TestTrouble:
    def test_a_spent_budget_lets_steps_in_flight_finish(self, new_run):
        refused = threading.Event()

        def answer(number):
            if number == 7:  # is asked before the budget is spent, and answered after that
                assert refused.wait(ENOUGH_S)
            if number > 7:
                refused.set()
                raise BudgetSpentError("no money left")

        run = new_run(3)
        heard = run.search(client=Client(answer))
        nodes, asks, _ = run.kept()
        assert len(nodes) == 7
        assert heard.those("stopping") == ["no money left"]
        assert {ask.state for ask in asks} == {"done", "open"}
        assert len(asks) <= 9
        run.search(client=Client())
        is_whole(run)

    def test_no_step_begins_after_the_time_is_over(self, new_run):
        run, looks = new_run(3), itertools.count()
        heard = run.search(spent=lambda: "time is over" if next(looks) >= 7 else None)
        nodes, asks, _ = run.kept()
        assert len(nodes) == len(asks) == 7
        assert heard.those("stopping") == ["time is over"]

    def test_an_outage_is_waited_out_together_and_burns_no_step(self, new_run):
        down, slept = threading.Event(), []
        down.set()

        def answer(number):
            if down.is_set():
                raise ModelOutageError("out of reach")

        def sleep(seconds):
            slept.append(seconds)
            if len(slept) == 3:
                down.clear()

        run, client = new_run(4), Client(answer)
        heard = run.search(client=client, sleep=sleep)
        is_whole(run)
        assert slept == [5.0, 10.0, 20.0]
        assert heard.those("waiting") == ["out of reach"] * 3
        assert heard.threads == {threading.get_ident()}
        assert len(client.asked) <= STEPS + 3 + 4

    def test_a_lasting_outage_ends_the_session_and_the_run_continues_later(self, new_run):
        def answer(number):
            if number > 6:
                raise ModelOutageError("out of reach")

        run, slept = new_run(4, outage_patience_s=12.0), []
        with pytest.raises(InfrastructureError, match="out of reach"):
            run.search(client=Client(answer), sleep=slept.append)
        assert slept == [5.0, 10.0]
        nodes, asks, calls = run.kept()
        assert len(calls) == len(nodes) + sum(ask.state == "queued" for ask in asks) == 6
        run.search(client=Client())
        is_whole(run)

    def test_steps_in_flight_beside_an_error_are_kept(self, new_run):
        begun, raised = threading.Event(), threading.Event()

        def answer(number):
            if number == 1:
                assert begun.wait(ENOUGH_S)
                raised.set()
                raise BadInputError("the key is refused")

        run = new_run(3, steps=3)
        judge = run.evaluator.evaluate

        def beside(candidate, parent=None, **_):
            begun.set()
            assert raised.wait(ENOUGH_S)
            return judge(candidate, parent)

        run.evaluator.evaluate = beside
        with pytest.raises(BadInputError, match="the key is refused"):
            run.search(client=Client(answer))
        nodes, asks, calls = run.kept()
        assert len(asks) == 3
        assert len(calls) == 2  # paid for: kept, whether it became a step or not
        assert nodes
        run.search(client=Client())
        is_whole(run, 3)

    def test_lost_machinery_leaves_the_rest_to_a_later_session(self, new_run):
        run, judge = new_run(4), FakeEvaluator()
        count = itertools.count()

        def lost(*asked, **_):
            if next(count) >= 5:
                raise InfrastructureError("the machine is gone")
            return judge.evaluate(*asked)

        run.evaluator.evaluate = lost
        with pytest.raises(InfrastructureError, match="the machine is gone"):
            run.search()
        before, _, _ = run.kept()
        run.evaluator.evaluate = judge.evaluate
        run.search()
        nodes, _ = is_whole(run)
        assert nodes[: len(before)] == before


def test_with_one_step_at_a_time_the_tree_does_not_depend_on_time(new_run):
    def tree(run):
        run.search(parallel=1)
        nodes, _ = is_whole(run)
        return [replace(node, started_at=0.0, propose_s=0.0) for node in nodes]

    assert tree(new_run()) == tree(new_run())
