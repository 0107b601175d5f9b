"""Recorded searches gone through again: unchanged, and with one thing or another changed since."""

import dataclasses
import itertools
import re
import sqlite3

import pytest
from hashed import FACTS, Judge, number_from

from adaexplore.core.environment import Environment
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.client import Reply
from adaexplore.core.protocols.listener import follow
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.evaluate.judge.evaluators.recorded import RecordedEvaluator, UnseenCandidateError
from adaexplore.llm.replay import RecordingClient, ReplayClient
from adaexplore.propose.model.prompts import Prompts
from adaexplore.propose.model.proposer import ModelProposer
from adaexplore.run.asks.ledger import Ledger
from adaexplore.run.search import Search
from adaexplore.store import RunRecord, create_run, export_run, open_run, read_run
from adaexplore_lab.replay import retrace

MODEL = "test:model"
STEPS = 24
SETTINGS = Config(policy="uct", p_large=0.4, p_strategy=0.3, pool_size=3, window=3, extra_max=1)
SOURCE = "class Model:\n    def forward(self, x):\n        return x + 1\n"


class Computed:
    """Answers by the conversation: at times no use, and mostly what was asked for."""

    model = MODEL

    def ask(self, prompt):
        asked = prompt.messages[-1].text
        number = number_from(prompt.digest) % 1000
        if "Choose the one strategy" in asked:
            return Reply("fusion: one pass.", MODEL)
        if "Answer with a numbered list of" in asked:
            return Reply("1. one pass: fuse it.\n2. two passes: split it.", MODEL)
        if number % 5 == 0:
            return Reply("I have no idea.", MODEL)
        if "<<<<<<< OLD" in asked and (old := re.findall(r"number = \d+", asked)):
            new = f"    number = {number}"
            return Reply(f"Turn.\n<<<<<<< OLD\n    {old[-1]}\n=======\n{new}\n>>>>>>> NEW", MODEL)
        return Reply(f"New.\n```python\nclass ModelNew:\n    number = {number}\n```", MODEL)

    def close(self):
        pass


@pytest.fixture
def new_run(tmp_path):
    numbers = itertools.count()

    def new_run(**settings):
        path = tmp_path / f"run-{next(numbers)}"
        record = RunRecord(
            problem=Problem("example", SOURCE, "cpp", "cpu"),
            config=SETTINGS.model_copy(update=settings).model_copy(
                update={"seed": 3, "steps": STEPS}
            ),
            proposers=(MODEL,),
            environment=Environment(),
            command="adaexplore explore example.py",
            created_at=0.0,
            reference=FACTS,
        )
        create_run(path, record).close()
        return path

    return new_run


def proposers(settings, templates=None):
    return {MODEL: ModelProposer(Prompts(templates or {}), settings)}


def search(path, client=None, evaluator=None, parallel=1):
    with open_run(path) as directory:
        store = directory.store
        searching = Search(
            store,
            proposers(store.run().config),
            evaluator or Judge(),
            directory.best_path,
            clients={MODEL: client or Computed()},
            parallel=parallel,
        )
        follow(searching.run())
    return path


def retraced(path, templates=None):
    with read_run(path) as directory:
        store = directory.store
        return retrace(store, proposers(store.run().config, templates))


def change(path, statement, *values):
    with sqlite3.connect(path / "run.db") as database:
        database.execute(statement, values)


def nodes_of(path):
    with read_run(path) as directory:
        return directory.store.nodes()


def tree(path):
    return [
        (n.parent_id, n.step_kind, n.candidate.source, n.proposal.failure, n.evaluation)
        for n in nodes_of(path)
    ]


@pytest.mark.parametrize(
    "policy",
    ["uct", "archive"]
    + [pytest.param(name, marks=pytest.mark.slow) for name in ("beam", "islands", "polca", "irle")],
)
def test_a_search_is_what_it_was(new_run, policy):
    found = retraced(search(new_run(policy=policy)))
    assert not found.differences
    assert found.compared["selection"] == found.compared["candidate"] == STEPS


def test_a_search_of_several_steps_at_once_is_what_it_was(new_run):
    path = search(new_run(), parallel=5)
    found = retraced(path)
    assert not found.differences
    with read_run(path) as directory:
        asks = [record.ask for record in directory.store.asks()]
    assert any(ask.seen < ask.id - 1 for ask in asks)
    named = {node.proposal.settings.get("outline") for node in nodes_of(path)}
    assert named >= {"one pass", "two passes"}


