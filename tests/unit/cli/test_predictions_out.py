"""Winners and judged answers as lines of predictions, through the command."""

import json

import pytest

from adaexplore.core.bench import BenchEntry, BenchVerdict
from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Failed, Passed, Timing
from adaexplore.run.campaign.file import CampaignEntry, CampaignPlan
from adaexplore.store import RunRecord, create_run
from adaexplore.store.bench import BenchManifest, append_verdict, create_bench
from adaexplore.store.campaign import create_campaign

TASK = """
import torch

def twice(x, by=2):
    return by * x

class Model(torch.nn.Module):
    def forward(self, x):
        return twice(x)

def get_inputs():
    return [torch.randn(3)]
"""
WINNER = (
    "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
)


def passed(time_us):
    baselines, over = {"eager": 60.0}, 60 / time_us
    timing = Timing(time_us, (time_us, time_us), baselines, over, (over, over), over, 9)
    return Passed("fp32", 1e-7, timing)


@pytest.fixture
def make_run(tmp_path):
    """Make a function that stores a run of a problem with these evaluations."""

    def make_run(source, *evaluations, path="run"):
        problem = Problem("twice", source, "cpp", "cpu")
        record = RunRecord(problem, Config(), ("manual",), Environment(), "command", 1.5e9)
        with create_run(tmp_path / path, record) as directory:
            for i, evaluation in enumerate(evaluations, 1):
                proposal = Proposal(Candidate(WINNER, "cpp"), "manual", "")
                directory.store.record(Node(i, 0, "large", proposal, evaluation, 1.6e9))
        return tmp_path / path

    return make_run


@pytest.fixture
def make_bench(tmp_path):
    """Make a function that stores verdicts on answers: key, place and evaluation."""

    def make_bench(*rows):
        entries = [
            BenchEntry("ours", key, "Math", place, "problems/p.py", f"answers/{place}", place)
            for key, place, _ in rows
        ]
        files = {"problems/p.py": TASK} | {one.answer: f"# {one.place}\n" for one in entries}
        path = tmp_path / "bench"
        create_bench(path, BenchManifest("kernelbenchx", "c", {}, False, tuple(entries)), files)
        for entry, (_, _, found) in zip(entries, rows, strict=True):
            append_verdict(path, BenchVerdict(entry, "fp32", "cpp", "cpu", found, "unclear"))
        return path

    return make_bench


def rows_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_the_winner_of_a_run_is_the_function_of_its_task(adaexplore, make_run, tmp_path):
    out = tmp_path / "out.jsonl"
    done = adaexplore("export", make_run(TASK, passed(20.0)), "--predictions", out)
    assert done.code == 0, done
    [row] = rows_of(out)
    assert row["file"] == "twice.py"
    assert row["predict"].startswith(WINNER.strip())
    assert "def twice(x, by=2):" in row["predict"]
    assert f"{out}: 1 kernels" in done.out


def test_a_run_without_a_winner_or_a_function_is_refused(adaexplore, make_run, tmp_path):
    done = adaexplore("export", make_run(TASK, Failed("timeout", "")), "--predictions", "o.jsonl")
    assert (done.code, "no correct kernel" in done.err) == (2, True)


def test_a_problem_that_is_no_function_is_refused(adaexplore, make_run, tmp_path):
    run = make_run("class Model: ...", passed(20.0))
    done = adaexplore("export", run, "--predictions", tmp_path / "o.jsonl")
    assert (done.code, "twice cannot be a function" in done.err) == (2, True)


def test_the_winners_of_a_campaign_are_named_with_their_categories(adaexplore, make_run, tmp_path):
    names = {"found": "Math", "plain": "", "lost": "Math", "open": "Math"}
    entries = tuple(CampaignEntry(one, "p.py", Config(), names[one]) for one in names)
    create_campaign(tmp_path / "all", {"order": CampaignPlan(Config(), entries).to_json()})
    for name in ("found", "plain"):
        make_run(TASK, passed(20.0), path=f"all/{name}")
    make_run(TASK, Failed("timeout", ""), path="all/lost")
    out = tmp_path / "out.jsonl"
    done = adaexplore("export", tmp_path / "all", "--predictions", out)
    assert [row["file"] for row in rows_of(out)] == ["Math/twice.py", "twice.py"]
    assert "left out: open: not searched" in done.out
    assert "has no correct kernel yet" in done.out


def test_the_fastest_right_answer_of_each_task_is_written_as_it_was(
    adaexplore, make_bench, tmp_path
):
    path = make_bench(
        ("Math/twice", "slow.py", passed(30.0)),
        ("Math/twice", "fast.py", passed(10.0)),
        ("Math/abs", "only.py", passed(20.0)),
        ("Math/abs", "wrong.py", Failed("wrong_output", "")),
        ("Math/abs", "lost.py", None),
    )
    out = tmp_path / "out.jsonl"
    done = adaexplore("export", path, "--predictions", out)
    assert rows_of(out) == [
        {"predict": "# only.py\n", "file": "Math/abs.py"},
        {"predict": "# fast.py\n", "file": "Math/twice.py"},
    ]
    for line in (
        "left out: slow.py: another answer to its task is faster",
        "left out: wrong.py: wrong_output",
        "left out: lost.py: not judged: unclear",
    ):
        assert line in done.out


@pytest.fixture
def checkout(tmp_path):
    """A clone of TritonBench with two tasks, whose prompts are in another order."""
    told = {"other": "Does something else.", "twice": "Doubles a tensor."}
    rows = [{"file": f"{n}.py", "difficulty": 1, "description": t} for n, t in told.items()]
    prompts = [
        {"instruction": f"Functional Description: {told[n]}\nWrapper", "input": "", "output": ""}
        for n in ("twice", "other")
    ]
    data = tmp_path / "clone" / "data"
    (data / "TritonBench_T_v1").mkdir(parents=True)
    (tmp_path / "clone" / "performance_metrics" / "perf_T").mkdir(parents=True)
    for name in told:
        (data / "TritonBench_T_v1" / f"{name}.py").write_text("")
    (data / "TritonBench_T_v1.jsonl").write_text(json.dumps(rows))
    (data / "TritonBench_T_comp_alpac_v1.json").write_text(json.dumps(prompts))
    return tmp_path / "clone"


def test_every_prompt_of_tritonbench_gets_a_line(adaexplore, make_run, checkout, tmp_path):
    out, run = tmp_path / "out.jsonl", make_run(TASK, passed(20.0))
    asked = ("--for", "tritonbench-t", "--data", checkout)
    done = adaexplore("export", run, "--predictions", out, *asked)
    assert (done.code, f"{out}: 1 kernels" in done.out) == (0, True), done
    twice, other = rows_of(out)
    assert next(iter(twice)) == "instruction"  # their scripts take the first entry for the prompt
    assert "Doubles a tensor." in twice["instruction"]
    assert "def twice(x, by=2):" in twice["predict"]
    assert "no kernel for this task" in other["predict"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--for", "tritonbench-t"), "go together"),
        (("--for", "kernelbench", "--data", "."), "tritonbench-t and tritonbench-g"),
    ],
)
def test_prompts_need_a_benchmark_that_has_them(adaexplore, make_run, tmp_path, given, said):
    run = make_run(TASK, passed(20.0))
    done = adaexplore("export", run, "--predictions", tmp_path / "o.jsonl", *given)
    assert (done.code, said in done.err) == (2, True)
