"""Dialogues with a model whose replies are written here."""

import re
from dataclasses import replace
from typing import get_args

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import Prompt, Reply
from adaexplore.core.protocols.proposer import Context
from adaexplore.core.settings.config import Config
from adaexplore.core.settings.policies import PolicyName
from adaexplore.core.verdict.evaluation import Failed, Passed, Timing
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.propose.model.prompts import Briefing, Prompts
from adaexplore.propose.model.proposer import ModelProposer
from adaexplore.propose.model.published import PublishedPrompts

SOURCE = "class Model:\n    def forward(self, x):\n        return x + 1\n"
PROBLEM = Problem("add_one", SOURCE, "cpp", "cpu")
ONE = "class ModelNew:\n    number = 1\n    name = 'one'\n"
TWO = "class ModelNew:\n    number = 2\n    name = 'two'\n"
PLAIN = Config(p_strategy=0.0, p_contrast=0.0)
PROMPTS = Prompts()


def module(source, prose="Fuses everything."):
    return f"{prose}\n\n```python\n{source}```\n"


def patch(old, new, prose="Doubles it."):
    return f"{prose}\n<<<<<<< OLD\n{old}\n=======\n{new}\n>>>>>>> NEW\n"


def passed(speedup):
    timing = Timing(10.0, (9.0, 11.0), {"eager": 20.0}, speedup, (speedup, speedup), speedup, 7)
    return Passed("fp32", 1e-7, timing)


def node(number, source, evaluation=None):
    proposal = Proposal(Candidate(source, "cpp"), "someone", "a note")
    return Node(number, 0, "large", proposal, evaluation or passed(1.0 + number / 10))


WRONG = Failed("wrong_output", "output is off by 0.5 (relative, against float64)")


class Talk:
    """A dialogue and the prompts of it, answered one after the other."""

    proposer = None

    def __init__(self, replies, context=None, settings=PLAIN):
        self.prompts: list[Prompt] = []
        proposer = self.proposer or ModelProposer(PROMPTS, settings)
        dialogue = proposer.begin(context or Context(PROBLEM, "large", 1))
        reply = None
        try:
            for answer in [*replies, AssertionError]:
                self.prompts.append(dialogue.send(reply))
                if answer is AssertionError:
                    raise AssertionError(f"one more prompt: {self.prompts[-1].label}")
                reply = answer if isinstance(answer, Reply) else Reply(answer, "test:model")
        except StopIteration as end:
            self.proposal = end.value

    @property
    def labels(self):
        return [prompt.label for prompt in self.prompts]


def small(*nodes, seed=1):
    return Context(PROBLEM, "small", seed, window=nodes, history=nodes)


