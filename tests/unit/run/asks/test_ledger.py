"""Ask and tell over a real store, with dialogues whose turns are computed."""

import itertools
from dataclasses import replace

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.errors import BadInputError
from adaexplore.core.node import ROOT_ID
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import Message, Prompt, Reply
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.descriptor import Descriptor
from adaexplore.core.verdict.evaluation import Failed, Passed, Timing
from adaexplore.run.asks.ledger import Ledger
from adaexplore.store import RunRecord, create_run, open_run

HOUR_S = 3600.0


class TwoTurns:
    """A proposer that asks for a name, then for a number; the name "stop" fails."""

    def begin(self, context):
        first = Prompt((Message("user", f"seed {context.seed}: a name?"),), "name")
        name = yield first
        if name.text == "stop":
            return Proposal(Candidate("", "cpp"), "x", "nothing", failure="stopped")
        number = yield first.after(name.text, "a number?", "number")
        source = f"class ModelNew: {name.text} = {number.text}"
        return Proposal(Candidate(source, "cpp"), "x", name.text)

    def close(self):
        pass


def passed(speedup: float) -> Passed:
    timing = Timing(10.0, (9.0, 11.0), {"eager": 20.0}, speedup, (speedup, speedup), speedup, 7)
    return Passed("fp32", 1e-7, timing)


@pytest.fixture
def run(tmp_path):
    record = RunRecord(
        problem=Problem("example", "class Model: ...", "cpp", "cpu"),
        config=Config(ask_expires_h=2.0, seed=5, steps=30),
        proposers=("manual",),
        environment=Environment(),
        command="adaexplore start example.py",
        created_at=0.0,
    )
    create_run(tmp_path / "run", record).close()
    return Run(tmp_path / "run")


class Run:
    """A run directory that several sessions open, one after the other."""

    def __init__(self, path) -> None:
        self.path = path
        self.time = 1000.0

    def __call__(self):
        return _Session(self)


class _Session:
    def __init__(self, run) -> None:
        self._run = run

    def __enter__(self):
        self._directory = open_run(self._run.path)
        store = self._directory.store
        self.ledger = Ledger(store, {"manual": TwoTurns()}, now=lambda: self._run.time)
        self.store = store
        return self

    def __exit__(self, *_):
        self._directory.close()

    def step(self, name, number="1", evaluation=None):
        """Make one whole step."""
        ask = self.ledger.ask("manual")
        self.ledger.tell(ask.id, 0, Reply(name, "person"))
        self.ledger.tell(ask.id, 1, Reply(number, "person"))
        [(ask, proposal)] = self.ledger.queued()
        return self.ledger.record(ask, proposal, evaluation or passed(1.5))


def test_each_part_of_a_step_can_run_in_its_own_process(run):
    with run() as session:
        ask = session.ledger.ask("manual")
        number, prompt = session.ledger.turn(ask.id)
    assert (number, prompt.label) == (0, "name")
    with run() as session:
        after = session.ledger.tell(ask.id, 0, Reply("width", "person"))
        assert after.label == "number"
        assert [m.role for m in after.messages] == ["user", "assistant", "user"]
    with run() as session:
        assert session.ledger.turn(ask.id) == (1, after)
        proposal = session.ledger.tell(ask.id, 1, Reply("7", "person"))
        assert proposal.candidate.source == "class ModelNew: width = 7"
        assert proposal.origin == "manual"
    with run() as session:
        assert session.ledger.open() == []
        [(queued, proposal)] = session.ledger.queued()
        node = session.ledger.record(queued, proposal, passed(2.0), propose_s=1.5)
        assert (node.id, node.parent_id, node.step_kind) == (1, ROOT_ID, "large")
    with run() as session:
        assert session.ledger.nodes == [node]
        assert session.ledger.best == node
        assert session.ledger.queued() == []
        assert [call.reply.text for call in session.store.calls(ask.id)] == ["width", "7"]


def test_the_first_answer_to_a_turn_counts(run):
    with run() as session:
        ask = session.ledger.ask("manual")
        session.ledger.tell(ask.id, 0, Reply("width", "person"))
        with pytest.raises(BadInputError, match="turn 1 has been answered already"):
            session.ledger.tell(ask.id, 0, Reply("height", "person"))
        with pytest.raises(BadInputError, match="turn 3 has been answered"):
            session.ledger.tell(ask.id, 2, Reply("height", "person"))
        session.ledger.tell(ask.id, 1, Reply("7", "person"))
        with pytest.raises(BadInputError, match="turn 2 has been answered already"):
            session.ledger.tell(ask.id, 1, Reply("8", "person"))
        [(queued, proposal)] = session.ledger.queued()
        assert proposal.candidate.source == "class ModelNew: width = 7"
        session.ledger.record(queued, proposal, passed(1.0))
        with pytest.raises(BadInputError, match="answered and evaluated"):
            session.ledger.tell(ask.id, 1, Reply("8", "person"))


def test_an_unknown_ask_is_bad_input(run):
    with run() as session, pytest.raises(BadInputError, match="no ask 4"):
        session.ledger.tell(4, 0, Reply("width", "person"))


