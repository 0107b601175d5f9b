"""Searches whose large steps are asked for at once, each with a structure of its own."""

import re
import threading

import pytest
from hashed import Judge, number_from

from adaexplore.core.environment import Environment
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.client import BudgetSpentError, Reply
from adaexplore.core.protocols.listener import follow
from adaexplore.core.settings.config import Config
from adaexplore.core.settings.configure import make_config
from adaexplore.propose.model.prompts import Prompts
from adaexplore.propose.model.proposer import ModelProposer
from adaexplore.propose.model.published import PublishedPrompts
from adaexplore.run.asks.ledger import Ledger
from adaexplore.run.outcome.results import summary_of
from adaexplore.run.search import Search
from adaexplore.store import RunRecord, create_run, open_run

MODEL = "test:model"
NAMES = ["alpha", "beta", "gamma", "delta"]
LIST = "\n".join(f"{i}. {name}: {name} it all." for i, name in enumerate(NAMES, 1))
SOURCE = "class Model:\n    def forward(self, x):\n        return x + 1\n"
PLAIN = {"p_strategy": 0.0, "p_contrast": 0.0}


class KilledError(Exception):
    pass


class Model:
    """Names structures by `outlines`, in turn; writes a module that names its own structure.

    `kill_at` is the number of the call that ends the session, if any.
    """

    model = MODEL

    def __init__(self, *outlines, kill_at=0):
        self._outlines = list(outlines or [LIST])
        self._kill_at = kill_at
        self._guard = threading.Lock()
        self.asked = []

    def ask(self, prompt):
        with self._guard:
            self.asked.append(prompt)
            if len(self.asked) == self._kill_at:
                raise KilledError
            if is_naming(prompt):
                reply = self._outlines.pop(0)
                return reply if isinstance(reply, Reply) else Reply(reply, MODEL)
        number = number_from(prompt.digest)
        text = f"{own(prompt)} it.\n```python\nclass ModelNew:\n    number = {number}\n```"
        return Reply(text, MODEL)

    def labels(self):
        return sorted(prompt.label for prompt in self.asked)


def is_naming(prompt):
    return "Answer with a numbered list" in "".join(m.text for m in prompt.messages)


def own(prompt):
    found = re.search(r"# Your structure\n(\w+): \1 it all\.", prompt.messages[-1].text)
    return found[1] if found else ""


@pytest.fixture
def new_run(tmp_path):
    def new_run(steps=4, proposers=(MODEL,), **settings):
        record = RunRecord(
            problem=Problem("example", SOURCE, "cpp", "cpu"),
            config=make_config({**PLAIN, "steps": steps, "confirm": False, **settings}),
            proposers=proposers,
            environment=Environment(),
            command="adaexplore explore example.py",
            created_at=0.0,
        )
        create_run(tmp_path / "run", record).close()
        return tmp_path / "run"

    return new_run


def search(path, client, parallel=4, prompts=Prompts):
    """Make one session; return the nodes."""
    with open_run(path) as directory:
        config = directory.store.run().config
        searching = Search(
            directory.store,
            {MODEL: ModelProposer(prompts(), config)},
            Judge(),
            directory.best_path,
            clients={MODEL: client},
            parallel=parallel,
        )
        follow(searching.run())
        return directory.store.nodes()


def outlines_of(nodes):
    return sorted(node.proposal.settings.get("outline", "") for node in nodes)


def test_steps_at_once_get_different_structures_from_one_call(new_run):
    path, model = new_run(), Model()
    nodes = search(path, model)
    assert model.labels() == ["large.outline"] * 4 + ["outlines"]
    assert outlines_of(nodes) == sorted(NAMES)
    assert {n.proposal.note for n in nodes} == {f"outline: {n}; {n} it." for n in NAMES}
    for prompt in (p for p in model.asked if not is_naming(p)):
        told = prompt.messages[-1].text.partition("# Being written now")[2]
        others = re.findall(r"^- (\w+)$", told, re.MULTILINE)
        assert sorted([own(prompt), *others]) == sorted(NAMES)
        assert "more answer" not in told
    with open_run(path) as directory:
        costs = summary_of(directory.store, path).costs
    assert costs.total.calls == 5
    assert [(cost.form, cost.steps, cost.spent.calls) for cost in costs.forms] == [
        ("outline", 4, 5)
    ]