class TestLarge:
    def test_the_module_becomes_the_candidate(self):
        talk = Talk([module(ONE)])
        assert talk.labels == ["large"]
        assert talk.proposal.candidate == Candidate(ONE, "cpp")
        assert talk.proposal.note == "large: Fuses everything."
        assert not talk.proposal.failure
        assert SOURCE.strip() in talk.proposal.prompt
        assert talk.proposal.reply == module(ONE)

    def test_records_token_costs_by_section(self):
        costs = Talk([module(ONE)]).proposal.settings["prompt_tokens"]
        assert costs["problem"] > 0
        assert sum(costs.values()) > 100

    def test_asks_again_with_the_reason_after_a_reply_without_code(self):
        talk = Talk(["I would rather not.", module(ONE)])
        assert talk.labels == ["large", "again"]
        assert talk.prompts[1].messages[-2].text == "I would rather not."
        assert talk.proposal.candidate.source == ONE

    def test_asks_again_only_once(self):
        talk = Talk(["I would rather not.", "Really not."])
        assert talk.proposal.failure.startswith("asked twice: ")
        assert "\n" not in talk.proposal.failure
        assert talk.proposal.candidate.source == ""

    def test_does_not_ask_again_if_disabled(self):
        settings = PLAIN.model_copy(update={"ask_again": False})
        talk = Talk(["I would rather not."], settings=settings)
        assert talk.labels == ["large"]
        assert "no fenced code block" in talk.proposal.failure

    @pytest.mark.parametrize(
        ("finish", "words"), [("refused", "refused"), ("empty", "empty"), ("too_long", "longer")]
    )
    def test_fails_without_an_answer(self, finish, words):
        talk = Talk([Reply("", "test:model", finish)])
        assert words in talk.proposal.failure

    def test_continues_a_truncated_reply(self):
        whole = module(ONE)
        first = Reply(whole[:40], "test:model", "truncated")
        talk = Talk([first, whole[40:]])
        assert talk.labels == ["large", "continue"]
        assert talk.proposal.candidate.source == ONE

    def test_never_uses_a_truncated_reply(self):
        first = Reply(module(ONE) + module(TWO)[:30], "test:model", "truncated")
        second = Reply("and on", "test:model", "truncated")
        assert "cut off" in Talk([first, second]).proposal.failure

    def test_continues_none_if_it_does_not_ask_again(self):
        first = Reply(module(ONE)[:40], "test:model", "truncated")
        talk = Talk([first], settings=PLAIN.model_copy(update={"ask_again": False}))
        assert talk.labels == ["large"]
        assert "cut off" in talk.proposal.failure

    def test_chooses_a_strategy_first_if_enabled(self):
        settings = PLAIN.model_copy(update={"p_strategy": 1.0})
        talk = Talk(["fusion: one pass over x.", module(ONE)], settings=settings)
        assert talk.labels == ["strategy", "large.strategy"]
        assert talk.prompts[1].messages[-2].text == "fusion: one pass over x."
        assert talk.proposal.note == "strategy: fusion; Fuses everything."

    def test_omits_older_kernels_that_do_not_fit_the_context(self):
        pool = (node(1, ONE), node(2, TWO))
        too_long = Reply("", "test:model", "too_long")
        talk = Talk([too_long, module(ONE)], Context(PROBLEM, "large", 1, pool=pool))
        told = [prompt.messages[-1].text for prompt in talk.prompts]
        assert "'one'" in told[0]
        assert "'one'" not in told[1]
        assert "'two'" in told[1]
        assert talk.proposal.candidate.source == ONE


