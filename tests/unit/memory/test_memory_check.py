"""Checking with a judge that knows its verdicts, and with the real one."""

import dataclasses

import pytest
from test_memory_files import RULE

from adaexplore.core.errors import BadProblemError
from adaexplore.core.rule import Platform, Signature
from adaexplore.core.verdict.evaluation import Estimate, Failed, Fault, Passed
from adaexplore.memory.check import Checker

HERE = Platform("9.9.9", "sm_90")
PASSED = Passed("fp32", 0.0, Estimate(1.0, "memory", "sm_90"))
BROKEN = Failed("compile_error", "no", feedback=Fault("TypeError", "no ** at 7:3", 7))
BASE = dataclasses.replace(RULE, holds=(), gone=(), signature=Signature("compile_error"))


class Judge:
    made = 0

    def __init__(self, verdicts):
        self._verdicts = verdicts
        Judge.made += 1

    def prepare(self):
        return {}

    def evaluate(self, candidate):
        return self._verdicts[candidate.source]

    def close(self):
        pass


def checker(witness, remedy):
    verdicts = {BASE.witness: witness, BASE.remedy: remedy}
    return Checker(lambda name, source: Judge(verdicts), HERE)


@pytest.mark.parametrize(
    ("witness", "remedy", "why"),
    [
        (BROKEN, PASSED, ""),
        (Failed("runtime_error", "worded anew"), PASSED, ""),
        (PASSED, PASSED, "the witness passes"),
        (BROKEN, BROKEN, "the remedy fails: compile_error"),
        (Failed("wrong_output", "off"), PASSED, "the witness fails in another way"),
        (Failed("infra_error", "gone"), PASSED, "the witness could not be judged"),
    ],
)
def test_true_only_if_one_fails_and_the_other_passes(witness, remedy, why):
    checked = checker(witness, remedy).check(BASE)
    assert checked.true == (why == "")
    assert checked.why.startswith(why)


def test_where_it_was_seen_is_noted():
    assert checker(BROKEN, PASSED).check(BASE).rule.holds == (HERE,)
    gone = checker(PASSED, PASSED).check(dataclasses.replace(BASE, holds=(HERE,))).rule
    assert (gone.holds, gone.gone) == ((), (HERE,))
    unclear = checker(BROKEN, BROKEN).check(dataclasses.replace(BASE, holds=(HERE,))).rule
    assert (unclear.holds, unclear.gone) == ((), ())


def test_how_the_witness_fails_is_observed():
    checked = checker(BROKEN, PASSED).observe(BASE)
    assert checked.true
    assert checked.rule.signature == Signature("compile_error", "TypeError", "", "no **")
    assert checker(PASSED, PASSED).observe(BASE).why == "the witness passes"


def test_a_reference_that_cannot_be_judged_is_no_rule_here():
    class Strict(Judge):
        def prepare(self):
            raise BadProblemError("the reference raised ImportError")

    checked = Checker(lambda name, source: Strict({}), HERE).check(BASE)
    assert not checked.true
    assert "the reference raised ImportError" in checked.why
    assert (checked.rule.holds, checked.rule.gone) == ((), ())


def test_rules_of_one_reference_share_a_judge():
    Judge.made = 0
    one = checker(BROKEN, PASSED)
    other = dataclasses.replace(BASE, reference="class Model: other = 1\n")
    for rule in (BASE, BASE, other, BASE):
        one.check(rule)
    assert Judge.made == 3
