"""bench: answers in folders, judged on real small problems."""

import json
import shutil

import pytest
from test_search_commands import Renaming

from adaexplore.problems.benchmarks import kernelbench
from adaexplore.run.bench import place
from adaexplore.run.session import Session

LINEAR = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(64, 64)]
"""
ROUNDED = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return self.linear(x).float()
"""


@pytest.fixture
def put(tmp_path):
    """Make a function that writes files below `tmp_path`, folders included."""

    def put(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return put


@pytest.fixture
def proposer(monkeypatch):
    monkeypatch.setattr(Session, "compiler", lambda *_: Renaming())


@pytest.fixture
def benchmark(put, problem, candidate, tmp_path):
    """A checkout with two problems, and two collections: right and wrong; with its own problem."""
    source, right = problem.read_text(), candidate.read_text()
    put("kb/KernelBench/level1/1_relu.py", source)
    put("kb/KernelBench/level2/2_other.py", source.replace("64, 64", "32, 96"))
    put("first/level_1/problem_1.py", right)
    put("first/level_2/problem_2.py", right.replace("+ 1", "* 0"))
    put("own/unpacked/1/7/ref_code.py", source.replace("torch.relu(x)", "torch.tanh(x)"))
    put("own/unpacked/1/7/custom_code.py", right.replace("x.clamp(min=0)", "torch.tanh(x)"))
    folders = ("--answers", tmp_path / "first", "--answers", f"theirs={tmp_path / 'own'}")
    return ("bench", "kernelbench", "--data", tmp_path / "kb", *folders, "--device", "cpu")


def verdicts(run):
    lines = map(json.loads, (run / "verdicts.jsonl").read_text().splitlines())
    return [(v["entry"]["collection"], v["entry"]["key"], v["evaluation"]["status"]) for v in lines]


ALL = [("first", "1/1", "passed"), ("first", "2/2", "wrong_output"), ("theirs", "1/7", "passed")]


def test_a_benchmark_from_beginning_to_end(adaexplore, benchmark, tmp_path):
    run, out = tmp_path / "run", tmp_path / "out.json"
    result = adaexplore(*benchmark, "--run", run, "--json", out)
    assert result.code == 0, result
    assert sorted(verdicts(run)) == ALL
    assert "3/3 " in result.err
    rows = [line.split()[:7] for line in result.out.splitlines()]
    assert ["first", "level", "1", "1", "1", "1"] in [row[:6] for row in rows]
    assert ["first", "all", "2", "2", "1"] in [row[:5] for row in rows]
    assert ["theirs", "level", "1", "1", "1", "1"] in [row[:6] for row in rows]
    page = (run / "index.html").read_text()
    assert page.count("<circle") == 4  # two right answers, in a wide and a narrow chart
    assert "output is off by" in page
    data = json.loads(out.read_text())
    [first, _] = [group for group in data["groups"] if not group["category"]]
    assert (first["judged"], first["right"], first["statuses"]["wrong_output"]) == (2, 1, 1)
    assert "clamp" not in out.read_text()  # verdicts, and nobody's code

    lines = (run / "verdicts.jsonl").read_text().splitlines()
    trouble = [json.loads(line) for line in lines if '"collection": "theirs"' in line]
    trouble[0]["evaluation"] |= {"status": "infra_error", "reason": "the driver is gone"}
    cut = lines[-1][:40]  # as a kill leaves it
    (run / "verdicts.jsonl").write_text("\n".join([*lines, json.dumps(trouble[0]), cut]))
    again = adaexplore("bench", "--resume", run)
    assert again.code == 0, again
    assert sorted(verdicts(run)[4:]) == ALL[2:]  # only what was no verdict
    assert adaexplore("bench", "--resume", run).code == 0
    assert len(verdicts(run)) == 5

    (run / "verdicts.jsonl").write_text(json.dumps(trouble[0]) + "\n")
    other = adaexplore("bench", "--resume", run, "--precision", "half")
    assert "goes on as it began" in other.complaint


def test_a_sample_is_drawn_and_collections_take_turns(adaexplore, benchmark, put, tmp_path):
    for number in range(2, 12):
        put(f"own/unpacked/1/{number}/ref_code.py", "x = 1")
        put(f"own/unpacked/1/{number}/custom_code.py", f"x = {number}")
    picked = []
    for seed in (3, 3, 4):
        run = tmp_path / f"run-{len(picked)}"
        words = ("--sample", 2, "--seed", seed, "--collect-only", "--run", run)
        assert f"bench --resume {run}" in adaexplore(*benchmark, *words).out
        entries = json.loads((run / "bench.json").read_text())["entries"]
        assert [e["collection"] for e in entries] == ["first", "theirs", "first", "theirs"]
        assert all((run / e[part]).is_file() for e in entries for part in ("problem", "answer"))
        assert not (run / "verdicts.jsonl").exists()
        picked.append([e["key"] for e in entries])
    assert picked[0] == picked[1] != picked[2]
    run = tmp_path / "level"
    adaexplore(*benchmark, "--level", 1, "--collect-only", "--run", run)
    entries = json.loads((run / "bench.json").read_text())["entries"]
    assert {e["category"] for e in entries} == {"level 1"}


@pytest.mark.slow
def test_an_answer_wrong_by_its_rounding_may_pass_in_a_looser_class(adaexplore, put, tmp_path):
    put("kb/level1/1_linear.py", LINEAR)
    put("answers/level1/1.py", ROUNDED)
    words = ("bench", "kernelbench", "--data", tmp_path / "kb", "--answers", tmp_path / "answers")
    strict, looser = tmp_path / "strict", tmp_path / "looser"
    assert adaexplore(*words, "--device", "cpu", "--run", strict).code == 0
    assert verdicts(strict) == [("answers", "1/1", "wrong_output")]
    assert adaexplore(*words, "--device", "cpu", "--or-looser", "--run", looser).code == 0
    assert verdicts(looser) == [("answers", "1/1", "passed")]
    [line] = (looser / "verdicts.jsonl").read_text().splitlines()
    assert (json.loads(line)["precision"], json.loads(line)["evaluation"]["precision"]) == (
        "half",
        "half",
    )


def test_answers_to_a_broken_problem_are_not_judged(adaexplore, put, candidate, tmp_path):
    put("kb/level1/1_nan.py", LINEAR.replace("self.linear(x)", "x * float('nan')"))
    put("answers/level1/1.py", candidate.read_text())
    words = ("--answers", tmp_path / "answers", "--device", "cpu", "--run", tmp_path / "run")
    result = adaexplore("bench", "kernelbench", "--data", tmp_path / "kb", *words)
    assert result.code == 0
    assert "answers: 1 cannot be judged of 1" in result.out


def test_nothing_begins_after_the_time_is_over(adaexplore, benchmark, tmp_path):
    run = tmp_path / "run"
    result = adaexplore(*benchmark, "--budget", "0.001s", "--run", run)
    assert result.code == 0
    assert not (run / "verdicts.jsonl").exists()
    assert f"bench --resume {run}" in result.out
    assert "first: 2 not judged yet of 2" in result.out


def row_of(result, first):
    [row] = [line for line in result.out.splitlines() if line.startswith(f"{first} ")]
    return " ".join(row.split())


def test_the_list_says_what_is_there_what_is_missing_and_how_to_get_it(
    adaexplore, benchmark, put, tmp_path, monkeypatch
):
    for module in (place, kernelbench):
        monkeypatch.setattr(module, "find_spec", lambda _: None)
    monkeypatch.chdir(tmp_path)
    row = row_of(adaexplore("bench", "list"), "kernelbench")
    assert "not found; give it by --data DIR" in row
    assert "git clone https://github.com/ScalingIntelligence/KernelBench" in row
    put("benchmarks/KernelBench/level1/1_relu.py", LINEAR)
    put("benchmarks/KernelBench/level4/1_gpt.py", f"import transformers\n{LINEAR}")
    row = row_of(adaexplore("bench", "list"), "kernelbench")
    assert row == (
        "kernelbench 1, 1 left out benchmarks/KernelBench transformers (level 4) "
        "pip install transformers"
    )
    assert " kb/KernelBench " in row_of(adaexplore("bench", "list", "--data", "kb"), "kernelbench")
    monkeypatch.setattr(place, "find_spec", lambda name: name)
    row = row_of(adaexplore("bench", "list"), "kernelbench")
    assert row.endswith("benchmarks/KernelBench nothing")


def test_tasks_are_counted_and_those_left_out_are_named(adaexplore, put, tmp_path, monkeypatch):
    monkeypatch.setattr(kernelbench, "find_spec", lambda _: None)
    for number in (1, 2, 3):
        put(f"kb/level1/{number}_relu.py", LINEAR)
        put(f"kb/level4/{number}_gpt.py", f"from transformers import GPT\n{LINEAR}")
    words = ("bench", "kernelbench", "--data", tmp_path / "kb", "--tasks")
    result = adaexplore(*words, "--json", tmp_path / "out.json")
    assert [row_of(result, first) for first in ("level 1", "level 4", "all")] == [
        "level 1 3 0",
        "level 4 0 3",
        "all 3 3",
    ]
    assert "left out, 3: needs the package transformers" in result.out
    assert result.out.rstrip().endswith(": 4/1, 4/2, 4/3")
    data = json.loads((tmp_path / "out.json").read_text())
    assert [one["key"] for one in data["excluded"]] == ["4/1", "4/2", "4/3"]
    assert row_of(adaexplore(*words, "--problems", "1 2-9"), "all") == "all 2 0"
    assert "4/1, like all that is chosen: needs" in adaexplore(*words, "--level", 4).complaint


def test_tasks_that_do_not_load_are_left_out_where_each_is_loaded(adaexplore, put, tmp_path):
    put("kb/level1/1_relu.py", LINEAR)
    put("kb/level1/2_lost.py", LINEAR.replace("class Model", "class Module"))
    words = ("bench", "kernelbench", "--data", tmp_path / "kb", "--tasks", "--device", "cpu")
    assert row_of(adaexplore(*words), "all") == "all 2 0"
    result = adaexplore(*words, "--load")
    assert row_of(result, "all") == "all 1 1"
    assert "defines no Model, but Module at line 6" in result.out
    assert result.out.rstrip().endswith(": 1/2")


@pytest.mark.usefixtures("proposer")
def test_without_answers_the_tasks_are_searched(adaexplore, benchmark, put, tmp_path, monkeypatch):
    monkeypatch.setattr(kernelbench, "find_spec", lambda _: None)
    put("kb/KernelBench/level4/1_gpt.py", f"from transformers import GPT\n{LINEAR}")
    run, out = tmp_path / "night", tmp_path / "out.json"
    words = ("--data", tmp_path / "kb", "--device", "cpu", "--set", "confirm=false")
    words += ("--steps", 1, "--run", run, "--category", "level 1", "--level", 4)
    result = adaexplore("bench", "kernelbench", *words, "--collect-only")
    assert f"bench --resume {run}" in result.out
    assert (run / "problems" / "kernelbench" / "level_1" / "1_relu.py").is_file()
    shutil.rmtree(tmp_path / "kb")
    result = adaexplore("bench", "--resume", run, "--json", out)
    assert result.code == 0, result
    assert "1 of 1 correct" in result.out
    assert row_of(result, "level 1").startswith("level 1 1 1 1 ")
    assert row_of(result, "level 4").startswith("level 4 1 0 0 ")
    page = (run / "index.html").read_text()
    assert page.count("<circle") == 2  # in a wide and a narrow chart
    assert "4/1" in page
    data = json.loads(out.read_text())
    assert [(row["category"], row["right"]) for row in data["categories"]] == [
        ("level 1", 1),
        ("level 4", 0),
        ("", 1),
    ]
    handed = adaexplore("export", run, "--kernelbench", tmp_path / "runs")
    assert "1 results" in handed.out
    results = json.loads((tmp_path / "runs/night_level1/eval_results.json").read_text())
    assert [row["correctness"] for row in results["1"]] == [True]
    kernel = tmp_path / "runs/night_level1/level_1_problem_1_sample_0_kernel.py"
    assert "class ModelNew" in kernel.read_text()
    again = adaexplore("resume", run, "--budget", "1steps")
    assert again.code == 0, again


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("kernelbank", "--answers", "."), "no such benchmark; known: kernelbench"),
        (("kernelbench",), "neither in KernelBench/ nor in benchmarks/KernelBench/; give it by"),
        (("kernelbench", "--data", "kb", "--or-looser"), "--or-looser is for answers"),
        (("kernelbench", "--data", "kb", "--problems", "2 77"), "77 is no problem in 2"),
        (("kernelbench", "--data", "kb", "--category", "leve 1"), "known: level 1"),
        (("kernelbench", "--answers", "first", "--steps", "3"), "--steps: answers are judged"),
        (("kernelbench", "--answers", "there/is/none"), "there/is/none: no such folder"),
        (("kernelbench", "--answers", "empty"), "no answer to kernelbench in it"),
        (("kernelbench", "--answers", "a=empty", "--answers", "a=first"), "a is there twice"),
        (("kernelbench", "--answers", "first"), "none of their problems; give the"),
        (("kernelbench", "--data", "empty", "--answers", "first"), "no file level<L>/<number>_"),
        (("kernelbench", "--data", "kb", "--answers", "first", "--level", "4"), "level 1, level 2"),
        (("kernelbench", "--data", "kb", "--answers", "first", "--budget", "2usd"), "time alone"),
        (("--resume", "empty"), "name the folder that `adaexplore bench --run` made"),
        (("kernelbench", "--resume", "empty"), "--resume continues a folder as it began"),
    ],
)
@pytest.mark.usefixtures("benchmark")
def test_bad_input(adaexplore, tmp_path, monkeypatch, words, complaint):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    assert complaint in adaexplore("bench", *words, "--device", "cpu").complaint
