"""Talks about cases, with replies that are written here and a judge that looks for `bad(`."""

import pytest
from test_extract import SOURCE, Judge, checker, failure
from test_memory_check import PASSED

from adaexplore.core.protocols.client import Reply
from adaexplore.core.rule import Matcher, Platform
from adaexplore.core.verdict.evaluation import Failed, Fault
from adaexplore.memory.author import written
from adaexplore.memory.check import Checker
from adaexplore.memory.extract import case_of, grouped

HERE = Platform("3.9.0", "sm_90")
REMEDY = "b = good()\n\nclass ModelNew:\n    pass\n"
SMALLER = "class Model:\n    small = True\n"


def is_bad(source):
    return "bad(" in source


def case():
    [group] = grouped([failure("one", SOURCE)])
    return case_of(group, checker(is_bad))


def answer(
    *,
    name="no-bad-calls",
    kind="compile",
    statement="There is no `tl.bad`: use `tl.good`.",
    topics="`tl.bad`, tl.good",
    remedy=REMEDY,
    problem="",
):
    blocks = [f"```python\n{source}```" for source in (remedy, problem) if source]
    head = f"NAME: {name}\n**KIND:** {kind}\nSTATEMENT: {statement}\nTOPICS: {topics}\n"
    return head + "\n\n".join(blocks)


def talk(*replies, by=None, about=None):
    """What came of it, and the prompts."""
    dialogue = written(about or case(), by or checker(is_bad))
    prompts = [next(dialogue)]
    try:
        for reply in replies:
            reply = reply if isinstance(reply, Reply) else Reply(reply, "test:model")
            prompts.append(dialogue.send(reply))
    except StopIteration as end:
        return end.value, prompts
    raise AssertionError(f"one more prompt: {prompts[-1].messages[-1].text}")


def test_a_reply_that_holds_is_a_rule():
    result, [prompt] = talk(answer())
    rule = result.rule
    assert rule.name == f"no-bad-calls-{case().id[:4]}"
    assert (rule.kind, rule.source, rule.tasks) == ("compile", "failure", ("one",))
    assert rule.topics == ("tl.bad", "tl.good")
    assert rule.holds == (HERE,)
    assert rule.signature == case().signature
    assert rule.remedy == REMEDY
    assert "bad(" in rule.witness
    text = "\n".join(message.text for message in prompt.messages)
    assert case().witness.strip() in text
    assert "no attribute 'tanh'" in text
    assert "3.9.0" in text


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("I do not know.", "no line that begins with NAME"),
        (answer(kind="speed"), "KIND is to be one of compile, launch"),
        (answer(remedy=""), "no fenced code block"),
        (answer(remedy="class ModelNew(:\n"), "does not parse"),
        (answer(statement="See line 12 of it."), "say what holds for any"),
        (answer(remedy=f"tmp_b = 1\n{REMEDY}", statement="No `tmp_b`."), "names 'tmp_b'"),
        (answer(remedy=REMEDY.replace("good", "bad")), "the remedy fails"),
    ],
)
def test_what_is_no_rule_is_asked_for_again_with_the_reason(bad, reason):
    result, prompts = talk(bad, answer())
    assert [p.label for p in prompts] == ["rule", "rule.again"]
    assert reason in prompts[1].messages[-1].text
    assert result.rule
    result, prompts = talk(bad, bad)
    assert result.rule is None
    assert result.why.startswith("asked twice: ")
    assert "\n" not in result.why
    assert len(prompts) == 2


@pytest.mark.parametrize("finish", ["refused", "empty", "truncated", "too_long"])
def test_no_answer_is_no_rule(finish):
    result, _ = talk(Reply("", "test:model", finish))
    assert (result.rule, result.why) == (None, f"the model's reply is {finish}")


def by_problem(small):
    """Judges the smaller problem's candidates by `small`."""

    def new_judge(name, reference):
        found = small if "small" in reference else is_bad
        return Judge(found, case().failed)

    return Checker(new_judge, HERE)


def test_a_smaller_problem_takes_the_place_of_the_task_s():
    result, _ = talk(answer(problem=SMALLER), by=by_problem(is_bad))
    assert result.rule.reference == SMALLER


def test_for_a_smaller_problem_the_witness_has_to_fail_in_the_same_way():
    result, prompts = talk(answer(problem=SMALLER), answer(), by=by_problem(lambda source: False))
    assert "does not fail as it did" in prompts[1].messages[-1].text
    assert result.rule.reference == case().reference


def test_the_witness_differs_from_the_remedy_in_the_fault_alone():
    remedy = "b = good()\nmore = 5\nother = 6\n\nclass ModelNew:\n    pass\n"
    result, _ = talk(answer(remedy=remedy))
    assert result.rule.witness == remedy.replace("good", "bad")


def test_a_missing_part_of_triton_is_found_by_its_name():
    message = "module 'triton.language' has no attribute 'bad'"
    failed = Failed("compile_error", message, feedback=Fault("AttributeError", message, 3, "", "k"))
    head = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x):\n"
    source = f"{head}    y = tl.bad(x)\n\nclass ModelNew:\n    k\n"

    def fails(text):
        return "tl.bad(" in text and "def k" in text and "triton.jit" in text and "as tl" in text

    [group] = grouped([failure("one", source, failed)])
    by = checker(fails, failed)
    result, _ = talk(answer(remedy=source.replace("bad", "good")), by=by, about=case_of(group, by))
    assert result.rule.matcher == Matcher(("tl.bad",))
    result, _ = talk(answer())
    assert result.rule.matcher is None


def test_the_same_replies_give_the_same_rule():
    assert talk("no", answer()) == talk("no", answer())
    assert PASSED.status == "passed"
