"""Judging a folder of answers, with an evaluator whose verdicts are given."""

import time
from dataclasses import dataclass, field, replace

import pytest

from adaexplore.core.bench import BenchEntry, TheirVerdict
from adaexplore.core.environment import Environment
from adaexplore.core.errors import BadProblemError, InfrastructureError
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.problems.benchmarks.arguments import NO_COUNTERPART
from adaexplore.run.bench import local
from adaexplore.run.bench.judge import BenchJudging
from adaexplore.run.job import Servers
from adaexplore.store.bench import BenchManifest, create_bench, read_verdicts

PROBLEM = "class Model: ...\ndef get_inputs(): ...\n"
WRONG = Failed("wrong_output", "output is off by 1", error=1.0)


@dataclass
class GivenEvaluator:
    """Returns what it was given by the source of the candidate, or raises it, after a while."""

    verdicts: dict
    takes_s: float = 0.0
    refuses: Exception | None = None
    languages: list = field(default_factory=list)

    def prepare(self):
        if isinstance(self.refuses, Exception):
            raise self.refuses
        return ReferenceFacts()

    def evaluate(self, candidate, parent=None, *, again=False):
        self.languages.append(candidate.language)
        time.sleep(self.takes_s)
        found = self.verdicts[candidate.source.strip()]
        if isinstance(found, Exception):
            raise found
        return found

    def close(self):
        pass


@pytest.fixture
def judging(tmp_path, monkeypatch):
    """Make a function that judges sources with an evaluator; it returns the recorded verdicts."""

    def judging(evaluator, *sources, adapted=False, device="cpu", looser=None, **options):
        def chosen(server, problem, config):
            return looser if looser and config.precision == "half" else evaluator

        monkeypatch.setattr(local, "evaluator_on", chosen)
        monkeypatch.setattr(local, "describe", lambda *_: Environment())
        monkeypatch.setattr(local, "device_of", lambda name: name)
        monkeypatch.setattr(local, "load_problem", lambda *_: problem)
        monkeypatch.setattr(Servers, "get", lambda *_: None)
        problem = local.Problem("one", PROBLEM, "triton", device)
        entries = tuple(
            BenchEntry("c", f"1/{i}", "level 1", f"{i}.py", "p.py", f"{i}.py", f"{i}", adapted)
            for i in range(len(sources))
        )
        path = tmp_path / "run"
        if not path.exists():
            files = {"p.py": PROBLEM, **{f"{i}.py": text for i, text in enumerate(sources)}}
            manifest = BenchManifest("b", "c", {}, or_looser=False, entries=entries)
            create_bench(path, manifest, files)
        manifest = BenchManifest("b", "c", {}, or_looser=looser is not None, entries=entries)
        config = Config(device=device, **options)
        judge = local.LocalGroupJudge(path, config)
        BenchJudging(path, manifest, config, judge, lambda _: None).run()
        return read_verdicts(path, entries)

    return judging


def test_what_is_at_work_when_the_time_is_over_is_not_recorded(judging):
    found = judging(GivenEvaluator({"a = 1": WRONG}, takes_s=0.6), "a = 1", budget="0.2s")
    assert found == []


def test_trouble_in_the_middle_keeps_what_was_judged_and_is_tried_again(judging):
    gone = InfrastructureError("the driver is gone")
    verdicts = {"a = 1": WRONG, "a = 2": gone, "a = 3": WRONG}
    sources = list(verdicts)
    first = judging(GivenEvaluator(verdicts), *sources)
    assert [one.evaluation.status for one in first] == ["wrong_output", *["infra_error"] * 2]
    assert "the driver is gone" in first[1].evaluation.reason
    evaluator = GivenEvaluator(dict.fromkeys(sources, WRONG))
    again = judging(evaluator, *sources)
    assert [one.evaluation.status for one in again] == ["wrong_output"] * 3
    assert len(evaluator.languages) == 2


@pytest.mark.parametrize("adapted", [True, False])
def test_a_function_that_nobody_can_call_is_not_judged(judging, adapted):
    lost = Failed("runtime_error", f"TypeError: {NO_COUNTERPART} the argument 'theta'")
    [found] = judging(GivenEvaluator({"a = 1": lost}), "a = 1", adapted=adapted)
    assert (found.evaluation is None) == adapted
    assert bool(found.unjudged) == adapted


def test_the_verdict_stands_where_a_looser_class_cannot_judge_the_problem(judging):
    rounded = Failed("wrong_output", "output is off by 0.02", error=0.02)
    sources = {"a = 1": rounded, "a = 2": WRONG}
    refusing = GivenEvaluator({}, refuses=BadProblemError("its bound is missed by PyTorch itself"))
    found = judging(GivenEvaluator(sources), *sources, looser=refusing)
    reasons = {one.entry.answer: (one.precision, one.evaluation.reason) for one in found}
    assert reasons == {
        "0.py": (
            "fp32",
            "output is off by 0.02; cannot be judged in class half: "
            "its bound is missed by PyTorch itself",
        ),
        "1.py": ("fp32", WRONG.reason),
    }
    assert not any(one.unjudged for one in found)


def test_the_language_of_an_answer_on_a_gpu_is_seen_in_its_source(judging):
    built = "from torch.utils.cpp_extension import load_inline"
    evaluator = GivenEvaluator({built: WRONG, "import triton": WRONG})
    found = judging(evaluator, built, "import triton", device="cuda:0")
    assert [one.language for one in found] == ["cuda", "triton"]
    assert sorted(evaluator.languages) == ["cuda", "triton"]


def test_the_benchmark_tests_every_answer_once_whatever_we_find(judging, monkeypatch):
    seen = []

    class Told(local.OwnTests):
        def tested(self, entry, server, device):
            seen.append(entry.key)
            return replace(entry, theirs=TheirVerdict("called", right=True, called=True))

    monkeypatch.setattr(local, "OwnTests", Told)
    verdicts = {"a = 1": WRONG, "a = 2": BadProblemError("it is random")}
    found = judging(GivenEvaluator(verdicts), *verdicts)
    assert [one.entry.theirs.right for one in found] == [True, True]
    assert [bool(one.evaluation) for one in found] == [True, False]
    assert seen == ["1/0", "1/1"]