def test_the_steps_are_written_side_by_side_once_the_structures_are_named(new_run):
    all_four = threading.Barrier(4)

    class Meeting(Model):
        def ask(self, prompt):
            if not is_naming(prompt):
                all_four.wait(timeout=20)
            return super().ask(prompt)

    assert outlines_of(search(new_run(), Meeting())) == sorted(NAMES)


def test_steps_one_at_a_time_make_no_such_call(new_run):
    model = Model()
    assert outlines_of(search(new_run(), model, parallel=1)) == [""] * 4
    assert "outlines" not in model.labels()


@pytest.mark.parametrize(
    "settings",
    [
        {"preset": "adaexplore-l2", "p_large": 1.0},
        {"tried": False},
        {"policy": "ps"},
        {"policy": "irl"},
        {"contents": "published"},
        {"outlines": False},
    ],
)
def test_no_such_call_where_prompts_show_nothing_of_others_or_settings_forbid_it(new_run, settings):
    model = Model()
    prompts = PublishedPrompts if make_config(settings).contents == "published" else Prompts
    nodes = search(new_run(**settings), model, prompts=prompts)
    assert len(nodes) == 4
    assert outlines_of(nodes) == [""] * 4
    assert "outlines" not in model.labels()
    if settings.get("outlines") is not False:
        assert not any("being written" in p.messages[-1].text.lower() for p in model.asked)


def test_the_published_prompts_get_structures_where_the_setting_asks_for_them(new_run):
    model = Model()
    path = new_run(preset="adaexplore-l2", steps=4, outlines=True)
    assert outlines_of(search(path, model, prompts=PublishedPrompts)) == sorted(NAMES)
    assert not any("# Hardware" in p.messages[-1].text for p in model.asked)


@pytest.mark.parametrize(
    ("replies", "calls", "given"),
    [
        (["No idea.", "No idea."], 2, []),
        (["No idea.", LIST], 2, NAMES),
        ([Reply("", MODEL, "refused")], 1, []),
        (["1. alpha: alpha it all.\n2. beta: beta it all."], 1, NAMES[:2]),
        ([f"{LIST}\n5. epsilon: too many."], 1, NAMES),
    ],
)
def test_steps_without_a_structure_go_on_without(new_run, replies, calls, given):
    model = Model(*replies)
    nodes = search(new_run(), model)
    assert len(nodes) == 4
    assert sum(map(is_naming, model.asked)) == calls
    assert outlines_of(nodes) == sorted([*given, *[""] * (4 - len(given))])
    plain = [p for p in model.asked if not is_naming(p) and not own(p)]
    assert all(f"- {name}\n" in prompt.messages[-1].text for prompt in plain for name in given)


@pytest.mark.parametrize("kill_at", [1, 2, 3, 5])
def test_a_search_that_goes_on_asks_for_structures_once(new_run, kill_at):
    path, first, second = new_run(), Model(kill_at=kill_at), Model()
    with pytest.raises(KilledError):
        search(path, first)
    nodes = search(path, second)
    assert sum(map(is_naming, first.asked + second.asked)) == 1 + (kill_at == 1)
    assert sum(map(is_naming, second.asked)) == (kill_at == 1)
    assert outlines_of(nodes) == sorted(NAMES)


def test_steps_that_wait_stay_open_when_the_budget_ends_the_call(new_run):
    class Poor(Model):
        def ask(self, prompt):
            self.asked.append(prompt)
            raise BudgetSpentError("the budget is used up")

    path, poor = new_run(), Poor()
    assert search(path, poor) == []
    assert poor.labels() == ["outlines"]
    assert outlines_of(search(path, Model())) == sorted(NAMES)


def test_a_plan_of_a_search_by_steps_begins_with_the_structure(new_run):
    model = Model()
    nodes = search(new_run(policy="stepwise"), model)
    assert outlines_of(nodes) == sorted(NAMES)
    planned = [p for p in model.asked if p.label == "plan"]
    assert sorted(map(own, planned)) == sorted(NAMES)
    assert all("Plan a `ModelNew` of your structure" in p.messages[-1].text for p in planned)