class TestSmall:
    def test_asks_a_reviser_then_a_tuner(self):
        talk = Talk(["Use two.", patch("    number = 1", "    number = 2")], small(node(1, ONE)))
        assert talk.labels == ["small.reviser", "small.tuner"]
        assert talk.prompts[1].messages[-2].text == "Use two."
        assert talk.proposal.candidate.source == ONE.replace("number = 1", "number = 2")
        assert talk.proposal.note == "patch: Doubles it."

    def test_asks_no_reviser_if_disabled(self):
        settings = PLAIN.model_copy(update={"reviser": False})
        talk = Talk([patch("    number = 1", "    number = 2")], small(node(1, ONE)), settings)
        assert talk.labels == ["small.tuner"]

    def test_explains_a_patch_that_does_not_match(self):
        bad = patch("    digit = 1", "    digit = 2")
        good = patch("    number = 1", "    number = 2")
        talk = Talk(["Use two.", bad, good], small(node(1, ONE)))
        assert talk.labels == ["small.reviser", "small.tuner", "again"]
        assert talk.proposal.candidate.source == ONE.replace("number = 1", "number = 2")

    @pytest.mark.parametrize(
        "reply", [patch("    digit = 1", "    digit = 2"), "I have no idea.", module(TWO)]
    )
    def test_keeps_the_kernel_where_patches_do_not_apply_if_that_is_asked_for(self, reply):
        settings = PLAIN.model_copy(update={"unpatched": "repeat", "reviser": False})
        talk = Talk([reply], small(node(1, ONE)), settings)
        assert talk.proposal.candidate.source == ONE
        assert talk.proposal.note.partition("; ")[2].startswith("unchanged: ")
        assert not talk.proposal.failure

    def test_rejects_a_patch_without_changes(self):
        same = patch("    number = 1", "    number = 1")
        talk = Talk(["Use two.", same, same], small(node(1, ONE)))
        assert "asked twice" in talk.proposal.failure

    def test_explains_a_patch_that_breaks_the_module(self):
        broken = patch("class ModelNew:", "class ModelNew(")
        good = patch("    number = 1", "    number = 2")
        talk = Talk(["Use two.", broken, good], small(node(1, ONE)))
        assert talk.labels[-1] == "again"
        assert not talk.proposal.failure

    def test_accepts_a_whole_module(self):
        talk = Talk(["Use two.", module(TWO)], small(node(1, ONE)))
        assert talk.proposal.candidate.source == TWO

    def test_repairs_a_failed_kernel(self):
        context = small(node(1, TWO), node(2, ONE, WRONG))
        talk = Talk([patch("    number = 1", "    number = 3")], context)
        assert talk.labels == ["repair"]
        assert "off by 0.5" in talk.prompts[0].messages[-1].text
        assert talk.proposal.note == "repair: Doubles it."

    def test_repairs_nothing_that_compiles_and_was_not_run(self):
        context = small(node(1, ONE, Failed("not_run", "1 kernel compiles")))
        talk = Talk([patch("    number = 1", "    number = 3")], context)
        assert talk.labels == ["small.tuner"]

    def test_repairs_nothing_if_disabled(self):
        settings = PLAIN.model_copy(update={"repair": False})
        context = small(node(1, ONE, WRONG))
        talk = Talk([patch("    number = 1", "    number = 3")], context, settings)
        assert talk.labels == ["small.tuner"]  # no reviser: nothing in its context is right

    def test_writes_a_new_module_if_the_last_step_gave_none(self):
        context = small(node(1, ONE), node(2, "", Failed("rejected", "asked twice")))
        talk = Talk([module(TWO)], context)
        assert talk.labels == ["large"]
        assert "'one'" in talk.prompts[0].messages[-1].text


def test_same_context_and_replies_give_the_same_exchanges():
    settings = Config(p_strategy=0.5, p_contrast=0.5)
    seen = set()
    for seed in range(12):
        context = Context(PROBLEM, "large", seed, pool=(node(1, ONE), node(2, TWO)))
        first, second = (
            Talk([module(ONE), module(ONE)][: _turns(context, settings)], context, settings)
            for _ in range(2)
        )
        assert (first.prompts, first.proposal) == (second.prompts, second.proposal)
        seen.add(first.labels[0])
    assert seen == {"large", "strategy", "large.contrast"}


def _turns(context, settings):
    prompt = next(ModelProposer(PROMPTS, settings).begin(context))
    return 2 if prompt.label == "strategy" else 1


