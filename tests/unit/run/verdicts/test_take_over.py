"""Verdicts that sessions take over from each other, over real databases."""

import threading
from contextlib import contextmanager
from dataclasses import fields, replace

import pytest
from test_search import Run, record

from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment, Isolation
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Access, Checks, Likeness, Problem, Tolerance, Workload
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.descriptor import Descriptor
from adaexplore.core.verdict.evaluation import (
    Cost,
    Estimate,
    Failed,
    Paired,
    Passed,
    Timing,
    WorkloadTiming,
)
from adaexplore.core.verdict.facts import ReferenceFacts, WorkloadFacts
from adaexplore.run.verdicts import take_over
from adaexplore.run.verdicts.take_over import judged, taking_over

PROBLEM = Problem("p", "class Model: ...", "cpp", "cpu")
ENVIRONMENT = Environment(cpu="one", cores=2, threads=2, torch="2.13", triton="3.5", commit="a")
FACTS = ReferenceFacts(input_sets=("normal", "zeros"), baselines_us={"eager": 10.0, "compile": 8.0})
CANDIDATE = Candidate("class ModelNew: ...", "cpp")
TIMING = Timing(5.0, (4.9, 5.1), {"eager": 10.0}, 2.0, (1.9, 2.1), 2.0, 100)
QUIET = Passed("fp32", 1e-7, TIMING, Cost(9.0, 3.0))


class Judge:
    """An evaluator with one answer, which counts how often it is asked."""

    def __init__(self, answer=QUIET, facts=FACTS) -> None:
        self.answer, self.facts, self.asked = answer, facts, 0

    def prepare(self):
        return self.facts

    def evaluate(self, candidate, parent=None, *, again=False):
        self.asked += 1
        return self.answer(candidate) if callable(self.answer) else self.answer

    def close(self):
        pass


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """An empty cache."""
    if request.param == "sqlite":
        return str(tmp_path / "cache" / "verdicts.db")
    server = request.getfixturevalue("postgresql")
    return server.new_database(f"cache{abs(hash(tmp_path)):x}")


@pytest.fixture
def file(tmp_path):
    return str(tmp_path / "verdicts.db")


@contextmanager
def session(place, judge, problem=PROBLEM, environment=ENVIRONMENT, **settings):
    config = Config(evaluation_cache=place, **settings)
    with taking_over(judge, problem, config, environment) as evaluator:
        evaluator.prepare()
        yield evaluator


def ask(place, judge, candidate=CANDIDATE, **different):
    with session(place, judge, **different) as evaluator:
        return evaluator.evaluate(candidate)


def is_found(place, **different) -> bool:
    """Return True if a session that differs so takes over the verdict of the usual session."""
    first, second = Judge(), Judge(facts=different.pop("facts", FACTS))
    ask(place, first)
    candidate = different.pop("candidate", CANDIDATE)
    ask(place, second, candidate, **different)
    return second.asked == 0


def test_a_verdict_is_taken_over_with_its_origin_and_at_no_cost(place):
    parent = Paired(6.0, 1.2, (1.1, 1.3))
    timing = replace(TIMING, parent=parent)
    first = replace(QUIET, timing=timing, workloads=(WorkloadTiming("w", timing),))
    assert ask(place, Judge(first)) == first
    second = Judge()
    found = ask(place, second)
    assert second.asked == 0
    assert found.taken_over.machine
    assert found.taken_over.at > 0
    expected = replace(QUIET, cost=Cost(), workloads=(WorkloadTiming("w", TIMING),))
    assert replace(found, taken_over=None) == expected


def test_a_confirmation_is_always_measured(place):
    ask(place, Judge())
    judge = Judge()
    with session(place, judge) as evaluator:
        assert judged(evaluator, CANDIDATE).taken_over is None  # beside every baseline: another
        assert judged(evaluator, CANDIDATE).taken_over is not None
        assert evaluator.evaluate(CANDIDATE, again=True).taken_over is None
    assert judge.asked == 2


