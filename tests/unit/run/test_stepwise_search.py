"""Searches by `stepwise`: the plan of a model, carried out item by item.

`Author` answers prompts. A plan's items are named after its ask, and a module lists the items that
were carried out on it. Each session opens the store anew.
"""

import random
import re
from collections import defaultdict

import pytest

from adaexplore.core.environment import Environment
from adaexplore.core.node import ROOT_ID
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.client import Reply
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Failed, Passed, Timing
from adaexplore.propose.model.prompts import Prompts
from adaexplore.propose.model.proposer import ModelProposer
from adaexplore.run.asks.ledger import Ledger
from adaexplore.store import RunRecord, create_run, open_run

ITEMS, TRIES = 4, 2
SETTINGS = Config(policy=f"stepwise:items={ITEMS},tries={TRIES}", steps=60, seed=7, p_contrast=0.0)
PROPOSER = ModelProposer(Prompts(), SETTINGS)


def written(ask_id, items=()):
    source = f"class ModelNew:\n    step = {ask_id}\n    has = {list(items)}\n"
    return f"An idea.\n```python\n{source}```"


def items_of(source):
    return re.findall(r"item_\d+_\d", source)


class Author:
    """Answers one prompt at a time, and keeps all of them."""

    def __init__(self):
        self.asked = defaultdict(list)  # (label, text) by ask
        self.planned = {}  # the items of each ask's plan

    def __call__(self, ask, prompt):
        text = prompt.messages[-1].text
        self.asked[ask.id].append((prompt.label, text))
        match prompt.label:
            case "plan":
                names = [f"item_{ask.id}_{i}" for i in range(1, 2 + ask.id % ITEMS)]
                self.planned[ask.id] = names
                listed = "".join(f"{i}. {name}\n" for i, name in enumerate(names, 1))
                return f"A structure.\n\n{listed}"
            case "small.item":
                [now] = re.findall(r"^\d\. \[now\] (\w+)$", text, re.MULTILINE)
                current = text.partition("(current)")[2].partition("# The plan")[0]
                return written(ask.id, [*items_of(current), now])
            case "large.plan" | "repair":
                return written(ask.id)
        raise AssertionError(prompt.label)


def passed(speedup):
    interval = (0.999 * speedup, 1.001 * speedup)
    timing = Timing(1.0, (1.0, 1.0), {"eager": speedup}, speedup, interval, speedup, 7)
    return Passed("fp32", 0.0, timing)


def speed_of(node):
    return node.evaluation.measured.speedup if node and is_right(node) else 0.0


def is_right(node):
    return isinstance(node.evaluation, Passed)


def judged(proposal, parent):
    """A verdict that depends on the source alone, and the speed of its parent."""
    draw = random.Random(proposal.candidate.source).random()
    if draw < 0.4:
        return Failed("wrong_output", "off by 0.5")
    return passed((speed_of(parent) or 1.0) * (0.7 if draw < 0.55 else 1.1))


