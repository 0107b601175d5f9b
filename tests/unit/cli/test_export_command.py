"""The winner of a run, handed to a benchmark from the command line."""

import json
from dataclasses import replace

import pytest
import small_dataset
from small_dataset import KERNEL, LONG, NAME, SHORT, STORED

from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem, Workload
from adaexplore.core.proposal import Proposal
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Failed, Passed, Timing
from adaexplore.core.verdict.labels import WAITS_FOR_BLOCKS
from adaexplore.store import Confirmation, RunRecord, create_run


def passed(time_us):
    baselines, over = {"eager": 60.0}, 60 / time_us
    timing = Timing(time_us, (time_us, time_us), baselines, over, (over, over), over, 9)
    return Passed("fp32", 1e-7, timing)


FIRST, CONFIRMED = passed(20.0), passed(24.0)


@pytest.fixture
def dataset(tmp_path):
    return small_dataset.write_flashinfer(tmp_path / "dataset")


@pytest.fixture
def make_run(tmp_path):
    """Make a function that stores a run with these evaluations, confirmed by `confirmations`."""

    def make_run(*evaluations, confirmations=()):
        problem = Problem(NAME, "class Model: ...", "triton", "cuda:0", workloads=JUDGED)
        environment = Environment(gpu="NVIDIA H200")
        record = RunRecord(problem, Config(), ("manual",), environment, "command", 1.5e9)
        path = tmp_path / "run"
        with create_run(path, record) as directory:
            for i, evaluation in enumerate(evaluations, 1):
                candidate = Candidate(f"{KERNEL}# step {i}\n", "triton")
                proposal = Proposal(candidate, "manual", "")
                directory.store.record(Node(i, 0, "large", proposal, evaluation, 1.6e9))
            for node_id, evaluation in confirmations:
                directory.store.confirm(Confirmation(node_id, evaluation, 1.7e9))
        return path

    return make_run


JUDGED = (Workload(SHORT), Workload(LONG, STORED, timed=False))


def test_a_winner_becomes_a_solution_with_traces(adaexplore, make_run, dataset, tmp_path):
    run = make_run(Failed("timeout", ""), FIRST, confirmations=[(2, CONFIRMED)])
    out = tmp_path / "out"
    done = adaexplore("export", run, "--flashinfer", out, "--dataset", dataset)
    assert done.code == 0, done
    lines = done.out.splitlines()
    solution = json.loads(next(out.rglob("solutions/**/*.json")).read_text())
    [trace] = map(json.loads, next(out.rglob("traces/**/*.jsonl")).read_text().splitlines())
    assert lines[0].endswith(f"{solution['name']}.json")
    assert "traces: 1 of 2 workloads" in lines
    assert f"  none for {LONG}: the kernel is right on it, and was not timed" in done.out
    assert "1 file of tensors" in done.out
    assert solution["sources"][1]["content"] == f"{KERNEL}# step 2\n"
    assert solution["description"].startswith("2.50× like-for-like speedup")
    found = trace["evaluation"]
    assert found["performance"]["latency_ms"] == pytest.approx(0.024)  # that of the confirmation
    assert found["timestamp"].startswith("2023-11-14")


def test_the_folder_of_the_dataset_needs_no_other(adaexplore, make_run, dataset):
    done = adaexplore("export", make_run(FIRST), "--flashinfer", dataset)
    assert done.code == 0, done
    assert len(list(dataset.rglob("*.json"))) == 2


def test_a_winner_becomes_a_solution_of_sol_execbench(adaexplore, make_run, tmp_path):
    tasks = small_dataset.write_sol(tmp_path / "tasks")
    done = adaexplore("export", make_run(FIRST), "--sol", tasks)
    assert done.code == 0, done
    assert (tasks / NAME / "solution.json").exists()
    assert len((tasks / NAME / "traces.jsonl").read_text().splitlines()) == 1
    assert adaexplore("export", tmp_path / "run", "--sol", tasks / NAME).code == 0


def test_a_kernel_is_judged_and_handed_over(adaexplore, dataset, file, tmp_path):
    kernel, out = file("kernel.py", KERNEL), tmp_path / "out"
    words = ("--definition", NAME, "--workloads", "all", "--timed", "7c9e", "--device", "cpu")
    done = adaexplore("evaluate", dataset, kernel, *words, "--json", "--flashinfer", out)
    assert done.code == 0, done
    verdict = json.loads(done.out)
    assert "traces: 1 of 2 workloads" in done.err
    assert f"none for {LONG}: the run drew inputs in place of its file" in done.err
    [trace] = map(json.loads, next(out.rglob("traces/**/*.jsonl")).read_text().splitlines())
    found = trace["evaluation"]
    assert found["status"] == "PASSED"
    assert found["performance"]["latency_ms"] == pytest.approx(verdict["time_us"] / 1e3)
    assert found["environment"]["libs"]["torch"]
    labels = found["correctness"]["extra"]["adaexplore"]["problem_labels"]
    assert labels == verdict["problem_labels"]
    assert "synthesized-data" in labels


@pytest.mark.parametrize(
    ("evaluations", "confirmations", "complaint"),
    [
        ([Failed("timeout", "")], (), "run has no correct kernel yet"),
        (
            [FIRST],
            [(1, Failed("wrong_output", "off by one"))],
            "run claims no kernel: step 1 failed its confirmation: off by one",
        ),
        (
            [replace(FIRST, labels=(WAITS_FOR_BLOCKS,))],
            (),
            "run claims no kernel: step 1 may wait for other blocks",
        ),
    ],
)
def test_what_a_run_does_not_claim_is_not_handed_over(
    adaexplore, make_run, dataset, evaluations, confirmations, complaint
):
    run = make_run(*evaluations, confirmations=confirmations)
    assert complaint in adaexplore("export", run, "--flashinfer", dataset).complaint
    assert not (dataset / "solutions").exists()


@pytest.mark.parametrize(
    ("words", "target"),
    [
        (["--license", "MIT"], "--parquet"),
        (["--form", "rl"], "--parquet"),
        (["--reward", "log"], "--parquet"),
        (["--exclude", "folder"], "--parquet"),
        (["--with-benchmarks"], "--parquet"),
        (["--for", "tritonbench-t", "--data", "folder"], "--predictions"),
    ],
)
def test_an_option_of_another_export_is_not_ignored(adaexplore, make_run, tmp_path, words, target):
    output = tmp_path / "run.json.xz"
    line = adaexplore("export", make_run(FIRST), "-o", output, *words).complaint
    assert line == f"adaexplore: {words[0]} goes with {target}"
    assert not output.exists()


def test_the_missing_part_of_a_command_is_named(adaexplore, make_run, dataset, tmp_path):
    run, out = make_run(FIRST), tmp_path / "out"
    assert "give one of -o, --flashinfer, --sol" in adaexplore("export", run).complaint
    both = adaexplore("export", run, "--flashinfer", out, "--sol", out)
    assert "give one of" in both.complaint
    line = adaexplore("export", run, "--flashinfer", out).complaint
    assert "out holds no definitions; name the dataset with --dataset" in line
