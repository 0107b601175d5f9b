"""Rules where a version has other names: real programs are checked by the command's own test."""

import re
from dataclasses import replace

import pytest

from adaexplore.core.rule import Platform, Rule, Signature
from adaexplore.core.verdict.evaluation import Estimate, Failed, Passed
from adaexplore.memory.check import Checker
from adaexplore.memory.renames import follow, renamed_in

OLD, NEW = Platform("3.6.0", "sm_90"), Platform("3.9.0", "sm_90")
REMOVED = "RuntimeError: {} has been removed; call {} instead (line 3)"
RULE = Rule(
    name="no-wait",
    kind="compile",
    statement="Never wait.",
    reference="r",
    witness="copy(x)\nstore(x)\nwait(x)",
    remedy="copy(x)\nstore(x)",
    signature=Signature("compile_error", "CompilationError", "wait"),
    holds=(OLD,),
)


class Compiler:
    """Judges words: `gone` names what is missing with what it says, `wait` fails everywhere."""

    def __init__(self, gone, waits=True):
        self.gone = gone
        self.waits = waits
        self.judged = 0

    def prepare(self):
        pass

    def close(self):
        pass

    def evaluate(self, candidate, parent=None, *, again=False):
        self.judged += 1
        words = re.findall(r"\w+", candidate.source)
        for word in words:
            if word in self.gone:
                return Failed("compile_error", self.gone[word])
        if self.waits and "wait" in words:
            return Failed("compile_error", "CompilationError: wait")
        return Passed("fp32", 0.0, Estimate(1.0, "memory", "sm_90"))


TWO_NAMES = {
    "copy": REMOVED.format("copy", "load"),
    "store": "AttributeError: `gl.store` was renamed to `gl.put`",
}


@pytest.fixture
def followed():
    def followed(gone, rule=RULE, memory=(), *, where=NEW, waits=True):
        checker = Checker(lambda _name, _reference: Compiler(gone, waits), where)
        checked = checker.check(rule)
        return follow(checked, checker, memory)

    return followed


def test_each_name_that_the_failure_tells_is_a_rule_and_the_rule_stays(followed):
    made = followed(TWO_NAMES)
    assert [(one.rule.name, one.rule.statement) for one in made.found] == [
        ("copy-is-load", "There is no `copy`: it is `load`."),
        ("store-is-put", "There is no `store`: it is `put`."),
    ]
    first = made.found[0].rule
    assert (first.witness, first.remedy) == ("copy(x)\nput(x)", "load(x)\nput(x)")
    assert (first.holds, renamed_in(first)) == ((NEW,), ("copy", "load"))
    assert made.under.true
    assert made.under.rule.name == "no-wait-3-9-0"
    assert made.under.rule.witness == "load(x)\nput(x)\nwait(x)"
    assert made.under.rule.holds == (NEW,)


def test_the_way_back_goes_by_rules_that_the_memory_has(followed):
    made = followed(TWO_NAMES)
    missing = {
        "load": "AttributeError: module 'gl' has no attribute 'load' (line 3)",
        "put": "NameError: name 'put' is not defined",
    }
    memory = [one.rule for one in made.found]
    back = followed(missing, made.under.rule, memory, where=OLD)
    assert [one.rule.name for one in back.found] == ["load-is-copy", "put-is-store"]
    assert (back.under.rule.name, back.under.rule.remedy) == ("no-wait-3-6-0", RULE.remedy)
    assert followed(missing, made.under.rule, where=OLD).under is None


def test_a_rule_that_is_not_so_under_the_new_names_is_gone(followed):
    made = followed(TWO_NAMES, waits=False)
    assert (made.under.true, made.under.rule.gone) == (False, (NEW,))
    assert len(made.found) == 2


@pytest.mark.parametrize(
    ("rule", "memory"),
    [
        (replace(RULE, holds=()), ()),
        (replace(RULE, witness="wait(x)", remedy="x"), ()),
        (RULE, [replace(RULE, name="other", holds=(NEW,))]),
    ],
    ids=["held nowhere", "holds here", "another one says so here"],
)
def test_there_is_nothing_to_follow(followed, rule, memory):
    made = followed(TWO_NAMES, rule, memory)
    assert (made.found, made.under) == ((), None)


def test_what_the_memory_has_said_already_is_not_found_again(followed):
    memory = [one.rule for one in followed(TWO_NAMES).found]
    again = followed(TWO_NAMES, replace(RULE, statement="Do not wait."), memory)
    assert again.found == ()
    assert again.under.true


@pytest.mark.parametrize(
    "said",
    [
        "copy fails",
        REMOVED.format("other", "load"),
        REMOVED.format("copy", "copy"),
        REMOVED.format("copy", "duplicate"),
    ],
)
def test_names_that_do_not_help_end_in_nothing(followed, said):
    gone = {"copy": said, "duplicate": REMOVED.format("duplicate", "copy")}
    made = followed(gone)
    assert (made.found, made.under) == ((), None)
