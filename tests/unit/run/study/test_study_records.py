"""The steps of recorded runs: what each began from, gained, and was told of the memory."""

import math

import pytest

from adaexplore.core.ask import Ask, Exchange
from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.node import START, Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import Message, Prompt, Reply
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Failed, Passed, Timing
from adaexplore.memory.files import BUNDLED, load_memory, memory_path
from adaexplore.memory.lint import lint
from adaexplore.run.campaign.file import CampaignEntry, CampaignPlan
from adaexplore.run.campaign.job import ProgressRow
from adaexplore.run.campaign.run import CampaignRun
from adaexplore.run.proposers import Plan
from adaexplore.run.study.records import study_summary
from adaexplore.store import RunRecord, create_run
from adaexplore.store.campaign import create_campaign

RULES = load_memory(memory_path(BUNDLED))
TRITON = RULES[0].holds[0].triton
RULE = next(
    rule
    for rule in RULES
    if rule.matcher and any(hit.rule is rule for hit in lint(rule.witness, RULES, TRITON, "sm_90"))
)
PROBLEM = Problem("relu", "class Model: ...", "triton", "cuda:0")
BROKEN = tuple(hit.rule.name for hit in lint(RULE.witness, RULES, TRITON, "sm_90"))


def passed(speedup):
    timing = Timing(10.0, (9.0, 11.0), {"eager": 20.0}, speedup, (speedup, speedup), speedup, 7)
    return Passed("fp32", 1e-7, timing)


STEPS = [  # parent, kind, evaluation, source, rules told; the last is no step but a start
    (0, "large", passed(1.0), "a = 1\nb = 2\n", [RULE]),
    (1, "small", passed(2.0), "a = 1\nb = 2\n", []),
    (0, "large", passed(1.5), RULE.witness, [RULE, *RULES[:2]]),
    (1, "small", Failed("compile_error", "no"), "c = 3\n", []),
    (3, "small", passed(3.0), "", []),
    (0, "large", passed(4.0), "start = 1", []),
]


def search(path, arm):
    """The recorded search of an arm."""
    config = Config(policy=arm, memory="bundled")
    plan = Plan(("manual",), rules=tuple(RULES))
    environment = Environment(gpu="NVIDIA H200", compute_capability="9.0", triton=TRITON)
    record = RunRecord(
        PROBLEM, config, ("manual",), environment, "command", 1.5e9, plan=plan.to_json()
    )
    with create_run(path, record) as run:
        for number, (parent, kind, evaluation, source, told) in enumerate(STEPS, 1):
            text = "\n".join(["Rules:", *(rule.statement for rule in told)])
            run.store.open_ask(Ask(number, parent, kind, 1, (), (), number - 1, "manual", 1.5e9))
            prompt = Prompt((Message("user", text),), "large")
            run.store.add_call(Exchange(number, prompt, Reply("...", "manual"), 1.5e9))
            settings = {"prompt_tokens": {"rules": 10 * len(told)}}
            origin = START if source.startswith("start") else "manual"
            proposal = Proposal(Candidate(source, "triton"), origin, "a note", settings)
            run.store.queue(number, proposal)
            run.store.record(Node(number, parent, kind, proposal, evaluation, ask_id=number))


@pytest.fixture(scope="module")
def summary(tmp_path_factory):
    folder, arms = tmp_path_factory.mktemp("studies") / "study", ("uct", "ps")
    entries = tuple(
        CampaignEntry(f"{arm}/relu-seed0", "relu.py", Config(policy=arm), arm=arm) for arm in arms
    )
    order = CampaignPlan(Config(), entries, arms=arms)
    create_campaign(folder, {"command": "adaexplore study", "order": order.to_json()})
    for arm in arms:
        search(folder / arm / "relu-seed0", arm)
    run = CampaignRun(folder, lambda _: ProgressRow())
    return study_summary(folder, run.summary(reports=False))


def test_gains_are_over_what_a_step_began_from(summary):
    large, small, *_ = summary.kinds
    assert (large.steps, large.compared, large.correct) == (2, 1, 1.0)
    assert large.gain == pytest.approx(1.5 / 2.0)  # from nothing: over the best before
    assert (small.steps, small.compared) == (3, 2)
    assert small.gain == pytest.approx(math.sqrt(2.0 / 1.0 * 3.0 / 1.5))  # over the parents
    assert (large.improved, small.improved) == (0.5, pytest.approx(2 / 3))
    assert 0 < small.similarity < 1  # one equal, one different, one without a source


def test_rules_that_prompts_tell_and_sources_break(summary):
    row = summary.memory[0]
    assert (row.arm, row.rules, row.prompted) == ("uct", len(RULES), 5)
    told = {RULE.name, *(rule.name for rule in RULES[:2])}
    assert row.distinct == len(told)
    assert row.tokens == pytest.approx((10 + 30) / 5)
    assert (row.breaking, row.breaking_shown) == (pytest.approx(0.2), pytest.approx(0.2))
    assert (row.correct_breaking, row.correct_keeping) == (1.0, 0.75)
    shown = dict(zip(summary.shown.rows, summary.shown.values, strict=True))
    assert shown[RULE.name] == (4.0,)  # twice by each arm
    broken = dict(zip(summary.broken.rows, summary.broken.values, strict=True))
    assert broken == dict.fromkeys(BROKEN, (2.0,))


def test_arms_are_told_by_the_settings_in_which_they_differ(summary):
    assert [(arm.name, dict(arm.settings)) for arm in summary.arms] == [
        ("uct", {"policy": "uct"}),
        ("ps", {"policy": "ps"}),
    ]
    [tests] = [tests for tests in summary.tests if tests.scope == "all"]
    assert tests.pairs[0].ratio == pytest.approx(1.0)


def test_an_arm_has_what_it_changes_of_the_first(tmp_path):
    configs = {
        "tree": Config(),
        "no-reviser": Config(reviser=False),
        "other": Config(policy="ps", c=0.5),
    }
    entries = tuple(
        CampaignEntry(f"{arm}/relu-seed0", "relu.py", config, arm=arm)
        for arm, config in configs.items()
    )
    order = CampaignPlan(Config(), entries, arms=tuple(configs))
    create_campaign(tmp_path / "study", {"command": "", "order": order.to_json()})
    run = CampaignRun(tmp_path / "study", lambda _: ProgressRow())
    summary = study_summary(tmp_path / "study", run.summary(reports=False))
    first = Config()
    assert {arm.name: dict(arm.settings) for arm in summary.arms} == {
        "tree": {"policy": first.policy, "c": first.c, "reviser": True},
        "no-reviser": {"reviser": False},
        "other": {"policy": "ps", "c": 0.5},
    }
    assert [result.reason for result in run.summary(reports=False).results] == ["not begun"] * 3
