import pytest

from adaexplore.core.ask import Exchange
from adaexplore.core.candidate import Candidate
from adaexplore.core.config import Config
from adaexplore.core.environment import Environment
from adaexplore.core.evaluation import Failed, Passed, Timing
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import Message, Prompt, Reply
from adaexplore.run.training.forms import preferences, rl, sft, sft_steps
from adaexplore.run.training.recorded import RecordedRun
from adaexplore.run.training.rewards import REWARDS
from adaexplore.store import RunRecord

REWARD = REWARDS["kernrl"]
SYSTEM = Message("system", "You make modules faster.")


def passed(speedup, noise=0.01):
    ends = speedup * (1 - noise), speedup * (1 + noise)
    return Passed("fp32", 1e-7, Timing(1.0, (1.0, 1.0), {"eager": 1.0}, speedup, ends, speedup, 9))


WRONG = Failed("wrong_output", "off by one")


def user(text):
    return Prompt((SYSTEM, Message("user", text)))


def module(number):
    return f"```python\nclass ModelNew: number = {number}\n```"


class Growing:
    """A run that grows by steps: (parent, prompt, reply, evaluation)."""

    def __init__(self, source="class Model: ..."):
        self._problem = Problem("softmax", source, "triton", "cuda:0")
        self._nodes, self._exchanges = [], {}

    def step(self, parent, prompt, reply, evaluation):
        number = len(self._nodes) + 1
        proposal = Proposal(Candidate(reply, "triton"), "model", "", reply=reply)
        self._nodes.append(Node(number, parent, "large", proposal, evaluation, ask_id=number))
        self._exchanges[number] = [Exchange(number, prompt, Reply(reply, "model"), 0.0)]
        return prompt.after(reply, f"answer to step {number}")

    def run(self):
        record = RunRecord(
            self._problem, Config(), ("model",), Environment(gpu="NVIDIA H200"), "", 0.0
        )
        return RecordedRun("one", record, self._nodes, self._exchanges)


@pytest.fixture
def run():
    """A wrong first try, mended in a second turn; a faster small step; a slower one."""
    growing = Growing("# SPDX-License-Identifier: Apache-2.0\nclass Model: ...")
    later = growing.step(0, user("large"), module(1), WRONG)
    growing.step(1, later, module(2), passed(1.5))
    growing.step(2, user("small"), "a patch", passed(3.0))
    growing.step(3, user("smaller"), "another patch", passed(2.0))
    return growing.run()


def texts(messages):
    return [message["content"] for message in messages]


def test_a_task_has_the_first_prompt_and_the_reference(run):
    [row] = rl([run, run], REWARD)
    assert texts(row["prompt"]) == [SYSTEM.text, "large"]
    assert row["reward_model"] == {"style": "rule", "ground_truth": run.record.problem.source}
    assert row["extra_info"]["licence"] == "Apache-2.0"
    assert row["extra_info"]["index"] == 0


def test_the_way_to_the_best_has_each_turn_once(run):
    [row] = sft([run], REWARD)
    assert texts(row["messages"]) == [
        *(SYSTEM.text, "large", module(1), "answer to step 1", module(2)),
        *("small", "a patch"),
    ]
    assert row["step"] == 3
    assert row["reward"] == 2.0
    assert row["speedup"] == 3.0


def test_steps_that_gain_have_their_gain_over_the_parent(run):
    rows = list(sft_steps([run], REWARD))
    assert [(row["step"], row["gain"]) for row in rows] == [(2, 1.5), (3, 2.0)]
    assert texts(rows[1]["messages"]) == [SYSTEM.text, "small", "a patch"]


def test_a_gain_within_the_noise_is_none():
    growing = Growing()
    growing.step(0, user("large"), module(1), passed(1.0))
    growing.step(1, user("small"), module(2), passed(1.3, noise=0.5))
    assert list(sft_steps([growing.run()], REWARD)) == []


def test_a_mended_reply_is_preferred_to_the_one_that_failed(run):
    [row] = preferences([run], REWARD)
    assert texts(row["prompt"]) == [SYSTEM.text, "large"]
    assert texts(row["chosen"]) == [module(2)]
    assert texts(row["rejected"]) == [module(1)]
    assert row["rejected_reward"] == -0.25


def test_a_patch_is_no_reply_to_the_prompt_of_an_earlier_turn():
    growing = Growing()
    later = growing.step(0, user("large"), module(1), WRONG)
    growing.step(1, later, "a patch", passed(2.0))
    assert list(preferences([growing.run()], REWARD)) == []


@pytest.mark.parametrize(
    ("second", "count"),
    [(passed(2.0), 1), (passed(1.01, noise=0.02), 0), (WRONG, 1), (Failed("infra_error", ""), 0)],
)
def test_a_pair_is_clear_of_the_noise_and_of_the_machine(second, count):
    growing = Growing()
    growing.step(0, user("large"), module(1), passed(1.0))
    growing.step(0, user("large"), module(2), second)
    assert len(list(preferences([growing.run()], REWARD))) == count


def test_the_same_prompt_about_another_problem_makes_no_pair():
    first, second = Growing(), Growing("class Model: other = 1")
    first.step(0, user("large"), module(1), passed(1.0))
    second.step(0, user("large"), module(2), passed(2.0))
    assert list(preferences([first.run(), second.run()], REWARD)) == []


def test_steps_without_a_model_make_no_rows():
    growing = Growing()
    growing.step(0, Prompt(()), module(1), passed(2.0))
    run = growing.run()
    assert [list(form([run], REWARD)) for form in (rl, sft, sft_steps, preferences)] == [[]] * 4
