"""Whole searches with a model behind real HTTP, and an evaluator whose verdicts are computed."""

import contextlib
import itertools
import re

import pytest
from hashed import Judge, number_from

from adaexplore.core.environment import Environment
from adaexplore.core.errors import BadInputError, InfrastructureError
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.listener import Listener, follow
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Passed
from adaexplore.llm.budget import Budget, BudgetedClient
from adaexplore.llm.options import ClientOptions
from adaexplore.llm.providers import open_client
from adaexplore.llm.replay import RecordingClient, ReplayClient
from adaexplore.llm.retry import RetryPolicy
from adaexplore.propose.model.prompts import Prompts
from adaexplore.propose.model.proposer import ModelProposer
from adaexplore.run.asks.ledger import Ledger
from adaexplore.run.search import Search
from adaexplore.store import RunRecord, create_run, open_run
from fast_set import of_which_fast
from llm_server import Say, cut, cut_json, hang, html, status

STEPS = 12
SETTINGS = Config(policy="uct", p_large=0.4, p_strategy=0.3, p_contrast=0.3, pool_size=3, window=3)
SOURCE = "class Model:\n    def forward(self, x):\n        return x + 1\n"
NAMES = ["openai:gpt-5-mini", "anthropic:claude-haiku-4-5"]
QUICK = ClientOptions(call_timeout_s=20.0, retries=RetryPolicy(attempts=4))
FAULTS = [
    status(429, "slow down", retry_after="2"),
    status(500),
    cut,
    cut_json(),
    html(),
    Say(""),
]


def answer(messages):
    """A reply that depends on the conversation alone: mostly valid, sometimes useless."""
    asked = messages[-1]["text"]
    number = number_from([m["text"] for m in messages]) % 1000
    if "Choose the one strategy" in asked:
        return "fusion: one pass."
    if number % 3 == 0:
        return "I have no idea."
    if "<<<<<<< OLD" in asked and (old := re.findall(r"number = \d+", asked)):
        return f"Turn it.\n<<<<<<< OLD\n    {old[-1]}\n=======\n    number = {number}\n>>>>>>> NEW"
    return f"A new one.\n```python\nclass ModelNew:\n    number = {number}\n```"


class Heard(Listener):
    def __init__(self):
        self.waited = []
        self.stopped = None

    def waiting(self, reason, wait_s):
        self.waited.append((reason, wait_s))

    def stopping(self, reason):
        self.stopped = reason


@pytest.fixture
def llm(loopback, monkeypatch):
    loopback.reset(answer)
    loopback.use(monkeypatch)
    return loopback


@pytest.fixture
def new_run(tmp_path):
    numbers = itertools.count()

    def new_run(name, steps=STEPS, **settings):
        path = tmp_path / f"run-{next(numbers)}"
        record = RunRecord(
            problem=Problem("example", SOURCE, "cpp", "cpu"),
            config=SETTINGS.model_copy(update=settings).model_copy(
                update={"seed": 3, "steps": steps}
            ),
            proposers=(name,),
            environment=Environment(),
            command="adaexplore explore example.py",
            created_at=0.0,
        )
        create_run(path, record).close()
        return path

    return new_run


def search(path, client, listener=None, sleep=lambda _: None, parallel=1):
    """Run one session; return the tree."""
    with open_run(path) as directory:
        run = directory.store.run()
        proposer = ModelProposer(Prompts(), run.config)
        try:
            searching = Search(
                directory.store,
                {run.proposers[0]: proposer},
                Judge(),
                directory.best_path,
                clients={run.proposers[0]: client},
                sleep=sleep,
                parallel=parallel,
            )
            follow(searching.run(), listener)
        finally:
            client.close()
        return tree(directory.store)


def tree(store):
    return [
        (n.parent_id, n.step_kind, n.candidate.source, n.proposal.failure, n.evaluation)
        for n in store.nodes()
    ]


def asking(name):
    return open_client(name, options=QUICK, sleep=lambda _: None)