class TestByHand:
    @pytest.fixture
    def ledger(self, new_run):
        def opened(**settings):
            path = new_run(proposers=("manual",), proposer="manual", **settings)
            self.directory = open_run(path)
            store = self.directory.store
            return Ledger(store, {"manual": ModelProposer(Prompts(), store.run().config)})

        yield opened
        self.directory.close()

    def open(self, ledger, number):
        with ledger.together():
            return [ledger.prompt("manual")[0] for _ in range(number)]

    def test_no_structures_unless_they_are_asked_for(self, ledger):
        ledger = ledger()
        assert {ledger.turn(ask.id)[1].label for ask in self.open(ledger, 3)} == {"large"}

    def test_the_prompts_follow_the_structures(self, ledger):
        ledger = ledger(outlines=True)
        first, second, third = self.open(ledger, 3)
        assert ledger.turn(first.id)[1].label == "outlines"
        with pytest.raises(BadInputError, match=r"ask 2 has no prompt yet: .* ask 1 asks for"):
            ledger.turn(second.id)
        assert own(ledger.tell(first.id, 0, Reply(LIST, "manual"))) == "alpha"
        assert [own(ledger.turn(ask.id)[1]) for ask in (second, third)] == ["beta", "gamma"]

    def test_who_waits_goes_on_when_the_first_expires(self, ledger):
        ledger = ledger(outlines=True)
        first, second = self.open(ledger, 2)
        self.directory.store.expire(first.id)
        assert ledger.turn(second.id)[1].label == "large"

    def test_one_prompt_alone_names_no_structures(self, ledger):
        ledger = ledger(outlines=True)
        assert self.open(ledger, 1)
        assert ledger.prompt("manual")[1].label == "large"

    def test_a_prompt_names_what_others_write(self, ledger):
        ledger = ledger(p_strategy=1.0)
        first, _ = self.open(ledger, 2)
        ledger.tell(first.id, 0, Reply("fusion: one kernel.", "manual"))
        _, third = ledger.prompt("manual")
        assert "# Being written now, by others\n- fusion\n" in third.messages[-1].text
        assert "and that no other writes now" in third.messages[-1].text
        module = "Two rows at once.\n```python\nclass ModelNew:\n    pass\n```"
        ledger.tell(first.id, 1, Reply(module, "manual"))
        _, fourth = ledger.prompt("manual")
        assert "- strategy: fusion; Two rows at once.\n" in fourth.messages[-1].text
        # A prompt does not change with what comes after it.
        assert ledger.turn(3)[1].messages == third.messages

    def test_prompts_name_nothing_of_others_where_the_settings_say_so(self, ledger):
        ledger = ledger(outlines=True, tried=False)
        first, second = self.open(ledger, 2)
        ledger.tell(first.id, 0, Reply(LIST, "manual"))
        _, alone = ledger.prompt("manual")
        given = ledger.turn(second.id)[1].messages[-1].text
        assert "# Your structure\nbeta" in given
        assert not any(name in given + alone.messages[-1].text for name in ("alpha", "written now"))

    def test_a_large_step_says_how_many_others_are_unknown(self, ledger):
        ledger = ledger()
        first, _ = self.open(ledger, 2)
        module = "Two rows at once.\n```python\nclass ModelNew:\n    pass\n```"
        ledger.tell(first.id, 0, Reply(module, "manual"))
        told = ledger.prompt("manual")[1].messages[-1].text
        assert "- large: Two rows at once.\n" in told
        assert "Choose none that is being written now." in told
        assert "1 more answer to this is being written now" in told


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, True),
        ({"proposer": "manual"}, False),
        ({"proposer": "manual", "outlines": True}, True),
        ({"policy": "irb"}, False),
        ({"policy": "irb", "tried": True}, True),
        ({"preset": "adaexplore"}, False),
        ({"outlines": False}, False),
    ],
)
def test_settings_decide_whether_structures_are_named(settings, names):
    assert Config.model_validate(settings).names_outlines == names