def test_asks_that_were_answered_late_or_never_are_gone_through_too(new_run):
    """Some open side by side, some expired, one queued and one half answered at the end."""
    path, time = new_run(ask_expires_h=2.0), [1000.0]
    client, judge = Computed(), Judge()

    def answer(ledger, ask, turns=9):
        number, turn = ledger.turn(ask.id)
        while turns and not hasattr(turn, "candidate"):
            turn = ledger.tell(ask.id, number, client.ask(turn))
            number, turns = number + 1, turns - 1

    def record(ledger):
        for ask, proposal in ledger.queued():
            verdict = judge.evaluate(proposal.candidate)
            failed = Failed("rejected", proposal.failure)
            ledger.record(ask, proposal, failed if proposal.failure else verdict)

    with open_run(path) as directory:
        made = proposers(directory.store.run().config)
        for batch in range(6):
            time[0] += 3000.0
            ledger = Ledger(directory.store, made, now=lambda: time[0])
            asks = [ledger.ask(MODEL) for _ in range(4)]
            for ask in asks[batch % 2 :][::-1]:
                answer(ledger, ask)
            record(ledger)
        queued, half, _ = (ledger.ask(MODEL) for _ in range(3))
        answer(ledger, queued)
        answer(ledger, half, turns=1)
        states = {record.state for record in directory.store.asks()}
    assert states == {"open", "queued", "done", "expired"}
    found = retraced(path)
    assert not found.differences
    assert found.compared["selection"] == 27


def _config_of(path):
    with read_run(path) as directory:
        return directory.store.run().config


def test_another_policy_shows_in_the_selection_alone(new_run):
    path = search(new_run())
    settings = _config_of(path).model_copy(update={"c": 30.0, "small_limit": 0})
    change(path, "update run set config = ?", settings.model_dump_json())
    found = retraced(path)
    assert {each.part for each in found.differences} == {"selection"}
    assert re.match(r"(parent|step_kind) was .+, is .+", found.differences[0].what)


def test_other_words_show_in_the_prompts_alone(new_run):
    path = search(new_run())
    found = retraced(path, {"mine/task_tuner.j2": "Do as you like.\n{{ patch_format }}"})
    assert {each.part for each in found.differences} == {"prompt"}
    first = found.differences[0]
    assert first.what.startswith("turn 2 (small.tuner): line ")
    assert "now 'Do as you like.'" in first.what


def test_every_session_measures_anew(new_run):
    path = new_run()
    for steps, eager_us in ((10, 10.0), (STEPS, 1234.5)):
        with open_run(path) as directory:
            directory.store.set_config(directory.store.run().config.with_steps(steps))
        search(path, evaluator=Judge(dataclasses.replace(FACTS, baselines_us={"eager": eager_us})))
    with read_run(path) as directory:
        asked = [call.prompt.messages[1].text for call in directory.store.calls()]
    told = [text for text in asked if "Times to beat" in text]  # where code is mended, none are
    assert "eager 10.0 µs" in told[0]
    assert "eager 1.23 ms" in told[-1]
    assert not retraced(path).differences


def test_another_parser_s_candidate_is_told_with_the_nearest(new_run):
    path = search(new_run())
    [(call, ask)] = _first_module(path)
    change(
        path,
        "update calls set text = replace(text, 'number', 'digit') where id = ?",
        call,
    )
    found = retraced(path)
    [only] = [each for each in found.differences if each.part == "candidate"]
    assert only.ask_id == ask
    assert "this candidate was never evaluated; the nearest is step " in only.what
    assert re.search(r"recorded '    number = \d+', now '    digit = \d+'", only.what)

    change(path, "update calls set text = 'no code' where id = ?", call)
    [only] = [each for each in retraced(path).differences if each.part == "candidate"]
    assert only.what == "its replies no longer suffice"


def _first_module(path):
    with sqlite3.connect(path / "run.db") as database:
        return database.execute(
            "select min(id), ask_id from calls group by ask_id "
            "having count(*) = 1 and min(text) like 'New.%' order by ask_id limit 1"
        ).fetchall()


def test_what_nobody_can_ask_again_is_taken_as_it_is(new_run):
    path = search(new_run())
    with read_run(path) as directory:
        found = retrace(directory.store, {})
    assert found.compared == {"selection": STEPS}
    assert not found.differences


def test_a_run_without_asks(new_run):
    path = search(new_run())
    change(path, "delete from calls")
    change(path, "delete from asks")
    with pytest.raises(BadInputError, match="steps without an ask"):
        retraced(path)


def test_an_exported_run_is_as_good(new_run, tmp_path):
    path = search(new_run())
    with read_run(path) as directory:
        export_run(directory.store, tmp_path / "run.json.xz")
    assert retraced(tmp_path / "run.json.xz") == retraced(path)


def test_a_whole_search_runs_on_recorded_replies_and_verdicts(new_run, tmp_path):
    first = search(new_run(), client=RecordingClient(Computed(), tmp_path / "replies"))
    judge = RecordedEvaluator(nodes_of(first), FACTS)
    second = search(new_run(), client=ReplayClient(tmp_path / "replies", MODEL), evaluator=judge)
    assert tree(second) == tree(first)
    assert len(tree(first)) == STEPS

    few = RecordedEvaluator(nodes_of(first)[:5], FACTS)
    with pytest.raises(UnseenCandidateError, match="the nearest is step"):
        search(new_run(), client=ReplayClient(tmp_path / "replies", MODEL), evaluator=few)
