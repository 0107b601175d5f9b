"""`feedback=verdict`: prompts depend on which kernels passed, and on nothing else of them."""

from dataclasses import replace

import pytest
from asked import ESTIMATED, FAILED, PASSED, briefing, node, text

from adaexplore.core.protocols.client import Reply
from adaexplore.core.protocols.proposer import Context
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Autotuning, Failed, Profile, TriedConfiguration
from adaexplore.propose.model.prompts import Prompts
from adaexplore.propose.model.proposer import ModelProposer
from adaexplore.propose.model.published import PublishedPrompts

VERDICT = Config(feedback="verdict", p_strategy=0.0, p_contrast=1.0, tried=True)
KINDS = {"full": Prompts(), "published": PublishedPrompts()}
SLOWER = replace(PASSED, timing=replace(PASSED.measured, time_us=431.0, speedup=1.1))
SEARCH = Autotuning("k", "", ("BLOCK",), (TriedConfiguration(("64",), 9.0),), 2)
PROFILED = replace(PASSED, profile=Profile((), 300.0, 0.5, (SEARCH,)), labels=("library:cublas",))
OTHER = Failed("wrong_output", "output is off by 0.5", "another log")


def context(kind, evaluations, **changes):
    nodes = [replace(node(i, one), step_kind=kind) for i, one in enumerate(evaluations, 1)]
    if kind == "small":  # siblings of the last belong to what else was tried
        nodes = [replace(one, parent_id=2 if one.id > 2 else one.id - 1) for one in nodes]
    facts = briefing()
    shown = {"window" if kind == "small" else "pool": tuple(nodes[:2])}
    return Context(
        problem=facts.problem,
        step_kind=kind,
        seed=1,
        history=tuple(nodes),
        facts=facts.facts,
        environment=facts.environment,
        **shown,
    )


def prompts(context, settings, contents="full"):
    """All prompts of a step, as texts; a proposer that is given up on tells no more."""
    dialogue = ModelProposer(KINDS[contents], settings).begin(context)
    told, reply = [], None
    try:
        for _ in range(4):
            told.append(text(dialogue.send(reply)))
            reply = Reply("fusion: fewer passes.", "test:model")
    except StopIteration:
        pass
    return told


FIRST = [PASSED, PASSED, SLOWER, FAILED, PASSED]
SECOND = [SLOWER, PROFILED, PASSED, OTHER, ESTIMATED]
BROKEN = [PASSED, FAILED, SLOWER, FAILED, PASSED], [PROFILED, OTHER, ESTIMATED, FAILED, SLOWER]
STEPS = [
    *(
        ("large", FIRST, SECOND, changes)
        for changes in ({}, {"p_strategy": 1.0}, {"contrast": True})
    ),
    *(("small", FIRST, SECOND, changes) for changes in ({}, {"reviser": False})),
    ("small", *BROKEN, {"repair": True}),
    ("small", *BROKEN, {"repair": False}),
    ("large", *BROKEN, {"summary": True}),
]


@pytest.mark.parametrize("contents", KINDS)
@pytest.mark.parametrize(("kind", "first", "second", "changes"), STEPS)
def test_prompts_are_equal_where_only_times_and_messages_differ(
    kind, first, second, changes, contents
):
    told = [
        prompts(context(kind, evaluations), VERDICT.model_copy(update=changes), contents)
        for evaluations in (first, second)
    ]
    assert told[0] == told[1]
    full = VERDICT.model_copy(update={**changes, "feedback": "full", "p_contrast": 0.0})
    assert prompts(context(kind, first), full, contents) != prompts(
        context(kind, second), full, contents
    )


def test_passed_and_failed_are_told():
    [told, *_] = prompts(context("large", BROKEN[0]), VERDICT.model_copy(update={"tried": True}))
    assert "## Step 1: idea 1" in told
    assert "\npassed\n" in told
    assert "\nfailed\n" in told
    assert "- step 4 (idea 4): failed" in told
    for hidden in ("312", "1.83", "power of 2", "roofline of"):
        assert hidden not in told


def test_the_note_of_a_proposal_that_failed_is_no_message_either():
    failed = replace(node(1, FAILED), step_kind="large")
    failed = replace(failed, proposal=replace(failed.proposal, failure="no code", note="no code"))
    asked = replace(context("large", FIRST), pool=(failed,), history=(failed,))
    [told, *_] = prompts(asked, VERDICT)
    assert "no code" not in told