def test_without_a_cache_the_evaluator_is_the_own_one():
    judge = Judge()
    with taking_over(judge, PROBLEM, Config(), ENVIRONMENT) as evaluator:
        assert evaluator is judge
        assert judged(evaluator, CANDIDATE) == QUIET


OTHER_PROBLEMS = {
    "source": "class Model: pass",
    "language": "triton",
    "seed": 1,
    "mode": "eval",
    "target": "sm_90",
    "workloads": (Workload(draw="other()"),),
    "weights_digest": "1",
    "access": Access(digest="1"),
    "device": "cuda:0",
}
OTHER_CHECKS = {
    "precision": "tf32",
    "require_custom": True,
    "allow_waiting": True,
    "backward": True,
    "tolerances": (Tolerance(1e-3, 1e-3, "x"),),
    "likenesses": (Likeness(0.9, 0.1, 0.1, "x"),),
}
OTHER_VALUES = {str: "other", int: 77, float: 77.0, Isolation: Isolation(network="other")}
OF_MACHINE = [each.name for each in fields(Environment) if each.name not in ("device", "commit")]


@pytest.mark.parametrize("name", OTHER_PROBLEMS)
def test_another_problem_is_a_miss(file, name):
    assert not is_found(file, problem=replace(PROBLEM, **{name: OTHER_PROBLEMS[name]}))


@pytest.mark.parametrize("name", OTHER_CHECKS)
def test_other_checks_are_a_miss(file, name):
    checks = replace(Checks(), **{name: OTHER_CHECKS[name]})
    assert not is_found(file, problem=replace(PROBLEM, checks=checks))


@pytest.mark.parametrize("name", OF_MACHINE)
def test_another_machine_or_version_is_a_miss(file, name):
    other = OTHER_VALUES[type(getattr(ENVIRONMENT, name))]
    assert not is_found(file, environment=replace(ENVIRONMENT, **{name: other}))


@pytest.mark.parametrize(
    "setting", [{"timeout_s": 9.0}, {"memory_gb": 2.0}, {"evaluation_scope": "serve:bob"}], ids=str
)
def test_other_limits_or_another_scope_are_a_miss(file, setting):
    assert not is_found(file, **setting)


@pytest.mark.parametrize(
    "facts",
    [
        replace(FACTS, input_sets=("normal",)),
        replace(FACTS, baselines_us={"eager": 10.0}),
        replace(FACTS, compiles=True),
        replace(FACTS, workloads=(WorkloadFacts("w", ("normal",), ()),)),
        replace(FACTS, variants={"small": "8x8"}),
    ],
)
def test_a_reference_that_was_judged_otherwise_is_a_miss(file, facts):
    assert not is_found(file, facts=facts)


@pytest.mark.parametrize("other", [Candidate("class ModelNew: ... # x", "cpp")])
def test_another_text_is_a_miss(file, other):
    assert not is_found(file, candidate=other)


@pytest.mark.parametrize("name", take_over.VARIABLES)
def test_another_variable_of_the_compilers_is_a_miss(file, name, monkeypatch):
    ask(file, Judge())
    monkeypatch.setenv(name, "other")
    second = Judge()
    ask(file, second)
    assert second.asked == 1


@pytest.mark.parametrize("name", ["installed", "_judge_digest"])
def test_other_packages_or_another_judge_are_a_miss(file, name, monkeypatch):
    ask(file, Judge())
    monkeypatch.setattr(take_over, name, lambda: "other")
    second = Judge()
    ask(file, second)
    assert second.asked == 1


def test_names_places_and_equal_gpus_of_a_machine_make_no_difference(file):
    on_gpu = {"problem": replace(PROBLEM, device="cuda:0")}
    ask(file, Judge(), **on_gpu)
    judge = Judge()
    moved = replace(PROBLEM, device="cuda:1", name="q", weights="/elsewhere")
    ask(file, judge, problem=moved, environment=replace(ENVIRONMENT, device="cuda:1", commit="b"))
    assert judge.asked == 0


