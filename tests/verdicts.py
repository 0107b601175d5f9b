"""What a judge makes of a candidate that must pass, or must not."""

from adaexplore.core.candidate import Candidate
from adaexplore.core.verdict.evaluation import Failed, Passed


def passed(judge, tried: Candidate) -> Passed:
    verdict = judge.evaluate(tried)
    assert isinstance(verdict, Passed), verdict
    return verdict


def failed(judge, tried: Candidate) -> Failed:
    verdict = judge.evaluate(tried)
    assert isinstance(verdict, Failed), verdict
    return verdict