class TestOtherAttempts:
    FAST, SLOW = node(1, ONE, passed(2.0)), node(2, TWO, passed(1.5))
    BROKEN = node(3, TWO + "    broken = True\n", WRONG)

    def test_a_large_step_shows_others_best_first(self):
        history = (self.BROKEN, self.SLOW, self.FAST)
        context = Context(PROBLEM, "large", 1, pool=(self.FAST,), history=history)
        told = Talk([module(TWO)], context).prompts[0].messages[-1].text
        first, second = told.partition("# Other attempts\n")[2].splitlines()[:2]
        assert first.startswith("- step 2 (a note): ")
        assert second.startswith("- step 3 (a note): wrong_output")
        assert "not other settings of an old one" in told

    def test_the_first_step_shows_none(self):
        told = Talk([module(ONE)]).prompts[0].messages[-1].text
        assert "attempts" not in told
        assert "old one" not in told

    def test_states_the_number_of_steps_in_flight(self):
        context = Context(PROBLEM, "large", 1, in_flight=1)
        told = Talk([module(ONE)], context).prompts[0].messages[-1].text
        assert "1 more answer to this is being written now" in told

    def test_a_small_step_shows_changes_to_the_same_kernel(self):
        current, other = self.FAST, replace(self.SLOW, parent_id=1, step_kind="small")
        history = (current, other, self.BROKEN)
        context = Context(PROBLEM, "small", 1, window=(current,), history=history)
        reviser, tuner = Talk(["Use two.", module(TWO)], context).prompts
        told = reviser.messages[-1].text.partition("# Other attempts\n")[2]
        assert told.startswith("- step 2 (a note): ")
        assert "step 3" not in told
        assert "# Other attempts" not in tuner.messages[-1].text

    def test_the_tuner_sees_them_without_a_reviser(self):
        other = replace(self.SLOW, parent_id=1, step_kind="small")
        context = Context(PROBLEM, "small", 1, window=(self.FAST,), history=(self.FAST, other))
        settings = PLAIN.model_copy(update={"reviser": False})
        tuner = Talk([module(TWO)], context, settings).prompts[0]
        assert "# Other attempts\n- step 2" in tuner.messages[-1].text

    @pytest.mark.parametrize(
        "settings",
        [{"tried": False}, {"policy": "ps"}, {"policy": "irb"}, {"reward": "published"}],
    )
    def test_shows_nothing_of_others_where_the_settings_say_so(self, settings):
        alone = Context(PROBLEM, "large", 1, pool=(self.FAST,))
        beside = replace(alone, history=(self.BROKEN, self.SLOW, self.FAST), in_flight=3)
        told, told_beside = (
            Talk([module(TWO)], context, PLAIN.model_copy(update=settings)).prompts
            for context in (alone, beside)
        )
        assert told_beside == told

    def test_best_of_n_shows_others_where_they_are_asked_for(self):
        context = Context(PROBLEM, "large", 1, history=(self.SLOW,))
        settings = PLAIN.model_copy(update={"policy": "ps", "tried": True})
        told = Talk([module(TWO)], context, settings).prompts[0].messages[-1].text
        assert "# Other attempts\n- step 2" in told


