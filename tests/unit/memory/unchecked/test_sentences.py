"""Unchecked rules as published: which failures, and how the model's replies are read."""

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.rule import unchecked_rule
from adaexplore.core.verdict.evaluation import Failed, Mismatch, Passed, Timing
from adaexplore.memory.unchecked.sentences import (
    errors_of,
    new_rule,
    read_same,
    read_sentence,
    same_prompt,
    sentence_prompt,
)

PROBLEM = Problem("p", "class Model: ...", "triton", "cpu", target="sm_90")
TIMING = Timing(1.0, (1.0, 1.0), {"eager": 2.0}, 2.0, (2.0, 2.0), 2.0, 100)
RULES = [
    unchecked_rule(f"seen-0000{n}-x", f"You cannot do {n}.", support=n, source="failure")
    for n in (1, 2, 3)
]


def node(number, evaluation, source="k", failure="", kind="large"):
    proposal = Proposal(Candidate(source, "triton"), "x", "", failure=failure)
    return Node(number, 0, kind, proposal, evaluation)


def test_every_step_that_raised_or_had_the_wrong_form_counts():
    mismatch = Mismatch("output", "first", 1.0, (0,), 1.0, 2.0, 0)
    nodes = [
        node(1, Failed("compile_error", "e")),
        node(2, Failed("compile_error", "e")),  # the same kernel again
        node(3, Failed("wrong_output", "off", feedback=mismatch)),
        node(4, Failed("wrong_output", "has shape (3,)")),
        node(5, Failed("rejected", "it cheats")),
        node(6, Failed("infra_error", "no connection")),
        node(7, Failed("rejected", "no module", ""), failure="no module"),
        node(8, Passed("fp32", 0.0, TIMING)),
        node(9, Failed("timeout", "late")),
        node(10, Failed("runtime_error", "e"), kind="tune"),
    ]
    assert [failure.step for failure in errors_of(PROBLEM, nodes)] == [1, 2, 4, 9]
    assert errors_of(Problem("p", "", "cpp", "cpu"), nodes) == []


def test_the_prompt_has_the_program_and_its_error_and_the_reply_a_last_line():
    [failure] = errors_of(PROBLEM, [node(1, Failed("compile_error", "no such", "line 3\n"), "abc")])
    text = sentence_prompt(failure).messages[-1].text
    assert "abc" in text
    assert "compile_error: no such\nline 3" in text
    assert read_sentence("Well.\n\nYou cannot do so.\n") == "You cannot do so."
    assert read_sentence("You cannot.\nNo guidance") == ""
    assert read_sentence("  \n") == ""


@pytest.mark.parametrize(
    ("reply", "number"),
    [
        ('{"is_duplicate": true, "matched_index": 2, "confidence": 0.51}', 2),
        ('Yes: {"is_duplicate": true, "matched_index": 3, "confidence": 1}.', 3),
        ('{"is_duplicate": true, "matched_index": 2, "confidence": 0.5}', None),
        ('{"is_duplicate": true, "matched_index": 2}', None),
        ('{"is_duplicate": false, "matched_index": 2, "confidence": 1}', None),
        ('{"is_duplicate": true, "matched_index": null, "confidence": 1}', None),
        ('{"is_duplicate": true, "matched_index": 4, "confidence": 1}', None),
        ('{"is_duplicate": true, "matched_index": 0, "confidence": 1}', None),
        ('{"is_duplicate": true, "matched_index": "2", "confidence": 1}', None),
        ('{"is_duplicate": true, "matched_index": 2, "confidence": "high"}', None),
        ("{no json}", None),
        ("True, a duplicate of rule 2.", 2),
        ("A duplicate of rule 2.", None),
        ("True, a duplicate of rule 7.", None),
        ("", None),
    ],
)
def test_a_reply_names_the_rule_that_says_the_same(reply, number):
    assert read_same(reply, RULES) == (RULES[number - 1] if number else None)


def test_all_rules_are_listed_by_number():
    text = same_prompt("You cannot do 9.", RULES).messages[-1].text
    assert "1. You cannot do 1.\n2. You cannot do 2.\n3. You cannot do 3.\n" in text
    assert "You cannot do 9." in text


def test_names_are_in_the_order_of_making():
    made = list(RULES)
    for number in range(12):
        made.append(new_rule(f"You cannot do so {number}.", made, "p"))
    assert sorted(rule.name for rule in made) == [rule.name for rule in made]
    assert (made[-1].support, made[-1].tasks, made[-1].kind) == (1, ("p",), "unchecked")
