"""Contract of `adaexplore.store.Store`, tested on every implementation.

A new implementation joins by adding its name to the fixture `new_database` and a class like
`SqliteDatabase`.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from adaexplore.core.ask import Ask, AskRecord, Exchange
from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment, Isolation
from adaexplore.core.errors import BadInputError
from adaexplore.core.node import ROOT_ID, Node
from adaexplore.core.problem import Checks, Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import Message, Prompt, Reply, Usage
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Cost, Estimate, Evaluation, Failed, Passed, Timing
from adaexplore.core.verdict.facts import (
    OutputForm,
    ReferenceFacts,
    ReferenceProducts,
    ReferenceRoofline,
    WorkloadFacts,
)
from adaexplore.store import FORMAT_VERSION, Confirmation, RunRecord, Store
from adaexplore.store.failures import Mode
from adaexplore.store.postgres import postgres_engine
from adaexplore.store.sql import SqlStore
from adaexplore.store.sqlite import sqlite_engine


class Database(Protocol):
    """Storage of one run by one implementation."""

    def create(self, run: RunRecord) -> Store: ...

    def open(self) -> Store: ...

    def read(self) -> Store: ...


class SqliteDatabase:
    def __init__(self, place: Path) -> None:
        self._place = place

    def create(self, run: RunRecord) -> Store:
        return SqlStore.create(sqlite_engine(self._place / "run.db", "create"), self._place, run)

    def open(self) -> Store:
        return SqlStore.open(sqlite_engine(self._place / "run.db", "write"), self._place)

    def read(self) -> Store:
        return SqlStore.open(sqlite_engine(self._place / "run.db", "read"), self._place)


class PostgresDatabase:
    """One run in a database that all tests share; `opened` takes its engines."""

    def __init__(self, url: str, opened: list[Engine]) -> None:
        self._url = url
        self._opened = opened
        self._run_id = 0

    def create(self, run: RunRecord) -> Store:
        store = SqlStore.create(self._engine("create"), Path("run"), run)
        self._run_id = store.run_id
        return store

    def open(self) -> Store:
        return SqlStore.open(self._engine("write"), Path("run"), self._run_id)

    def read(self) -> Store:
        return SqlStore.open(self._engine("read"), Path("run"), self._run_id)

    def _engine(self, mode: Mode) -> Engine:
        self._opened.append(postgres_engine(self._url, mode))
        return self._opened[-1]


@pytest.fixture(params=["sqlite", "postgresql"])
def new_database(request, tmp_path_factory):
    """Make storage for one more run."""
    if request.param == "sqlite":
        yield lambda: SqliteDatabase(tmp_path_factory.mktemp("run"))
        return
    opened: list[Engine] = []
    url = request.getfixturevalue("postgresql").url
    yield lambda: PostgresDatabase(url, opened)
    for engine in opened:
        engine.dispose()


@pytest.fixture
def database(new_database) -> Database:
    return new_database()


RUN = RunRecord(
    problem=Problem(
        "softmax",
        "class Model:\n    ...\n",
        "triton",
        "cuda:1",
        checks=Checks("tf32"),
        seed=3,
        mode="eval",
    ),
    config=Config(c=0.25, alpha=1.0, reward="published", confirm=False, seed=7, steps=20),
    proposers=("compiler",),
    environment=Environment(device="cuda:0", gpu="H200", torch="2.13.0", cores=16),
    command="adaexplore explore 'my softmax.py' --seed 7",
    created_at=1_700_000_000.25,
)
TIMING = Timing(10.5, (10.0, 11.0), {"eager": 21.0, "compile": 15.75}, 1.5, (1.4, 1.6), 2.0, 100)
PASSED = Passed("fp32", 2.5e-7, TIMING, Cost(3.5, 0.75), "all five seeds")


def eager(time_us: float) -> ReferenceFacts:
    return ReferenceFacts(baselines_us={"eager": time_us})


def node(node_id: int, parent_id: int = ROOT_ID, evaluation: Evaluation = PASSED) -> Node:
    candidate = Candidate(f"class ModelNew: number = {node_id}", "cpp")
    return Node(node_id, parent_id, "large", Proposal(candidate, "compiler", "a note"), evaluation)


def test_a_new_run_has_its_record_and_no_steps(database):
    store = database.create(RUN)
    assert store.run() == RUN
    assert store.run().format_version == FORMAT_VERSION
    assert store.node_count() == 0
    assert store.nodes() == []
    assert store.confirmations() == []


def test_updates_of_the_record_are_stored(database):
    store = database.create(RUN)
    store.set_reference(ReferenceFacts(outputs=(OutputForm("output", (2, 3), "float32"),)))
    store.set_reference(eager(13.0))
    store.set_config(store.run().config.with_steps(50))
    store.set_plan({"budget": "2usd"})
    store.set_plan({"budget": "5usd", "templates": {"mine/pool.j2": "none"}})
    store.close()
    plan = {"budget": "5usd", "templates": {"mine/pool.j2": "none"}}
    assert database.open().run() == replace(
        RUN, reference=eager(13.0), config=RUN.config.with_steps(50), plan=plan
    )


def test_the_files_of_the_problem_may_move(database):
    store = database.create(RUN)
    moved = replace(RUN.problem, access=replace(RUN.problem.access, file="/elsewhere/problem.py"))
    store.move(moved)
    with pytest.raises(ValueError, match="is not the problem of the run"):
        store.move(replace(RUN.problem, seed=RUN.problem.seed + 1))
    store.close()
    assert database.open().run() == replace(RUN, problem=moved)


def test_an_ask_keeps_the_facts_it_was_opened_with(database):
    store = database.create(replace(RUN, reference=eager(1.0)))
    assert store.reference_for(1) == eager(1.0)
    store.open_ask(an_ask(1))
    store.set_reference(eager(1.0))
    store.open_ask(an_ask(2))
    for measured in (2.0, 3.0):
        store.set_reference(eager(measured))
    store.close()
    store = database.open()
    store.open_ask(an_ask(3))
    assert [store.reference_for(n) for n in (1, 2, 3, 4)] == list(map(eager, (1.0, 1.0, 3.0, 3.0)))
    assert store.run().reference == eager(3.0)


def test_steps_are_read_in_order_and_continue_after_reopening(database):
    store = database.create(RUN)
    steps = [node(1), node(2, 1), node(3, 1), node(4, 2)]
    for step in steps[:3]:
        store.record(step)
    store.close()
    store = database.open()
    assert store.node_count() == 3
    store.record(steps[3])
    assert store.nodes() == steps


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (node(2), "node 2 cannot be recorded: the next is 3"),
        (node(4), "node 4 cannot be recorded: the next is 3"),
        (node(0), "node 0 cannot be recorded: the next is 3"),
        (node(3, parent_id=3), "node 3 names parent 3, which is not recorded"),
        (node(3, parent_id=9), "node 3 names parent 9, which is not recorded"),
        (node(3, parent_id=-1), "node 3 names parent -1, which is not recorded"),
    ],
)
def test_a_step_out_of_order_is_refused_and_stores_nothing(database, refused, message):
    store = database.create(RUN)
    store.record(node(1))
    store.record(node(2))
    with pytest.raises(ValueError, match=message):
        store.record(refused)
    assert store.nodes() == [node(1), node(2)]
    store.record(node(3, parent_id=2))
    assert store.node_count() == 3


def test_a_candidate_and_its_evaluation_may_repeat(database):
    first = node(1)
    again = replace(first, id=2, parent_id=1, step_kind="small", reused=True)
    other_language = Candidate(first.candidate.source, "triton")
    third = replace(first, id=3, proposal=replace(first.proposal, candidate=other_language))
    store = database.create(RUN)
    for step in (first, again, third):
        store.record(step)
    assert store.nodes() == [first, again, third]


@pytest.mark.parametrize("text", ["\0", "\x1a", "\x1a0", "\x1a1", "\x1a\0\x1a1\0", "naïve 🙂\r\n"])
def test_any_text_is_read_back(database, text):
    store = database.create(RUN)
    proposal = Proposal(Candidate(text, "cpp"), "compiler", text, {text: [text]}, text, text, text)
    store.record(replace(node(1), proposal=proposal))
    assert store.nodes()[0].proposal == proposal


def test_non_finite_numbers_are_read_back(database):
    store = database.create(RUN)
    store.record(node(1, evaluation=Failed("wrong_output", "overflow", error=math.inf)))
    store.record(node(2, evaluation=Failed("wrong_output", "not a number", error=math.nan)))
    first, second = store.nodes()
    assert first.evaluation.error == math.inf
    assert second.evaluation.error is not None
    assert math.isnan(second.evaluation.error)


def test_every_confirmation_is_stored_in_order(database):
    store = database.create(RUN)
    store.record(node(1))
    first = Confirmation(1, PASSED, 1_700_000_100.5)
    store.confirm(first)
    assert store.confirmations() == [first]
    second = Confirmation(1, Failed("timeout", "took 180 s"), 1_700_000_200.5)
    store.confirm(second)
    store.close()
    assert database.open().confirmations() == [first, second]


def test_both_evaluations_of_a_candidate_are_stored(database):
    store = database.create(RUN)
    twice = replace(node(2), repeats=(PASSED, Failed("timeout", "took 180 s")))
    for step in (node(1), twice, node(3)):
        store.record(step)
    store.close()
    assert database.open().nodes() == [node(1), twice, node(3)]


def test_a_confirmation_without_its_step_is_refused(database):
    store = database.create(RUN)
    store.record(node(1))
    for node_id in (ROOT_ID, 2):
        with pytest.raises(ValueError, match=f"node {node_id} is confirmed but not recorded"):
            store.confirm(Confirmation(node_id, PASSED, 0.0))
    assert store.confirmations() == []


def test_a_reader_sees_later_writes(database):
    writer = database.create(RUN)
    reader = database.read()
    assert reader.nodes() == []
    writer.record(node(1))
    assert reader.nodes() == [node(1)]
    writer.set_config(writer.run().config.with_steps(99))
    assert reader.run().steps == 99


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.record(node(2)),
        lambda store: store.set_config(store.run().config.with_steps(99)),
        lambda store: store.move(RUN.problem),
        lambda store: store.set_reference(eager(1.0)),
        lambda store: store.confirm(Confirmation(1, PASSED, 0.0)),
    ],
    ids=["record", "set_config", "move", "set_reference", "confirm"],
)
def test_a_reader_cannot_write(database, write):
    writer = database.create(RUN)
    writer.record(node(1))
    reader = database.read()
    with pytest.raises(BadInputError, match="read only"):
        write(reader)
    assert writer.run() == RUN
    assert writer.nodes() == [node(1)]
    assert writer.confirmations() == []


whole = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
numbers = st.floats(allow_nan=False)
pairs = st.tuples(numbers, numbers)
costs = st.builds(Cost, numbers, numbers)
plain_json = st.dictionaries(
    texts,
    st.recursive(
        st.none() | st.booleans() | whole | numbers | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)
baselines = st.dictionaries(st.sampled_from(["eager", "compile"]), numbers)
timings = st.builds(Timing, numbers, pairs, baselines, numbers, pairs, numbers, whole)
evaluations = st.builds(
    Passed, st.sampled_from(["fp32", "tf32", "half"]), numbers, timings, costs, texts
) | st.builds(
    Failed,
    st.sampled_from(["compile_error", "wrong_output", "infra_error"]),
    texts,
    texts,
    st.none() | numbers,
    costs,
)
proposals = st.builds(
    Proposal,
    st.builds(Candidate, texts, st.sampled_from(["triton", "cpp"])),
    texts,
    texts,
    plain_json,
    texts,
    texts,
    texts,
)


mechanisms = st.builds(Isolation, network=texts, missing=st.lists(texts).map(tuple))
environments = st.builds(Environment, gpu=texts, cores=whole, isolation=mechanisms)
shapes = st.lists(whole, max_size=3).map(tuple)
outputs = st.lists(st.builds(OutputForm, texts, shapes, texts), max_size=2).map(tuple)
rooflines = st.just(ReferenceRoofline(8, 2, 1.5, "memory", 4.0e12, {"fp32": 1.5}, 2.0))
workloads = st.builds(WorkloadFacts, texts, st.just(("own-0",)), outputs, roofline=rooflines)
references = st.builds(
    ReferenceFacts,
    baselines_us=st.dictionaries(texts, numbers, max_size=2),
    outputs=outputs,
    roofline=st.none() | rooflines,
    products=st.none() | st.builds(ReferenceProducts, whole, whole, numbers),
    labels=st.dictionaries(texts, texts, max_size=2),
    notes=st.lists(texts, max_size=2).map(tuple),
    workloads=st.lists(workloads, max_size=2).map(tuple),
    estimate=st.none() | st.builds(Estimate, numbers, st.just("memory"), texts),
)


@st.composite
def searches(draw: st.DrawFn) -> list[Node]:
    return [
        Node(
            node_id,
            draw(st.integers(ROOT_ID, node_id - 1)),
            draw(st.sampled_from(["large", "small"])),
            draw(proposals),
            draw(evaluations),
            draw(numbers),
            draw(numbers),
            draw(st.booleans()),
        )
        for node_id in range(1, draw(st.integers(1, 4)) + 1)
    ]


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(searches(), environments, references)
def test_every_record_is_read_back_equal(
    new_database, steps: list[Node], environment: Environment, reference: ReferenceFacts
):
    database = new_database()
    run = replace(RUN, environment=environment, reference=reference)
    store = database.create(run)
    for step in steps:
        store.record(step)
    store.close()
    reader = database.read()
    assert reader.nodes() == steps
    assert reader.run() == run
    reader.close()


def an_ask(ask_id: int, **changes) -> Ask:
    ask = Ask(ask_id, 0, "small", 77, (3, 1), (1, 2), 4, "openai:gpt-5-mini", 1_700_000_000.5)
    return replace(ask, **changes)


def a_call(ask_id: int, text: str) -> Exchange:
    prompt = Prompt((Message("system", "be brief"), Message("user", "naïve?\0")), "tuner")
    reply = Reply(text, "openai:gpt-5-mini", "truncated", Usage(10, 20, 5, 0.25), 1.5, 2)
    return Exchange(ask_id, prompt, reply, 1_700_000_001.5)


class TestAsks:
    def test_asks_are_read_back_equal_and_in_order(self, database):
        store = database.create(RUN)
        asks = [an_ask(1), an_ask(2, step_kind="large", pool=(), window=())]
        for ask in asks:
            store.open_ask(ask)
        store.close()
        store = database.open()
        assert store.asks() == [AskRecord(ask, "open") for ask in asks]
        assert store.find_ask(2) == AskRecord(asks[1], "open")
        assert store.find_ask(3) is None
        assert store.ask_count() == 2

    def test_an_ask_goes_from_open_to_done(self, database):
        store = database.create(RUN)
        store.open_ask(an_ask(1))
        proposal = node(1).proposal
        store.queue(1, proposal)
        assert store.asks("queued") == [AskRecord(an_ask(1), "queued", proposal)]
        assert store.asks("open") == []
        answer = replace(node(1), ask_id=1)
        store.record(answer)
        assert store.asks("open", "queued") == []
        assert store.asks("done") == [AskRecord(an_ask(1), "done")]
        assert store.nodes() == [answer]

    def test_exchanges_are_stored_in_order(self, database):
        store = database.create(RUN)
        for ask_id in (1, 2):
            store.open_ask(an_ask(ask_id))
        calls = [a_call(1, "first"), a_call(2, "other"), a_call(1, "second")]
        for call in calls:
            store.add_call(call)
        store.close()
        store = database.open()
        assert store.calls() == calls
        assert store.calls(1) == [calls[0], calls[2]]
        assert store.calls(3) == []

    def test_an_invalid_change_is_refused_and_changes_nothing(self, database):
        store = database.create(RUN)
        store.open_ask(an_ask(1))
        with pytest.raises(ValueError, match="ask 3 cannot be opened: the next is 2"):
            store.open_ask(an_ask(3))
        with pytest.raises(ValueError, match="ask 1 is open, not queued"):
            store.record(replace(node(1), ask_id=1))
        with pytest.raises(ValueError, match="ask 9 is unknown, not open"):
            store.add_call(a_call(9, "?"))
        store.expire(1)
        for late in (
            lambda: store.add_call(a_call(1, "late")),
            lambda: store.queue(1, node(1).proposal),
            lambda: store.expire(1),
        ):
            with pytest.raises(ValueError, match="ask 1 is expired"):
                late()
        assert store.nodes() == []
        assert store.calls() == []
        assert store.asks() == [AskRecord(an_ask(1), "expired")]

    def test_a_run_without_asks_has_none(self, database):
        store = database.create(RUN)
        store.close()
        store = database.read()
        assert store.asks() == []
        assert store.calls() == []
        assert store.ask_count() == 0


def test_the_plan_of_a_run_is_stored(database):
    run = replace(RUN, plan={"budget": "2usd", "models": ["openai:gpt-5-mini"]})
    store = database.create(run)
    assert store.run() == run
    store.close()
    assert database.read().run() == run