def test_many_open_asks_are_answered_in_any_order(run):
    with run() as session:
        asks = [session.ledger.ask("manual") for _ in range(4)]
        assert [ask.id for ask in asks] == [1, 2, 3, 4]
        assert len({ask.seed for ask in asks}) == 4
        assert session.ledger.open() == asks
        for ask in (asks[2], asks[0]):
            session.ledger.tell(ask.id, 0, Reply(f"n{ask.id}", "person"))
            session.ledger.tell(ask.id, 1, Reply("1", "person"))
        for ask, proposal in session.ledger.queued():
            session.ledger.record(ask, proposal, passed(1.0 + ask.id))
        assert session.ledger.open() == [asks[1], asks[3]]
        assert [n.candidate.source[-6:] for n in session.ledger.nodes] == ["n1 = 1", "n3 = 1"]
        assert session.ledger.best.id == 2


def test_asks_grow_from_what_is_recorded_only(run):
    """An ask never grows from a step in flight."""
    with run() as session:
        for i in range(8):
            session.step(f"n{i}", evaluation=passed(1.0 + i))
        recorded = {ROOT_ID, *(node.id for node in session.ledger.nodes)}
        places = [session.ledger.ask("manual") for _ in range(12)]
        assert {ask.parent_id for ask in places} <= recorded
        assert all(ask.step_kind == "large" for ask in places if ask.parent_id == ROOT_ID)
        assert len({(ask.parent_id, ask.step_kind) for ask in places}) > 1


def test_an_open_ask_moves_the_next_ask_to_another_node(run):
    with run() as session:
        for i in range(8):
            session.step(f"n{i}", evaluation=passed(1.0 + i / 100))
        first = [session.ledger.ask("manual").parent_id for _ in range(8)]
    assert len(set(first)) > 1


def test_a_failed_ask_is_recorded_as_a_step(run):
    with run() as session:
        ask = session.ledger.ask("manual")
        proposal = session.ledger.tell(ask.id, 0, Reply("stop", "person"))
        assert proposal.failure == "stopped"
        assert session.ledger.queued() == [(ask, proposal)]
        session.ledger.record(ask, proposal, Failed("rejected", "stopped"))
        assert session.ledger.cached(proposal) is None


def test_late_asks_expire_with_a_reason(run):
    with run() as session:
        ask = session.ledger.ask("manual")
        run.time += 3 * HOUR_S
        with pytest.raises(BadInputError, match="ask 1 has expired; take a new one"):
            session.ledger.tell(ask.id, 0, Reply("width", "person"))
        assert session.ledger.open() == []
        assert session.ledger.ask("manual").id == 2
        assert session.step("later").id == 1


def test_an_answered_ask_does_not_expire(run):
    with run() as session:
        ask = session.ledger.ask("manual")
        session.ledger.tell(ask.id, 0, Reply("width", "person"))
        session.ledger.tell(ask.id, 1, Reply("7", "person"))
        run.time += 3 * HOUR_S
        assert [queued for queued, _ in session.ledger.queued()] == [ask]


def test_the_same_replies_give_the_same_tree(run, tmp_path):
    def grown(stops):
        """A run of 20 steps in sessions of these lengths."""
        path = tmp_path / f"run-{len(stops)}"
        with open_run(run.path) as directory:
            create_run(path, directory.store.run()).close()
        other, names = Run(path), itertools.count()
        for length in stops:
            with other() as session:
                for _ in range(length):
                    n = next(names)
                    session.step(f"n{n}", evaluation=passed(1.0 + n * 7919 % 13 / 10))
        with other() as session:
            return [(n.parent_id, n.step_kind, n.candidate.source) for n in session.ledger.nodes]

    assert grown([20]) == grown([1, 4, 7, 8])


def test_an_unavailable_proposer_cannot_be_asked(run):
    with run() as session:
        session.ledger.ask("openai:gpt-5-mini")
        with pytest.raises(BadInputError, match="ask 1 is for openai:gpt-5-mini"):
            session.ledger.turn(1)


class TestRepeats:
    def record(self, session, number, evaluation):
        ask = session.ledger.ask("manual")
        proposal = Proposal(Candidate(f"class ModelNew:\n    v = {number}\n", "cpp"), "x", "")
        session.ledger.queue(ask, proposal)
        return session.ledger.record(ask, proposal, evaluation)

    def test_equal_compiled_code_has_the_first_verdict_and_never_leads(self, run):
        same = Descriptor(form="", code="c0de")
        with run() as session:
            first = self.record(session, 1, replace(passed(1.5), descriptor=same))
            again = self.record(session, 2, replace(passed(9.0), descriptor=same))
            assert (first.reused, again.reused) == (False, True)
            assert again.evaluation.timing == first.evaluation.timing
            assert session.ledger.best is first
        with run() as session:  # and so it is when it is read again
            assert session.ledger.best.id == first.id
            other = self.record(session, 3, replace(passed(9.0), descriptor=same))
            assert other.reused
