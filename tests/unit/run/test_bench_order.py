"""Collecting answers: what is judged, and what is left out with which reason."""

import json

import pytest

from adaexplore.core.bench import BenchVerdict, TheirVerdict
from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.benchmark import Answer, BenchmarkTask, OwnTest
from adaexplore.core.settings.config import Config
from adaexplore.problems.benchmarks import benchmark_named, kernelbench
from adaexplore.problems.benchmarks.selection import TaskSelection
from adaexplore.run.bench.order import BenchOrder, collect
from adaexplore.store.bench import read_bench

ANSWER = "class ModelNew: ...\n"


@pytest.fixture
def collected(tmp_path, monkeypatch):
    """Collect answers at these places to a checkout of four tasks."""
    monkeypatch.setattr(kernelbench, "find_spec", lambda _: None)
    tasks = ("level1/1_a.py", "level1/2_b.py", "level2/1_c.py", "level4/1_d.py")

    def put(folder, names, text):
        for name in names:
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"import transformers\n{text}" if "level4" in name else text)

    def collected(*places, others=(), **selection):
        put("kb", tasks, "class Model: ...\n")
        put("answers", places, ANSWER)
        order = BenchOrder(
            benchmark_named("kernelbench"),
            {"ours": tmp_path / "answers", **dict(others)},
            tmp_path / "kb",
            TaskSelection(**selection),
        )
        collect(order, tmp_path / "run", Config(), "adaexplore bench")
        return read_bench(tmp_path / "run")

    return collected


def test_answers_without_a_task_are_left_out_with_the_reason(collected):
    manifest = collected("level1/1.py", "level4/1.py", "level3/7.py")
    assert [entry.key for entry in manifest.entries] == ["1/1"]
    assert [(one.key, one.reason.partition(",")[0]) for one in manifest.left_out] == [
        ("3/7", "no task of the checkout has its key"),
        ("4/1", "needs the package transformers"),
    ]


def test_a_list_of_problems_need_not_be_answered_whole(collected):
    manifest = collected("level1/1.py", "level2/1.py", lists=("1 1-2",))
    assert [entry.key for entry in manifest.entries] == ["1/1"]


def test_a_selection_without_an_answer_is_refused(collected):
    with pytest.raises(BadInputError, match="none to what is chosen; it has level 1"):
        collected("level1/1.py", categories=("level 2",))


def test_a_category_may_be_one_that_other_answers_alone_have(collected, tmp_path):
    own = tmp_path / "own"
    for name in ("tasks/level_5/1_e.py", "level_5/task_1.py"):
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(ANSWER)
    manifest = collected("level2/1.py", others=[("own", own)], categories=("2", "5"))
    assert [(entry.collection, entry.key) for entry in manifest.entries] == [
        ("ours", "2/1"),
        ("own", "5/1"),
    ]


def test_answers_to_what_is_left_out_alone_are_refused_with_the_reason(collected):
    with pytest.raises(BadInputError, match="4/1 needs the package transformers"):
        collected("level4/1.py")


def test_the_verdict_of_a_collection_is_kept_with_the_answer(collected, tmp_path):
    results = {"1": [{"sample_id": 0, "compiled": True, "correctness": True, "runtime": 0.5}]}
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / "eval_results.json").write_text(json.dumps(results))
    [entry] = collected("level_1_problem_1_sample_0_kernel.py").entries
    assert entry.theirs == TheirVerdict("correct", True, 500.0)
    verdict = BenchVerdict(entry, "fp32", "cpp", "cpu", None, "unclear")
    assert BenchVerdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict


class Unread:
    """A benchmark whose answers cannot be judged, but for those to these tasks."""

    name = "unread"

    def __init__(self, readable):
        self._readable = readable

    def tasks(self, data):
        return [BenchmarkTask(key, "all", f"{key}.py", "class Model: ...") for key in "ab"]

    def excluded(self, data):
        return []

    def answers(self, folder, data):
        reasons = {key: "" if key in self._readable else "it has several files" for key in "ab"}
        return [Answer(key, key, ANSWER, unreadable=why) for key, why in reasons.items()]


def collect_unread(folder, readable):
    order = BenchOrder(Unread(readable), {"ours": folder}, folder)
    collect(order, folder / "run", Config(), "adaexplore bench")
    return read_bench(folder / "run")


def test_an_answer_that_cannot_be_judged_is_left_out_with_the_reason(tmp_path):
    manifest = collect_unread(tmp_path, "a")
    assert [entry.key for entry in manifest.entries] == ["a"]
    assert [(one.key, one.reason) for one in manifest.left_out] == [("b", "it has several files")]


def test_a_folder_of_answers_that_cannot_be_judged_is_refused(tmp_path):
    with pytest.raises(BadInputError, match="none of 2 answers can be judged; a: it has several"):
        collect_unread(tmp_path, "")


class Demanding(Unread):
    """A benchmark whose task has files beside it, or whose answer has a test of its own."""

    def __init__(self, files=None, test=None):
        self._files, self._test = files or {}, test

    def tasks(self, data):
        return [BenchmarkTask("a", "all", "a.py", "class Model: ...", self._files)]

    def answers(self, folder, data):
        return [Answer("a", "a", ANSWER, test=self._test)]


@pytest.mark.parametrize(
    ("benchmark", "complaint"),
    [
        (Demanding(files={"sizes.py": ""}), "a is not one Python file"),
        (Demanding(test=OwnTest("", "")), "own test of the answer to a runs on the machine itself"),
    ],
)
def test_a_service_gets_no_problem_of_several_files_and_runs_no_test(
    tmp_path, benchmark, complaint
):
    order = BenchOrder(benchmark, {"ours": tmp_path}, tmp_path, server="http://there")
    with pytest.raises(BadInputError, match=complaint):
        collect(order, tmp_path / "run", Config(), "adaexplore bench")
    assert not (tmp_path / "run").exists()