class TestSummary:
    POLCA = PLAIN.model_copy(update={"policy": "polca"})
    LOST = node(3, ONE, Failed("infra_error", "the device was lost"))
    HISTORY = (node(1, ONE, passed(2.0)), replace(node(2, TWO, WRONG), parent_id=1), LOST)
    LARGE = Context(PROBLEM, "large", 1, history=HISTORY)
    TITLE = "# Summary of the search so far"

    def test_is_made_of_every_judged_step_and_shown_to_the_next(self):
        asked, told = Talk(["Tiles help.", module(TWO)], self.LARGE, self.POLCA).prompts
        assert asked.label == "summary"
        lines = asked.messages[-1].text.partition("# The search so far\n")[2].splitlines()
        assert lines[0].startswith("- step 1, from nothing (a note): ")
        assert lines[1].startswith("- step 2, from step 1 (a note): wrong_output")
        assert not lines[2].startswith("- ")
        shown = told.messages[-1].text.partition(f"{self.TITLE}\n")[2].splitlines()
        assert shown[0].endswith("not checked by running.")
        assert shown[2] == "Tiles help."
        assert "verified by a run" not in told.messages[-1].text

    def test_is_not_asked_for_before_the_first_step(self):
        assert Talk([module(ONE)], settings=self.POLCA).labels == ["large"]

    @pytest.mark.parametrize(
        ("settings", "labels"),
        [
            ({}, ["large"]),
            ({"policy": "uct", "summary": True}, ["summary", "large"]),
            ({"policy": "polca:candidates=3"}, ["summary", "large"]),
            ({"policy": "polca", "summary": False}, ["large"]),
        ],
    )
    def test_is_asked_for_where_the_settings_say_so(self, settings, labels):
        replies = ["Tiles help."] * (len(labels) - 1)
        talk = Talk([*replies, module(TWO)], self.LARGE, PLAIN.model_copy(update=settings))
        assert talk.labels == labels
        assert (self.TITLE in talk.prompts[-1].messages[-1].text) == (len(labels) == 2)

    def test_the_reviser_reads_it_and_the_tuner_its_guidance(self):
        context = Context(PROBLEM, "small", 1, window=self.HISTORY[:1], history=self.HISTORY)
        talk = Talk(["Tiles help.", "Tile it.", module(TWO)], context, self.POLCA)
        assert talk.labels == ["summary", "small.reviser", "small.tuner"]
        reviser, tuner = (prompt.messages[-1].text for prompt in talk.prompts[1:])
        assert f"{self.TITLE}\n" in reviser
        assert self.TITLE not in tuner

    def test_a_repair_reads_it(self):
        context = Context(PROBLEM, "small", 1, window=self.HISTORY[1:2], history=self.HISTORY)
        talk = Talk(["Tiles help.", module(ONE)], context, self.POLCA)
        assert "Tiles help." in talk.prompts[-1].messages[-1].text

    def test_a_step_goes_on_without_one_that_is_refused(self):
        refused = Reply("", "m", finish="refused")
        talk = Talk([refused, module(TWO)], self.LARGE, self.POLCA)
        assert talk.labels == ["summary", "large"]
        assert self.TITLE not in talk.prompts[-1].messages[-1].text
        assert not talk.proposal.failure

    def test_older_steps_are_left_out_and_counted(self):
        history = tuple(node(number, ONE) for number in range(1, 64))
        context = replace(self.LARGE, history=history)
        too_long = Reply("", "m", finish="too_long")
        prompts = Talk([too_long, "Tiles help.", module(TWO)], context, self.POLCA).prompts
        for prompt, omitted in zip(prompts[:2], (3, 4), strict=True):
            text = prompt.messages[-1].text
            assert f"# The search so far, without {omitted} older steps\n" in text
            assert f"- step {omitted}, " not in text
            assert f"- step {omitted + 1}, " in text

    def test_its_tokens_are_counted(self):
        proposal = Talk(["Tiles help.", module(TWO)], self.LARGE, self.POLCA).proposal
        assert proposal.settings["prompt_tokens"].keys() >= {"history", "summary"}


