"""From failures to a memory: with a judge that looks for `bad(`, and once with the real judge."""

import json
from dataclasses import replace

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.client import BudgetSpentError, Reply
from adaexplore.core.rule import Matcher, Platform
from adaexplore.core.verdict.evaluation import Estimate, Failed, Fault, Passed
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.memory.check import Checker
from adaexplore.memory.extract import Failure
from adaexplore.memory.files import load_memory
from adaexplore.run.learning.learn import learn
from elementwise import candidate, reference

HERE = Platform("3.9.0", "sm_90")
SOURCE = "a = 1\nb = bad(a + 2)\nc = 3\n\n\nclass ModelNew:\n    d = 4\n"
REMEDY = "b = good()\n\nclass ModelNew:\n    pass\n"
MESSAGE = "module has no attribute 'bad'"
FAULT = Failed("compile_error", MESSAGE, feedback=Fault("AttributeError", MESSAGE, 2, "b", "k"))
ANSWER = f"""NAME: no bad
KIND: compile
STATEMENT: There is no `bad`: use `good`.
TOPICS: bad
```python
{REMEDY}```
"""


class Judge:
    def __init__(self, failed):
        self._failed = failed

    def prepare(self):
        return {}

    def evaluate(self, candidate):
        passed = Passed("fp32", 0.0, Estimate(1.0, "memory", "sm_90"))
        return self._failed if "bad(" in candidate.source else passed

    def close(self):
        pass


def failure(task="one", source=SOURCE, failed=FAULT):
    return Failure(task, "class Model: ...", source, failed)


@pytest.fixture
def learning(tmp_path):
    """A function that learns into one memory and folder; every call is a new session."""

    class Learning:
        memory, folder = tmp_path / "memory.toml", tmp_path / "cases"

        def __call__(self, failures, *replies, failed=FAULT, **options):
            script, self.asked = list(replies), []

            def ask(prompt):
                self.asked.append(prompt)
                reply = script.pop(0)
                if isinstance(reply, Exception):
                    raise reply
                return Reply(reply, "test:model")

            checker = Checker(lambda name, source: Judge(failed), HERE)
            by = ask if replies else None
            return learn(failures, self.memory, self.folder, checker, ask=by, **options)

        def files(self, pattern):
            return sorted(path.name for path in self.folder.glob(pattern))

    return Learning()


def test_a_failure_becomes_a_rule_of_the_memory(learning):
    told = []
    learned = learning([failure()], ANSWER, tell=told.append)
    [rule] = load_memory(learning.memory)
    assert learned.rules == [rule]
    assert (rule.source, rule.holds, rule.tasks) == ("failure", (HERE,), ("one",))
    assert "reduced from" in told[0]
    assert rule.statement in told[1]


def test_a_known_failure_is_counted_and_not_asked_again(learning):
    learning([failure()], ANSWER)
    learned = learning([failure("two"), failure("three")], "unused")
    assert learning.asked == []
    assert [rule.tasks for rule in learned.counted] == [("one", "three", "two")]
    [rule] = load_memory(learning.memory)
    assert (rule.tasks, rule.support) == (("one", "three", "two"), 3)


OTHER = replace(FAULT, feedback=Fault("TypeError", "bad takes no number", 2, "b", "k"))


def test_a_model_says_that_a_known_rule_explains_it_too(learning):
    [rule] = learning([failure()], ANSWER).rules
    again = [failure("two", failed=OTHER)]
    learned = learning(again, "SAME: no-such-rule", f"SAME: `{rule.name}`", failed=OTHER)
    first, second = ([m.text for m in prompt.messages] for prompt in learning.asked)
    assert f"`{rule.name}`: {rule.statement}" in first[-1]
    assert "there is no known rule 'no-such-rule'" in second[-1]
    assert not learned.rules
    assert [found.name for found in learned.counted] == [rule.name]
    [counted] = load_memory(learning.memory)
    assert (counted.tasks, counted.support) == (("one", "two"), 2)
    assert counted.witness == rule.witness


def test_without_known_rules_none_can_be_named(learning):
    learning([failure()], ANSWER)
    [prompt] = learning.asked
    assert "SAME" not in prompt.messages[-1].text


def test_a_person_answers_in_files(learning):
    learned = learning([failure()])
    [question] = learned.open
    assert not learning.memory.exists()
    assert "bad()" in question.read_text()
    question.with_name(question.stem + ".reply.md").write_text("I do not know.")
    [again] = learning([]).open
    assert again.name == question.name.replace(".1.md", ".2.md")
    assert "That is no rule yet" in again.read_text()
    again.with_name(again.stem + ".reply.md").write_text(ANSWER)
    assert [rule.name for rule in learning([]).rules] == [
        r.name for r in load_memory(learning.memory)
    ]
    assert learning([failure()]).open == []


def test_an_answer_is_paid_for_once(learning):
    with pytest.raises(BudgetSpentError):
        learning([failure()], "No.", BudgetSpentError("spent"))
    assert len(learning.files("*.1.reply.md")) == 1
    learned = learning([failure()], ANSWER)
    assert [prompt.label for prompt in learning.asked] == ["rule.again"]
    assert len(learned.rules) == 1


def test_a_failed_rule_is_not_asked_again(learning):
    learned = learning([failure()], "No.", "No.")
    assert list(learned.dropped.values()) == [
        "asked twice: there is no line that begins with NAME:"
    ]
    assert learning([failure()], "unused").dropped == {}
    assert learning.asked == []
    assert not learning.memory.exists()


def test_rare_failures_can_be_left_out(learning):
    assert learning([failure()], least_tasks=2).open == []
    assert len(learning([failure(), failure("two")], least_tasks=2).open) == 1


def test_a_candidate_that_passes_here_is_no_case(learning):
    [why] = learning([failure(source="class ModelNew: ...")]).refused.values()
    assert why == "it passes here"


def test_a_broken_case_is_named(learning):
    learning([failure()])
    [path] = learning.folder.glob("*.json")
    path.write_text(json.dumps({"case": {}}))
    with pytest.raises(BadInputError, match=f"{path.name} is no case"):
        learning([])


@pytest.mark.slow
def test_a_real_failure_becomes_a_rule_that_the_real_evaluator_confirms(server, tmp_path):
    tanh = reference("torch.tanh(x)")
    source = candidate("y = tl.tanh(x)")

    def judge(name, text):
        problem = Problem(name, text, "triton", "cpu", target="sm_90")
        return OfflineEvaluator(server, problem, timeout_s=60.0, memory_bytes=4 << 30)

    remedy = candidate("y = 2 * tl.sigmoid(2 * x) - 1")
    reply = (
        "NAME: no tanh\nKIND: compile\nSTATEMENT: There is no `tl.tanh`.\nTOPICS: tl.tanh\n"
        f"```python\n{remedy}```\n"
    )
    message = "module 'triton.language' has no attribute 'tanh'"
    failed = Failed("compile_error", message, feedback=Fault("AttributeError", message))
    checker = Checker(judge, HERE)
    try:
        learned = learn(
            [Failure("tanh", tanh, source, failed)],
            tmp_path / "memory.toml",
            tmp_path / "cases",
            checker,
            ask=lambda prompt: Reply(reply, "test:model"),
            most_evaluations=4,
        )
    finally:
        checker.close()
    [rule] = learned.rules
    assert rule.holds == (HERE,)
    assert rule.witness == remedy.replace("2 * tl.sigmoid(2 * x) - 1", "tl.tanh(x)")
    assert rule.matcher == Matcher(("tl.tanh",))
    assert load_memory(tmp_path / "memory.toml") == [rule]
