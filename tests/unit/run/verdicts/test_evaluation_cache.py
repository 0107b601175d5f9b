from dataclasses import replace

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.node import Node
from adaexplore.core.proposal import Proposal
from adaexplore.core.verdict.descriptor import Descriptor
from adaexplore.core.verdict.evaluation import Cost, Estimate, Failed, Paired, Passed, Timing
from adaexplore.languages.fingerprint import fingerprint
from adaexplore.run.verdicts.evaluation_cache import EvaluationCache

SOURCE = "def f(count):\n    return count + 1\n"
ALIKE = "def f(number):  # one more\n    return number + 1\n"
OTHER = "def f(count):\n    return count + 2\n"
PARENT = Paired(9.0, 1.1, (1.0, 1.2))


def passed(source, code="c0de", speedup=2.0):
    timing = Timing(10.0, (9.0, 11.0), {"eager": 20.0}, speedup, (1.9, 2.1), speedup, 7, PARENT)
    described = Descriptor(form=fingerprint(source), code=code)
    return Passed("fp32", 1e-7, timing, Cost(3.0, 1.0), descriptor=described)


def node(source, evaluation, number=1, **more):
    return Node(number, 0, "large", Proposal(Candidate(source, "cpp"), "x", ""), evaluation, **more)


@pytest.fixture
def cache():
    cache = EvaluationCache()
    cache.add(node(SOURCE, passed(SOURCE)))
    return cache


def test_an_identical_source_has_the_same_evaluation(cache):
    assert cache.of(Candidate(SOURCE, "cpp")) == passed(SOURCE)
    assert cache.of(Candidate(OTHER, "cpp")) is None


def test_an_equal_fingerprint_gives_the_evaluation_without_cost_and_parent(cache):
    found = cache.of(Candidate(ALIKE, "cpp"))
    first = passed(SOURCE)
    assert found == replace(first, cost=Cost(), timing=replace(first.timing, parent=None))


def test_failures_are_found_by_exact_source_only():
    cache = EvaluationCache()
    cache.add(node(SOURCE, Failed("timeout", "too slow")))
    assert cache.of(Candidate(SOURCE, "cpp")) == Failed("timeout", "too slow")
    assert cache.of(Candidate(ALIKE, "cpp")) is None


def test_equal_compiled_code_takes_over_the_first_time_and_keeps_its_own_cost(cache):
    lucky = replace(passed(OTHER, speedup=9.0), cost=Cost(7.0, 0.5))
    found = cache.compiled_alike(lucky)
    assert (found.timing.speedup, found.cost) == (2.0, Cost(7.0, 0.5))
    assert cache.compiled_alike(passed(OTHER, code="f00d")) is None
    assert cache.compiled_alike(replace(lucky, precision="tf32")) is None


def test_an_empty_hash_equals_no_other():
    cache = EvaluationCache()
    cache.add(node("def (", replace(passed("def ("), descriptor=Descriptor())))
    cache.add(node(SOURCE, replace(passed(SOURCE), descriptor=None)))
    assert cache.of(Candidate("def [", "cpp")) is None
    assert cache.compiled_alike(replace(passed(OTHER), descriptor=Descriptor())) is None
    assert cache.compiled_alike(replace(passed(OTHER), descriptor=None)) is None


def test_an_estimate_is_taken_over():
    estimated = replace(passed(SOURCE), timing=Estimate(12.0, "memory", "sm_90"))
    cache = EvaluationCache()
    cache.add(node(SOURCE, estimated))
    assert cache.compiled_alike(estimated) == estimated