class TestContrast:
    """Kernels 1 to 6 of a run, 1.1 to 1.6 times as fast as PyTorch."""

    ON = PLAIN.model_copy(update={"contrast": True, "pool_size": 3})
    CHANCE = PLAIN.model_copy(update={"p_contrast": 1.0})
    RUN = tuple(node(i, f"class ModelNew:\n    number = {i}\n") for i in range(1, 7))

    @staticmethod
    def compared(prompt: Prompt) -> list[int]:
        """Return the kernels to compare in a prompt, as it shows them."""
        text = prompt.messages[-1].text.partition("# Kernels to compare\n")[2]
        return [int(i) for i in re.findall(r"## Step (\d)", text.partition("\n# ")[0])]

    def large(self, settings, *pool, seed=1, run=RUN) -> Prompt:
        context = Context(PROBLEM, "large", seed, pool=pool, history=run)
        [prompt] = Talk([module(TWO)], context, settings).prompts
        return prompt

    def test_by_chance_a_large_step_compares_its_pool(self):
        prompt = self.large(self.CHANCE, self.RUN[3], self.RUN[0], self.RUN[5])
        assert prompt.label == "large.contrast"
        assert self.compared(prompt) == [6, 4, 1]
        assert self.large(self.CHANCE, self.RUN[3]).label == "large"
        assert self.large(PLAIN, *self.RUN).label == "large"

    @pytest.mark.parametrize("policy", sorted({*get_args(PolicyName)} - {"stepwise"}))
    def test_with_any_policy_it_is_on_or_off(self, policy):
        for contrast, label in ((True, "large.contrast"), (False, "large")):
            update = {"policy": policy, "contrast": contrast, "summary": False}
            prompt = self.large(self.CHANCE.model_copy(update=update), *self.RUN[:2])
            assert prompt.label == label

    def test_a_plan_compares_them_in_place_of_its_pool(self):
        context = Context(PROBLEM, "large", 1, pool=self.RUN[:2], history=self.RUN)
        for contrast, title in ((True, "Kernels to compare"), (False, "Kernels to beat")):
            update = {"policy": "stepwise", "contrast": contrast}
            settings = self.ON.model_copy(update=update)
            asked, _ = Talk(["1. Tile it.", module(TWO)], context, settings).prompts
            plan = asked.messages[-1].text
            assert re.findall(r"# (Kernels to \w+)\n", plan) == [title]
            assert ("First compare the kernels" in plan) == contrast

    def test_takes_the_best_and_others_of_the_run_where_the_pool_has_too_few(self):
        seen = [self.compared(self.large(self.ON, seed=seed)) for seed in range(20)]
        assert {kernels[0] for kernels in seen} == {6}
        assert all(kernels == sorted(set(kernels), reverse=True) for kernels in seen)
        assert {len(kernels) for kernels in seen} == {3}
        assert {kernel for kernels in seen for kernel in kernels} == {1, 2, 3, 4, 5, 6}
        with_pool = self.compared(self.large(self.ON, self.RUN[1]))
        assert with_pool[0] == 6
        assert 2 in with_pool

    def test_asks_for_the_comparison_before_the_code_and_shows_measured_speeds(self):
        text = self.large(self.ON).messages[-1].text
        assert text.index("1.60× ") < text.index("First compare the kernels")
        assert text.index("First compare the kernels") < text.index("Then write a `ModelNew`")

    def test_failures_and_repeats_are_not_compared(self):
        failed, repeated = node(7, ONE, WRONG), replace(node(8, TWO), reused=True)
        few = (self.RUN[0], self.RUN[1], failed, repeated)
        assert self.compared(self.large(self.ON, run=few)) == [2, 1]
        assert self.large(self.ON, run=(self.RUN[0], failed, repeated)).label == "large"
        assert self.large(self.ON, run=()).label == "large"

    def test_the_reviser_of_a_small_step_compares_others_with_the_current_kernel(self):
        context = Context(PROBLEM, "small", 1, window=self.RUN[5:], history=self.RUN)
        reviser, tuner = Talk(["Use two.", module(TWO)], context, self.ON).prompts
        assert reviser.label == "small.reviser"
        assert self.compared(reviser)[0] == 5
        assert len(self.compared(reviser)) == 3
        assert "First compare the kernels" in reviser.messages[-1].text
        assert not self.compared(tuner)
        reviser, _ = Talk(["Use two.", module(TWO)], context, self.CHANCE).prompts
        assert not self.compared(reviser)

    def test_the_slowest_is_left_out_of_a_prompt_that_is_too_long(self):
        too_long = Reply("", "m", finish="too_long")
        context = Context(PROBLEM, "large", 1, pool=self.RUN[:3])
        talk = Talk([too_long, module(TWO)], context, self.CHANCE)
        assert list(map(self.compared, talk.prompts)) == [[3, 2, 1], [3, 2]]

    def test_published_contents_tell_the_measurements_alone(self):
        prompts = PublishedPrompts()
        asked = Briefing(PROBLEM, ReferenceFacts(), Environment(), contrast=self.RUN[:2])
        for prompt in (prompts.contrastive(asked), prompts.reviser(asked, self.RUN[5:])):
            text = prompt.messages[-1].text
            assert "## Step 2\n" in text
            assert "compiled, correct, 10.0 µs, 1.20× over eager" in text
            assert "First compare the kernels" in text