LOADED = replace(QUIET, timing=replace(TIMING, waited=0.2))
NOISY = replace(QUIET, timing=replace(TIMING, speedup_ci=(1.0, 3.0)))
OF_THE_MOMENT = {
    "under load": LOADED,
    "noisy": NOISY,
    "one workload under load": replace(
        QUIET, workloads=(WorkloadTiming("w", TIMING), WorkloadTiming("v", LOADED.timing))
    ),
    "disturbed": replace(QUIET, labels=("baselines-disturbed",)),
    "no disk": Failed("compile_error", "CppCompileError", "ld: No space left on device"),
    **{
        status: Failed(status, "")
        for status in ("infra_error", "timeout", "out_of_memory", "runtime_error", "rejected")
    },
}


@pytest.mark.parametrize("answer", OF_THE_MOMENT.values(), ids=OF_THE_MOMENT)
def test_a_verdict_of_the_moment_is_not_kept(file, answer):
    ask(file, Judge(answer))
    judge = Judge()
    ask(file, judge)
    assert judge.asked == 1


@pytest.mark.parametrize(
    "answer",
    [
        Failed("wrong_output", "0.1 off"),
        Failed("compile_error", "no"),
        Passed("fp32", 0.0, Estimate(5.0, "memory", "sm_90")),
    ],
)
def test_what_the_text_decides_is_kept(file, answer):
    ask(file, Judge(answer))
    assert replace(ask(file, Judge()), taken_over=None) == answer


def test_a_time_that_the_judge_took_over_from_the_same_code_is_not_kept(file):
    descriptor = Descriptor(form="f", code="c")
    judge = Judge(replace(QUIET, descriptor=descriptor))
    other = Candidate("class ModelNew: pass", "cpp")
    with session(file, judge) as evaluator:
        evaluator.evaluate(CANDIDATE)
        evaluator.evaluate(other)
    again = Judge()
    ask(file, again)
    ask(file, again, other)
    assert again.asked == 1


def test_two_that_judge_the_same_at_once_both_get_a_verdict_and_one_stays(place):
    meeting = threading.Barrier(2)
    found = []

    def judge_it() -> None:
        def answer(_):
            meeting.wait(20)
            return QUIET

        found.append(ask(place, Judge(answer)))

    threads = [threading.Thread(target=judge_it) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [QUIET, QUIET]
    third = Judge()
    ask(place, third)
    assert third.asked == 0


def test_the_user_s_own_cache_is_refused_where_candidates_could_write_to_it(monkeypatch):
    monkeypatch.setattr(take_over, "own_folder", lambda _: None)
    with pytest.raises(BadInputError, match=r"evaluation_cache = on: .* cannot be kept from"):
        ask("on", Judge())


def test_a_search_takes_over_what_another_has_measured_and_confirms_by_a_measurement(tmp_path):
    runs = [Run(tmp_path / name, record(steps=12)) for name in ("one", "two")]
    place, judges = str(tmp_path / "verdicts.db"), [run.evaluator for run in runs]
    for run, judge in zip(runs, judges, strict=True):
        with session(place, judge) as run.evaluator:
            run.search()
    first, second = ([node.evaluation for node in run.nodes()] for run in runs)
    assert [replace(one, taken_over=None) for one in second] == first
    assert all(one.taken_over for one in second if one.status in ("passed", "wrong_output"))
    assert runs[1].best_source == runs[0].best_source
    # Nothing but the winner was judged: the reused verdicts of one run are its own.
    assert judges[1].evaluated == [runs[1].best_source]
    confirmation = runs[1].confirmation().evaluation
    assert confirmation.status == "passed"
    assert confirmation.taken_over is None