class Search:
    """A search with `in_flight` asks at a time, answered and judged in any order."""

    def __init__(self, path, in_flight=1, settings=SETTINGS):
        record = RunRecord(
            problem=Problem("example", "class Model: ...", "cpp", "cpu"),
            config=settings,
            proposers=("manual",),
            environment=Environment(),
            command="",
            created_at=0.0,
        )
        create_run(path, record).close()
        self.path, self.in_flight = path, in_flight
        self.author = Author()

    def session(self, steps, rng):
        """Go on until `steps` steps are recorded, in a process of its own; leave asks open."""
        with open_run(self.path) as directory:
            ledger = Ledger(directory.store, {"manual": PROPOSER})
            while len(ledger.nodes) < steps:
                while len(ledger.open()) < self.in_flight:
                    ledger.prompt("manual")
                ask = rng.choice(ledger.open())
                turn, prompt = ledger.turn(ask.id)
                ledger.tell(ask.id, turn, Reply(self.author(ask, prompt), "a model"))
                for queued, proposal in ledger.queued():
                    verdict = judged(proposal, ledger.parent(queued))
                    ledger.record(queued, proposal, verdict)
            return ledger.nodes

    def run(self, steps, sessions=1, seed=0):
        rng = random.Random(seed)
        for part in range(1, sessions + 1):
            nodes = self.session(steps * part // sessions, rng)
        return nodes


def check_plans(nodes, author):
    """Follow each plan by the rules in words; return how many ended, and how many there are."""
    ended = 0
    heads = [node for node in nodes if node.parent_id == ROOT_ID]
    assert all(node.step_kind == ("large" if node in heads else "small") for node in nodes)
    for head in heads:
        names = author.planned[head.ask_id]
        below = {head.id}
        steps = []
        for node in nodes[head.id :]:
            if node.parent_id in below:
                below.add(node.id)
                steps.append(node)
        base, left, failed = head, list(names), int(not is_right(head))
        for node in steps:
            assert node.parent_id == base.id
            [(label, text)] = author.asked[node.ask_id]
            mending = not is_right(base)
            assert label == ("repair" if mending else "small.item")
            if not mending:
                carried_out = [*items_of(base.candidate.source), left[0]]
                assert items_of(node.candidate.source) == carried_out
                assert set(items_of(text)) == set(names)
            if speed_of(node) > speed_of(base):
                base, failed = node, 0
                left = left if mending else left[1:]
            else:
                failed += 1
                if failed == TRIES:
                    left, failed = ([] if mending else left[1:]), 0
        ended += not left
    return ended, len(heads)


@pytest.mark.parametrize("in_flight", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_items_are_carried_out_in_order_on_the_last_working_kernel(tmp_path, in_flight):
    search = Search(tmp_path / "run", in_flight)
    ended, plans = check_plans(search.run(60), search.author)
    assert ended >= 5
    assert plans - ended <= in_flight


def test_a_search_in_many_sessions_is_the_same(tmp_path):
    whole, parts = Search(tmp_path / "whole"), Search(tmp_path / "parts")
    nodes, again = whole.run(30), parts.run(30, sessions=30)
    assert [(n.parent_id, n.proposal) for n in again] == [(n.parent_id, n.proposal) for n in nodes]
    assert parts.author.asked == whole.author.asked


def test_with_several_asks_open_the_sessions_make_no_difference(tmp_path):
    search = Search(tmp_path / "run", 3)
    ended, _ = check_plans(search.run(40, sessions=20), search.author)
    assert ended >= 3


def test_a_plan_is_asked_for_once_and_shown_the_best_kernels(tmp_path):
    search = Search(tmp_path / "run")
    nodes = search.run(60)
    heads = [node for node in nodes if node.parent_id == ROOT_ID]
    for head in heads:
        (first, plan), (second, text) = search.author.asked[head.ask_id]
        assert (first, second) == ("plan", "large.plan")
        assert "the first version that your plan begins with" in text
        right = list(filter(is_right, nodes[: head.id - 1]))
        assert ("# Kernels to beat" in plan) == bool(right)
        if right:
            best = max(right, key=speed_of)
            assert best.candidate.source in plan
    labels = [label for asked in search.author.asked.values() for label, _ in asked]
    assert labels.count("plan") == len(heads)


def test_reasons_of_failed_and_skipped_items_are_shown(tmp_path):
    search = Search(tmp_path / "run")
    nodes = search.run(60)
    texts = [asked[0][1] for asked in search.author.asked.values() if asked[0][0] == "small.item"]
    skipped = [re.findall(r"\[skipped\] .*\n   - (.*)\n   - (.*)\n", text) for text in texts]
    reasons = [reason for found in skipped for pair in found for reason in pair]
    assert any(": wrong_output: off by 0.5" in reason for reason in reasons)
    assert any(reason.endswith("(not kept)") for reason in reasons)
    retried = 0
    for node in nodes:
        _, _, attempt = search.author.asked[node.ask_id][0][1].partition("# The last attempt")
        if attempt:
            before = max(n.id for n in nodes[: node.id - 1] if n.parent_id == node.parent_id)
            assert f"tep {before}" in attempt
            assert nodes[before - 1].candidate.source.splitlines()[1] in attempt
            retried += 1
    assert retried >= 3