class TestPlan:
    STEPWISE = PLAIN.model_copy(update={"policy": "stepwise:items=2"})
    REPLY = "One kernel does all.\n\n1. tiling: 64.\n2. fusion: the relu.\n3. layout: NHWC.\n"

    def planned(self, **changes) -> Node:
        """Return the step of a plan, the first of its run."""
        talk = Talk([self.REPLY, module(ONE)], settings=self.STEPWISE)
        return replace(node(1, ONE), proposal=talk.proposal, **changes)

    def test_a_large_step_asks_for_a_plan_and_then_for_its_first_version(self):
        talk = Talk([self.REPLY, module(ONE)], settings=self.STEPWISE)
        assert talk.labels == ["plan", "large.plan"]
        plan, first = talk.prompts
        asked = plan.messages[-1].text
        assert "that will be faster than the reference: a first version, and one to 2" in asked
        assert first.messages[:-2] == plan.messages
        assert first.messages[-2].text == self.REPLY.strip()
        assert talk.proposal.candidate.source == ONE
        assert talk.proposal.plan == ("tiling: 64.", "fusion: the relu.")
        assert talk.proposal.note == "plan: 2 items; Fuses everything."
        assert talk.proposal.settings["prompt_tokens"]["strategies"] > 0

    def test_a_step_without_a_first_version_has_no_plan(self):
        refused = Reply("", "m", "refused")
        for replies in ([refused], [self.REPLY, "No.", "No."]):
            talk = Talk(replies, settings=self.STEPWISE)
            assert talk.proposal.failure
            assert talk.proposal.plan == ()

    def test_a_module_with_faults_fixed_keeps_its_plan(self):
        class Linted(Talk):
            proposer = ModelProposer(PROMPTS, self.STEPWISE, lint=TestLint.faults)

        talk = Linted([self.REPLY, module(ONE), module(TWO)])
        assert talk.labels == ["plan", "large.plan", "lint"]
        assert talk.proposal.candidate.source == TWO
        assert len(talk.proposal.plan) == 2

    def test_a_small_step_carries_out_the_next_item(self):
        talk = Talk(
            [patch("    number = 1", "    number = 2")], small(self.planned()), self.STEPWISE
        )
        assert talk.labels == ["small.item"]
        text = talk.prompts[0].messages[-1].text
        assert "1. [now] tiling: 64.\n2. [later] fusion: the relu.\n" in text
        assert "Carry out item 1 of the plan" in text
        assert talk.proposal.candidate.source == ONE.replace("number = 1", "number = 2")
        assert talk.proposal.note == "item: 1 of 2; Doubles it."
        assert talk.proposal.plan == ()

    def test_a_wrong_first_version_is_repaired(self):
        head = self.planned(evaluation=WRONG)
        assert Talk([module(TWO)], small(head), self.STEPWISE).labels == ["repair"]

    def test_kernels_without_a_plan_are_revised_and_patched(self):
        talk = Talk(["Use two.", module(TWO)], small(node(1, ONE)), self.STEPWISE)
        assert talk.labels == ["small.reviser", "small.tuner"]

    def test_other_policies_carry_out_no_plans(self):
        talk = Talk(["Use two.", module(TWO)], small(self.planned()))
        assert talk.labels == ["small.reviser", "small.tuner"]

    def test_the_plan_is_not_shown_to_other_branches(self):
        head = self.planned()
        other = replace(node(2, TWO), proposal=replace(head.proposal, settings={}))
        context = Context(PROBLEM, "large", 1, pool=(other,), history=(head, other))
        for prompt in Talk(
            [self.REPLY.replace("64", "32"), module(TWO)], context, self.STEPWISE
        ).prompts:
            assert "tiling: 64" not in prompt.messages[-1].text


