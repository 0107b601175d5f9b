import dataclasses
import json

import pytest
from test_memory_files import RULE

from adaexplore.core.problem import Problem
from adaexplore_lab.lift.summary import (
    RIGHT,
    TaskTries,
    contrast,
    measured,
    noted,
    rules_in,
    source_of,
    to_json,
)

PROBLEM = Problem("softmax_1", "class Model: ...\n", "triton", "cpu", target="sm_90")


def rule(name, **changes):
    values = {"statement": f"Say {name}.", "tasks": (), "lift": None, "lift_tries": 0} | changes
    return dataclasses.replace(RULE, name=name, **values)


def tried(task, arm, outcomes, rules=(), tokens=100):
    """Tries by a letter each: r is right, any other a failure."""
    names = {"r": RIGHT, "c": "compile_error", "w": "wrong_output"}
    return TaskTries(task, arm, tuple(names[o] for o in outcomes), frozenset(rules), tokens)


TRIES = [
    tried("a", "none", "c"),
    tried("b", "none", "r"),
    tried("c", "none", "w"),
    tried("a", "mine", "r", ["dot", "sum"], 150),
    tried("b", "mine", "r", ["sum"], 130),
    tried("c", "mine", "w", ["sum"], 140),
    tried("a", "mine-without-dot", "c", ["sum"], 140),
]
RULES = [rule("dot"), rule("sum"), rule("never")]


def lift(tries=TRIES, without=None):
    return measured(
        tries,
        RULES,
        baseline="none",
        arm="mine",
        others=[],
        without={"dot": "mine-without-dot"} if without is None else without,
    )


def test_what_came_of_each_arm():
    none, mine, without = lift().arms
    assert (none.arm, none.right, none.tries, none.tokens_added) == ("none", 1, 3, 0)
    assert none.failures == {"compile_error": 1, "wrong_output": 1}
    assert (mine.right, mine.tasks, mine.tokens_added) == (2, 3, 40)
    assert mine.interval[0] < 2 / 3 < mine.interval[1]
    assert (without.tasks, without.tokens_added) == (1, 40)


def test_arms_are_compared_at_the_tasks_that_both_had():
    against_none, against_without = lift().contrasts
    assert (against_none.tasks, against_none.better, against_none.worse) == (3, 1, 0)
    assert against_none.difference == pytest.approx(1 / 3)
    assert against_none.shares == pytest.approx((2 / 3, 1 / 3))
    assert (against_without.against, against_without.tasks) == ("mine-without-dot", 1)


def test_of_each_task_as_many_tries_count_as_both_had():
    found = contrast("mine", "none", [tried("a", "none", "c"), tried("a", "mine", "rww")])
    assert (found.tries, found.difference) == (1, 1.0)


def test_a_task_without_a_judged_try_does_not_count():
    assert contrast("mine", "none", [tried("a", "none", ""), tried("a", "mine", "r")]) is None
    assert lift([tried("a", "none", "")]).arms == []


def test_a_rule_is_measured_where_a_prompt_has_it():
    dot, other = lift().rules
    assert (dot.rule, dot.alone, dot.contrast.tries, dot.contrast.difference) == ("dot", True, 1, 1)
    assert (other.rule, other.alone, other.contrast.tries) == ("sum", False, 3)


def test_until_it_was_left_out_a_rule_is_compared_with_no_memory():
    [dot] = [one for one in lift(TRIES[:-1]).rules if one.rule == "dot"]
    assert (dot.alone, dot.contrast.against) == (False, "none")


def test_lifts_are_noted_with_their_tries():
    before = [rule("dot"), rule("sum"), rule("never", lift=0.5, lift_tries=9)]
    dot, other, never = noted(before, lift().rules)
    assert (dot.lift, dot.lift_tries) == (1.0, 1)
    assert (other.lift, other.lift_tries) == (0.333, 3)
    assert never == before[2]


def test_rules_are_found_in_a_prompt_by_their_lines():
    listed = "# Rules\n- Say dot.\n- Say sum. And more.\n\nSay never.\n"
    assert rules_in(listed, RULES) == {"dot"}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, ""),
        ({"tasks": ("softmax_2",)}, ""),
        ({"tasks": ("softmax_2", "softmax_1")}, "dot"),
        ({"reference": "\nclass Model: ..."}, "dot"),
    ],
)
def test_a_task_is_not_held_out_from_what_was_learned_from_it(changes, found):
    assert source_of([rule("sum"), rule("dot", **changes)], PROBLEM) == found


def test_all_of_it_is_plain_data():
    found = lift()
    data = [to_json(x) for x in (*found.arms, *found.contrasts, *found.rules, *TRIES)]
    back = json.loads(json.dumps(data))
    assert back[-4]["rules"] == ["dot", "sum"]
    assert back[0]["failures"] == {"compile_error": 1, "wrong_output": 1}