@pytest.mark.parametrize("name", of_which_fast(NAMES, NAMES[0]))
def test_faults_on_the_wire_change_nothing_in_the_tree(llm, new_run, name):
    undisturbed = search(new_run(name), asking(name))
    assert len(undisturbed) == STEPS
    assert {kind for _, kind, *_ in undisturbed} == {"large", "small"}
    assert any(failure for *_, failure, _ in undisturbed)
    assert sum(isinstance(evaluation, Passed) for *_, evaluation in undisturbed) >= STEPS / 3

    llm.reset(answer)
    faults = [f for f in FAULTS if not isinstance(f, Say)]
    llm.script.extend(f for pair in zip(faults * 2, [None] * 10, strict=True) for f in pair)
    assert search(new_run(name), asking(name)) == undisturbed
    assert not llm.script


def test_a_hanging_call_is_made_again(llm, new_run):
    undisturbed = search(new_run(NAMES[0], steps=2), asking(NAMES[0]))
    llm.reset(answer)
    llm.script.append(hang)
    impatient = open_client(
        NAMES[0], options=ClientOptions(call_timeout_s=0.5), sleep=lambda _: None
    )
    assert search(new_run(NAMES[0], steps=2), impatient) == undisturbed


def test_an_outage_pauses_the_run_and_burns_no_step(llm, new_run):
    undisturbed = search(new_run(NAMES[0], steps=6), asking(NAMES[0]))
    llm.reset(answer)
    llm.script.extend([None, None, *[status(503)] * 12])
    heard, slept = Heard(), []
    found = search(new_run(NAMES[0], steps=6), asking(NAMES[0]), heard, slept.append)
    assert found == undisturbed
    assert len(heard.waited) == len(slept) == 3
    assert slept == sorted(slept)


def test_a_lasting_outage_ends_the_session_and_the_run_continues_later(llm, new_run):
    undisturbed = search(new_run(NAMES[0], steps=6), asking(NAMES[0]))
    llm.reset(answer)
    llm.script.extend([*[None] * 4, *[status(503)] * 8])
    path = new_run(NAMES[0], steps=6, outage_patience_s=4.0)
    with pytest.raises(InfrastructureError):
        search(path, asking(NAMES[0]))
    assert not llm.script
    assert search(path, asking(NAMES[0])) == undisturbed


def test_an_answered_prompt_is_not_asked_again_after_a_kill(llm, new_run):
    """The search is killed once at every call."""

    class KilledError(Exception):
        pass

    def asked(path):
        with open_run(path) as directory:
            return [call.prompt.digest for call in directory.store.calls()]

    whole, killed = new_run(NAMES[0], steps=5), new_run(NAMES[0], steps=5)
    undisturbed = search(whole, asking(NAMES[0]))
    for _ in asked(whole):
        client, replies = asking(NAMES[0]), itertools.count()

        def once(prompt, ask=client.ask, replies=replies):
            if next(replies):
                raise KilledError
            return ask(prompt)

        client.ask = once
        with contextlib.suppress(KilledError):
            search(killed, client)
    assert search(killed, asking(NAMES[0])) == undisturbed
    assert asked(killed) == asked(whole)


def test_a_wrong_key_ends_the_run_in_one_line_and_nothing_is_lost(llm, new_run):
    path = new_run(NAMES[0], steps=6)
    llm.script.extend([*[None] * 5, status(401, "bad key")])
    with pytest.raises(BadInputError, match="OPENAI_API_KEY") as caught:
        search(path, asking(NAMES[0]))
    assert "\n" not in str(caught.value)
    with open_run(path) as directory:
        done = directory.store.node_count()
    assert 0 < done < 6
    assert len(search(path, asking(NAMES[0]))) == 6


def test_at_its_budget_the_run_ends_well(llm, new_run):
    budget = Budget(limit_tokens=8_000)
    heard = Heard()
    path = new_run(NAMES[0], steps=1000)
    found = search(path, BudgetedClient(asking(NAMES[0]), budget), heard)
    assert "budget" in heard.stopped
    assert 0 < len(found) < 1000
    assert budget.spent.input_tokens + budget.spent.output_tokens <= 8_000


