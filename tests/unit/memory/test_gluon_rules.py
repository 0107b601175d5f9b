"""Rules about Gluon, which hold on some versions of Triton only."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from adaexplore.core.environment import Environment
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.proposer import Context
from adaexplore.core.rule import Platform
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import LAUNCHES_NONE, Failed
from adaexplore.memory.check import Checker
from adaexplore.memory.files import from_data, load_memory, to_data
from adaexplore.memory.lint import lint
from adaexplore.run.learning.machine import Machine
from adaexplore.run.recall import memory_for, recalling

FILE = Path(__file__).parents[3] / "docs" / "results" / "gluon-rules.toml"
RULES = load_memory(FILE)
RENAMED = next(rule for rule in RULES if rule.name == "tma-load-renamed")


@pytest.mark.slow
def test_what_is_noted_of_the_installed_version_is_so():
    machine = Machine("cpu", "sm_90")
    if machine.platform not in (*RENAMED.holds, *RENAMED.gone):
        pytest.skip(f"the rules were not checked on {machine}")
    with closing(machine.checker()) as checker:
        for rule in RULES:
            checked = checker.check(replace(rule, holds=(), gone=()))
            assert checked.true is (machine.platform in rule.holds), (rule.name, checked.why)
            assert checked.rule.gone == tuple(w for w in rule.gone if w == machine.platform)


def test_some_hold_on_one_version_only():
    assert {str(where) for where in RENAMED.holds} == {"3.9.0 sm_90"}
    assert {str(where) for where in RENAMED.gone} == {"3.6.0 sm_90"}


def test_a_file_keeps_the_language():
    assert from_data(to_data(RULES), "file") == sorted(RULES, key=lambda rule: rule.name)
    assert {rule.language for rule in RULES} == {"gluon"}
    data = to_data(RULES)
    data[RENAMED.name]["language"] = "cobol"
    with pytest.raises(BadInputError, match=rf"{RENAMED.name}.*'language' is to be one of triton"):
        from_data(data, "file")


class TestWhoIsToldOfThem:
    def told(self, language, triton):
        problem = Problem("p", "a tma", language, "cpu", target="sm_90")
        context = Context(problem, "large", 0, environment=Environment(triton=triton))
        return recalling(RULES, Config())(context)

    def test_prompts_about_gluon_on_a_version_where_they_hold(self):
        assert RENAMED.statement in self.told("gluon", "3.9.0")
        assert RENAMED.statement not in self.told("gluon", "3.6.0")

    def test_no_prompt_about_another_language(self):
        assert self.told("triton", "3.9.0") == []

    def test_a_memory_for_another_language_is_refused(self):
        triton = Problem("p", "", "triton", "cuda:0")
        with pytest.raises(BadInputError, match=r"rules are about Gluon, .* kernels are in triton"):
            memory_for(triton, str(FILE))
        assert memory_for(replace(triton, language="gluon"), str(FILE))[1] == tuple(RULES)

    def test_a_module_is_told_before_it_is_compiled(self):
        assert {hit.rule.name for hit in lint(RENAMED.witness, RULES, "3.9.0", "sm_90")} == {
            RENAMED.name
        }
        assert not lint(RENAMED.remedy, RULES, "3.9.0", "sm_90")


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("compile", "the witness compiles"),
        ("numerics", "the witness was not run here, and only a run shows its fault"),
    ],
)
def test_a_witness_that_compiles_and_was_not_run(kind, why):
    class Judge:
        def prepare(self):
            return None

        def evaluate(self, candidate, parent=None, *, again=False):
            assert candidate.language == "gluon"
            return Failed("not_run", "it compiles")

        def close(self):
            pass

    where = Platform("4.0.0", "sm_90")
    checker = Checker(lambda name, source: Judge(), where)
    checked = checker.check(replace(RENAMED, kind=kind))
    assert (checked.true, checked.why) == (False, why)
    assert (where in checked.rule.gone) is (kind == "compile")


@pytest.mark.parametrize(("kind", "is_true"), [("launch", True), ("numerics", False)])
def test_a_remedy_that_compiles_and_was_not_run(kind, is_true):
    class Judge:
        def prepare(self):
            return None

        def evaluate(self, candidate, parent=None, *, again=False):
            fails = candidate.source == RENAMED.witness
            return Failed("runtime_error" if fails else "not_run", "no such grid")

        def close(self):
            pass

    checker = Checker(lambda name, source: Judge(), Platform("4.0.0", "sm_90"))
    assert checker.check(replace(RENAMED, kind=kind)).true is is_true


def test_a_remedy_without_a_kernel_remedies_nothing():
    class Judge:
        def prepare(self):
            return None

        def evaluate(self, candidate, parent=None, *, again=False):
            if candidate.source == RENAMED.witness:
                return Failed("compile_error", "no attribute")
            return Failed("not_run", f"{LAUNCHES_NONE}; not run here")

        def close(self):
            pass

    checker = Checker(lambda name, source: Judge(), Platform("4.0.0", "sm_90"))
    assert not checker.check(RENAMED).true
