import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadInputError
from adaexplore.core.node import Node
from adaexplore.core.proposal import Proposal
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.evaluate.judge.evaluators.recorded import RecordedEvaluator, UnseenCandidateError

FACTS = ReferenceFacts(baselines_us={"eager": 10.0})


def candidate(number):
    lines = [f"    x{i} = {i}" for i in range(9)]
    return Candidate("\n".join(["class ModelNew:", *lines, f"    number = {number}"]), "cpp")


def node(step, number, reason="", *, reused=False, failure=""):
    proposal = Proposal(candidate(number), "manual", "", failure=failure)
    return Node(step, 0, "large", proposal, Failed("wrong_output", reason), reused=reused)


def reason(evaluator, number):
    return evaluator.evaluate(candidate(number), candidate(1)).reason


def test_a_candidate_gets_what_it_got():
    evaluator = RecordedEvaluator([node(1, 1, "first"), node(2, 2, "second")], FACTS)
    assert evaluator.prepare() == evaluator.prepare() == FACTS
    assert [reason(evaluator, n) for n in (2, 1, 2)] == ["second", "first", "second"]
    evaluator.close()


def test_in_the_order_it_got_it():
    nodes = [node(1, 1, "crashed"), node(2, 1, "wrong"), node(3, 1, "crashed", reused=True)]
    evaluator = RecordedEvaluator(nodes, FACTS)
    assert [reason(evaluator, 1) for _ in range(3)] == ["crashed", "wrong", "wrong"]


def test_what_was_never_evaluated_is_compared_with_the_nearest():
    nodes = [node(1, 1), node(2, 22), node(3, 3, failure="no code")]
    evaluator = RecordedEvaluator(nodes, FACTS)
    with pytest.raises(UnseenCandidateError) as caught:
        evaluator.evaluate(candidate(3))
    assert isinstance(caught.value, BadInputError)
    assert str(caught.value) == (
        "this candidate was never evaluated; the nearest is step 1's, 91 % alike, which differs "
        "first in line 11: recorded '    number = 1', now '    number = 3'"
    )
    with pytest.raises(UnseenCandidateError, match="no other was either"):
        RecordedEvaluator([], FACTS).evaluate(candidate(3))
