import dataclasses
import json

import pytest
from test_memory_check import PASSED

from adaexplore.core.candidate import Candidate
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.rule import Platform, Signature
from adaexplore.core.verdict.evaluation import Failed, Fault, Mismatch
from adaexplore.memory.check import Checker
from adaexplore.memory.extract import (
    Case,
    Failure,
    case_id,
    case_of,
    counted,
    failures_of,
    grouped,
    rule_of,
)

PROBLEM = Problem("softmax", "class Model: ...", "triton", "cpu", target="sm_90")
SOURCE = "a = 1\nb = bad(a + 2)\nc = 3\n\n\nclass ModelNew:\n    d = 4\n"


def fault(message="module has no attribute 'tanh'", status="compile_error"):
    return Failed(status, message, feedback=Fault("AttributeError", message, 2, "b", "kernel"))


def own_error(status, kind, line):
    message = "module has no attribute 'tanh'"
    return Failed(status, message, feedback=Fault(kind, message, 3, line))


def node(number, source, evaluation, failure=""):
    proposal = Proposal(Candidate(source, "triton"), "model", "", failure=failure)
    return Node(number, 0, "large", proposal, evaluation)


def failure(task, source, failed=None):
    return Failure(task, "class Model: ...", source, failed or fault())


class Judge:
    """Fails what `bad` finds."""

    def __init__(self, bad, failed):
        self._bad, self._failed = bad, failed

    def prepare(self):
        return {}

    def evaluate(self, candidate):
        return self._failed if self._bad(candidate.source) else PASSED

    def close(self):
        pass


def checker(bad, failed=None):
    return Checker(lambda name, source: Judge(bad, failed or fault()), Platform("3.9.0", "sm_90"))


def test_only_failures_of_the_candidate_s_own_are_taken():
    nodes = [
        node(1, "a", fault()),
        node(2, "a", fault()),
        node(3, "b", PASSED),
        node(4, "c", Failed("infra_error", "the judge is gone")),
        node(5, "", Failed("rejected", "the model refused"), failure="the model refused"),
        node(6, "d", Failed("rejected", "cuBLAS did the work")),
        node(7, "e", Failed("timeout", "over")),
        node(8, "f", Failed("wrong_output", "off")),
    ]
    found = failures_of(PROBLEM, nodes)
    assert [f.source for f in found] == ["a", "f"]
    assert {f.task for f in found} == {"softmax"}
    assert failures_of(Problem("p", "", "cpp", "cpu"), nodes) == []


def test_failures_of_one_cause_are_one_group_with_its_shortest_as_exemplar():
    other = fault("name 'foo' is not defined")
    groups = grouped(
        [
            failure("one", "y = 1  # long"),
            failure("one", "z", other),
            failure("two", "y = 1"),
            failure("two", "y = 22"),
        ]
    )
    assert [(g.exemplar.source, g.support, g.tasks) for g in groups] == [
        ("y = 1", 3, ("one", "two")),
        ("z", 1, ("one",)),
    ]


def test_wrong_outputs_are_never_of_one_cause():
    wrong = Failed("wrong_output", "off", feedback=Mismatch("o", "own-0", 1.0, (0,), 1, 2, 0))
    groups = grouped([failure("one", "a", wrong), failure("one", "b", wrong)])
    assert len(groups) == 2
    assert len({case_id(g) for g in groups}) == 2


def test_without_a_symbol_the_message_tells_causes_apart():
    messages = ["incompatible types", "incompatible types", "no grid"]
    groups = grouped([failure("t", m + str(i), fault(m)) for i, m in enumerate(messages)])
    assert [g.support for g in groups] == [2, 1]


def test_a_case_is_reduced_and_fails_as_before():
    [group] = grouped([failure("one", SOURCE)])
    case = case_of(group, checker(lambda s: "bad(" in s))
    assert case.witness == "b = bad()\n\nclass ModelNew:\n    pass\n"
    assert case.after.nodes < case.before.nodes
    assert (case.support, case.tasks, case.signature.symbol) == (1, ("one",), "tanh")
    assert Case.from_json(json.loads(json.dumps(case.to_json()))) == case


def test_a_wrong_output_loses_only_what_leaves_its_numbers_alone():
    wrong = Failed("wrong_output", "off", feedback=Mismatch("o", "own-0", 1.0, (0,), 1, 2, 0))
    [group] = grouped([failure("one", SOURCE, wrong)])
    case = case_of(group, checker(lambda s: "bad(" in s, wrong))
    assert "b = bad(a + 2)" in case.witness
    assert "c = 3" not in case.witness


def test_what_does_not_fail_here_is_no_case():
    [group] = grouped([failure("one", SOURCE)])
    with pytest.raises(ValueError, match="passes here"):
        case_of(group, checker(lambda s: False))
    with pytest.raises(ValueError, match="cannot be judged here: gone"):
        case_of(group, checker(lambda s: True, Failed("infra_error", "gone")))


@pytest.mark.parametrize(
    "otherwise",
    [
        fault("name 'foo' is not defined"),
        fault(status="runtime_error"),
        own_error("compile_error", "AttributeError", "  raise error"),
    ],
    ids=["another message", "another status", "its own error"],
)
def test_what_fails_for_another_reason_here_is_no_case(otherwise):
    [group] = grouped([failure("one", SOURCE)])
    with pytest.raises(ValueError, match="it fails for another reason here"):
        case_of(group, checker(lambda s: True, otherwise))


@pytest.mark.parametrize("line", ['    raise ValueError("64 channels")', "assert x.is_cuda"])
def test_an_error_that_a_candidate_raises_of_itself_teaches_nothing(line):
    refused = own_error("runtime_error", "ValueError", line)
    assert failures_of(PROBLEM, [node(1, "a", refused)]) == []


def test_two_languages_have_two_causes():
    one = failure("one", SOURCE)
    groups = grouped([one, dataclasses.replace(one, task="two", language="gluon")])
    assert [group.exemplar.language for group in groups] == ["triton", "gluon"]
    assert len({case_id(group) for group in groups}) == 2


def test_a_known_rule_counts_what_it_explains():
    known = rule_of("no-tanh", "r", "w")
    signature = Signature("compile_error", "AttributeError", "tanh", "x")
    known = dataclasses.replace(known, signature=signature, tasks=("one",), support=5)
    [group] = grouped([failure("two", SOURCE)])
    rule = counted([rule_of("other", "r", "w"), known], group)
    assert (rule.name, rule.tasks, rule.support) == ("no-tanh", ("one", "two"), 5)
    assert counted([rule], group) == rule
    assert counted([], group) is None
    assert counted([dataclasses.replace(known, language="gluon")], group) is None