class TestFailuresInThePool:
    POOL = (node(1, ONE, passed(2.0)), node(2, TWO, WRONG))

    def test_are_shown_as_what_to_avoid(self):
        told = Talk([module(TWO)], Context(PROBLEM, "large", 1, pool=self.POOL)).prompts[0]
        text = told.messages[-1].text
        assert "# Earlier kernels\nCorrect kernels are to beat" in text
        assert "'two'" in text
        assert "wrong_output" in text
        assert "Kernels to beat" not in text

    def test_are_no_kernels_to_beat_in_the_published_prompts(self):
        for pool, title in ((self.POOL, "Earlier kernels"), (self.POOL[:1], "Kernels to beat")):
            briefing = Briefing(PROBLEM, ReferenceFacts(), Environment())
            assert f"# {title}\n" in PublishedPrompts().large(briefing, pool).messages[-1].text

    def test_are_not_contrasted(self):
        settings = PLAIN.model_copy(update={"p_contrast": 1.0})
        context = Context(PROBLEM, "large", 1, pool=self.POOL)
        assert Talk([module(TWO)], context, settings).labels == ["large"]
        context = replace(context, pool=(*self.POOL, node(3, ONE, passed(1.0))))
        talk = Talk([module(TWO)], context, settings)
        assert talk.labels == ["large.contrast"]
        assert "wrong_output" not in talk.prompts[0].messages[-1].text

    def test_do_not_replace_the_example_of_the_language(self):
        failed = Context(PROBLEM, "large", 1, pool=self.POOL[1:])
        assert "example" in Talk([module(TWO)], failed).proposal.settings["prompt_tokens"]


class TestLint:
    """`number` is forbidden to be 1."""

    @staticmethod
    def faults(context, source):
        return ["Line 2: number = 1\nNo ones."] if "number = 1" in source else []

    def talk(self, *replies, settings=PLAIN, context=None):
        class Linted(Talk):
            proposer = ModelProposer(PROMPTS, settings, lint=self.faults)

        return Linted(list(replies), context)

    def test_asks_nothing_about_a_candidate_without_faults(self):
        assert self.talk(module(TWO)).labels == ["large"]

    def test_patches_fix_a_broken_rule(self):
        talk = self.talk(module(ONE), patch("    number = 1", "    number = 3"))
        assert talk.labels == ["large", "lint"]
        told = talk.prompts[1].messages
        assert told[-2].text == module(ONE)
        assert "No ones." in told[-1].text
        assert "<<<<<<< OLD" in told[-1].text
        assert talk.proposal.candidate.source == ONE.replace("1", "3")
        assert talk.proposal.note == "large: Fuses everything.; fixed known faults"

    def test_a_whole_module_fixes_a_broken_rule(self):
        assert self.talk(module(ONE), module(TWO)).proposal.candidate.source == TWO

    @pytest.mark.parametrize("reply", ["No.", Reply("", "m", "refused"), module(ONE)])
    def test_asks_once_and_keeps_a_candidate_that_is_not_fixed(self, reply):
        talk = self.talk(module(ONE), reply)
        assert talk.labels == ["large", "lint"]
        assert talk.proposal.candidate.source == ONE
        assert not talk.proposal.failure

    def test_checks_patched_kernels_too(self):
        context = small(node(1, TWO))
        settings = PLAIN.model_copy(update={"reviser": False})
        broken = patch("    number = 2", "    number = 1")
        talk = self.talk(broken, module(TWO), settings=settings, context=context)
        assert talk.labels == ["small.tuner", "lint"]
        assert talk.proposal.candidate.source == TWO

    def test_can_be_disabled(self):
        talk = self.talk(module(ONE), settings=PLAIN.model_copy(update={"lint": False}))
        assert talk.labels == ["large"]


def test_records_token_costs_of_follow_ups():
    once = Talk([module(ONE)]).proposal.settings["prompt_tokens"]
    refusal = "I would rather not. " * 20
    twice = Talk([refusal, module(ONE)]).proposal.settings["prompt_tokens"]
    assert twice["problem"] == 2 * once["problem"]
    assert twice["reply"] > 100
    assert twice["again"] > 0


def test_notes_an_inexact_match():
    source = "class ModelNew:\n    number_of_rows = 1\n    number_of_columns = 2\n"
    old = "    number_of_rows = 1\n    number_of_colums = 2"
    talk = Talk(
        [patch(old, "    number_of_rows = 4\n    number_of_columns = 8")],
        small(node(1, source)),
        PLAIN.model_copy(update={"reviser": False}),
    )
    assert "patch 1: lines 2-3 match by 9" in talk.proposal.note