@pytest.mark.slow
def test_with_several_calls_in_flight_the_budget_holds_and_every_reply_is_kept(llm, new_run):
    budget = Budget(limit_tokens=12_000)
    heard, path = Heard(), new_run(NAMES[0], steps=1000)
    llm.script.extend(f for pair in zip(FAULTS[:2] * 3, [None] * 6, strict=True) for f in pair)
    found = search(path, BudgetedClient(asking(NAMES[0]), budget), heard, parallel=4)
    assert "budget" in heard.stopped
    assert 0 < len(found) < 1000
    used = budget.spent.input_tokens + budget.spent.output_tokens
    assert used <= 12_000
    with open_run(path) as directory:
        asks, calls = directory.store.asks(), directory.store.calls()
        assert sum(ask.state == "done" for ask in asks) == len(found) >= len(asks) - 4
        ledger = Ledger(directory.store, {NAMES[0]: ModelProposer(Prompts(), SETTINGS)})
        led_to = [ledger.replay(ask.ask)[1] for ask in asks if ask.state == "done"]
    made = [node.proposal for node in ledger.nodes]
    assert sorted(map(repr, led_to)) == sorted(map(repr, made))  # in whatever order
    usages = [call.reply.usage for call in calls]
    assert sum(usage.input_tokens + usage.output_tokens for usage in usages) == used


def test_a_recorded_search_is_replayed_without_a_model(llm, new_run, tmp_path):
    folder = tmp_path / "replies"
    recorded = search(new_run(NAMES[0]), RecordingClient(asking(NAMES[0]), folder))
    asked = len(llm.conversations)
    replayed = search(new_run(NAMES[0]), ReplayClient(folder, NAMES[0]))
    assert replayed == recorded
    assert len(llm.conversations) == asked


@pytest.mark.slow
def test_a_prompt_too_long_for_the_model_loses_its_oldest_kernels(llm, new_run):
    settings = {"policy": "uct", "p_large": 1.0, "p_contrast": 0.0, "p_strategy": 0.0}
    limit, lengths = 10**9, []

    def narrow(messages):
        lengths.append(sum(len(m["text"]) for m in messages))
        if lengths[-1] > limit:
            return status(400, "too long", code="context_length_exceeded")
        filler = f"# {len(lengths)} " + "filler" * 1000  # no two alike: a prompt may come again
        return answer(messages).replace("class", f"{filler}\nclass")

    llm.answer = narrow
    search(new_run(NAMES[0], **settings), asking(NAMES[0]))
    limit = max(lengths) - 1
    lengths.clear()
    found = search(new_run(NAMES[0], **settings), asking(NAMES[0]))
    assert len(found) == STEPS
    assert max(lengths) > limit
    assert not any("even without older kernels" in failure for *_, failure, _ in found)


def _varying():
    """Return an answer that writes another module each time."""
    numbers = itertools.count(1)
    return lambda _: f"A new one.\n```python\nclass ModelNew:\n    number = {next(numbers)}\n```"


@pytest.mark.parametrize("parallel", [1, 4])
def test_samples_of_best_of_n_are_asked_for_in_the_same_words(llm, new_run, parallel):
    llm.answer = _varying()
    path = new_run(NAMES[0], steps=8, policy="ps", p_strategy=0.0)
    assert len(search(path, asking(NAMES[0]), parallel=parallel)) == 8
    with open_run(path) as directory:
        prompts = [call.prompt for call in directory.store.calls()]
    assert len(prompts) == 8
    assert len(set(prompts)) == 1


def test_parameters_of_the_policy_hold_in_a_search(llm, new_run):
    llm.answer = _varying()
    path = new_run(NAMES[0], steps=6, policy="beam:width=1,branch=3", p_large=1.0)
    parents = [parent for parent, *_ in search(path, asking(NAMES[0]))]
    assert parents[:3] == [0, 0, 0]
    assert len(set(parents[3:])) == 1
    assert parents[3] in (1, 2, 3)
