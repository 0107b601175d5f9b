"""Kernels handed to FlashInfer-Bench and SOL-ExecBench: what their tools will find."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
import small_dataset
import torch
from small_dataset import KERNEL, LONG, NAME, SHORT, STORED

from adaexplore.core.environment import Environment
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Workload
from adaexplore.core.verdict.evaluation import (
    Estimate,
    Failed,
    Mismatch,
    Passed,
    Timing,
    WorkloadTiming,
)
from adaexplore.core.verdict.evaluation_json import evaluation_from_json
from adaexplore.problems.solutions.delivery import Delivery
from adaexplore.problems.solutions.flashinfer import deliver_to_flashinfer
from adaexplore.problems.solutions.sol import deliver_to_sol
from adaexplore.problems.solutions.specification import read_specification


def timing(time_us):
    interval = (0.9 * time_us, 1.1 * time_us)
    baselines = {"eager": 3 * time_us, "compile": 2 * time_us}
    return Timing(time_us, interval, baselines, 2.0, (1.9, 2.1), 3.0, 99)


TIMES = (WorkloadTiming(SHORT, timing(10.0)), WorkloadTiming(LONG, timing(40.0)))
PASSED = Passed("half", 1e-3, timing(20.0), workloads=TIMES, absolute_error=0.02)
MISMATCH = Mismatch("output 0", f"{LONG}/problem seed 3", 0.1, (0, 0), 1.0, 2.0, 0)


@pytest.fixture
def dataset(tmp_path):
    return small_dataset.write_flashinfer(tmp_path / "dataset")


@pytest.fixture
def delivery(dataset):
    return Delivery(
        read_specification(dataset, NAME),
        KERNEL,
        "triton",
        verdict=PASSED,
        judged=(Workload(SHORT), Workload(LONG, STORED)),
        environment=Environment(gpu="NVIDIA H200", torch="2.9.1"),
        at=1_700_000_000.0,
        labels={"overhead-bound": "launching takes 80 % of it"},
        about="2.00x faster than torch.compile",
    )


@pytest.fixture
def sol_delivery(delivery, tmp_path):
    tasks = small_dataset.write_sol(tmp_path / "tasks")
    return replace(delivery, specification=read_specification(tasks, NAME))


def solution_in(folder):
    [file] = (folder / "solutions").rglob("*.json")
    return json.loads(file.read_text())


def traces_in(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def flashinfer_traces(folder):
    return traces_in(folder / "traces" / "adaexplore" / "elementwise" / f"{NAME}.jsonl")


def write_sources(solution, folder):
    folder.mkdir()
    for source in solution["sources"]:
        (folder / source["path"]).write_text(source["content"])


def test_flashinfer_bench_imports_the_entry_as_part_of_a_package(delivery, tmp_path, monkeypatch):
    deliver_to_flashinfer(delivery, tmp_path / "out")
    solution = solution_in(tmp_path / "out")
    write_sources(solution, tmp_path / "fib_triton_package")
    monkeypatch.syspath_prepend(tmp_path)
    file, function = solution["spec"]["entry_point"].split("::")
    module = __import__(f"fib_triton_package.{file.removesuffix('.py')}", fromlist=[function])
    run = getattr(module, function)
    x, y = torch.randn(2, 2, 4)
    for _ in range(3):
        total, rows = run(0.5, x.requires_grad_(), y)
        torch.testing.assert_close(total, x + 0.5 * y)
        assert (rows.item(), total.requires_grad) == (2, False)
    run(0.5, x.detach().to("meta"), y.to("meta"))
    assert module.ModelNew.made == 2  # once on each device, with its constants there
    assert set(module._modules) == {torch.device("cpu"), torch.device("meta")}


def test_sol_execbench_imports_the_entry_from_the_folder(sol_delivery, tmp_path):
    deliver_to_sol(sol_delivery, tmp_path / "out")
    solution = json.loads((tmp_path / "out" / NAME / "solution.json").read_text())
    write_sources(solution, tmp_path / "staging")
    code = "import main, torch; print(main.run(2.0, torch.ones(1, 4), torch.ones(1, 4))[0].sum())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "staging", capture_output=True, text=True
    )
    assert done.stdout == "tensor(12.)\n", done.stderr


def test_a_mode_that_was_asked_for_is_that_of_the_entry(delivery, tmp_path):
    deliver_to_flashinfer(replace(delivery, mode="eval"), tmp_path / "out")
    assert "ModelNew().to(device).eval()" in solution_in(tmp_path / "out")["sources"][0]["content"]


@pytest.mark.parametrize(
    ("language", "theirs"), [("triton", "triton"), ("cuda", "python"), ("helion", "python")]
)
def test_the_solution_of_flashinfer_bench(delivery, tmp_path, language, theirs):
    deliver_to_flashinfer(replace(delivery, language=language), tmp_path / "out")
    solution = solution_in(tmp_path / "out")
    assert solution["definition"] == NAME
    assert solution["author"] == "adaexplore"
    assert solution["description"] == "2.00x faster than torch.compile"
    assert solution["spec"] == {
        "language": theirs,
        "target_hardware": ["NVIDIA H200"],
        "entry_point": "main.py::run",
        "dependencies": [],
        "destination_passing_style": False,
    }


def test_another_source_has_another_name(delivery, tmp_path):
    deliver_to_flashinfer(delivery, tmp_path / "out")
    deliver_to_flashinfer(delivery, tmp_path / "out")
    deliver_to_flashinfer(replace(delivery, source=KERNEL + "# 2\n"), tmp_path / "out")
    files = list((tmp_path / "out" / "solutions").rglob("*.json"))
    assert {json.loads(file.read_text())["name"] for file in files} == {f.stem for f in files}
    assert len(files) == 2
    assert len(flashinfer_traces(tmp_path / "out")) == 4  # two for each: earlier ones are replaced


def test_a_trace_for_each_workload_that_was_timed(delivery, tmp_path):
    done = deliver_to_flashinfer(delivery, tmp_path / "out")
    assert (done.traces, done.left_out) == (2, ())
    first, second = flashinfer_traces(tmp_path / "out")
    assert first["workload"] == small_dataset.workloads()[0]
    assert first["solution"] == solution_in(tmp_path / "out")["name"]
    found = second["evaluation"]
    assert found["status"] == "PASSED"
    assert found["performance"] == {
        "latency_ms": 0.04,
        "reference_latency_ms": pytest.approx(0.12),
        "speedup_factor": 3.0,
    }
    assert found["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert found["environment"]["hardware"] == "NVIDIA H200"
    assert found["environment"]["libs"]["torch"] == "2.9.1"
    correctness = found["correctness"]
    assert (correctness["max_relative_error"], correctness["max_absolute_error"]) == (1e-3, 0.02)
    ours = correctness["extra"]["adaexplore"]
    assert ours["problem_labels"] == {"overhead-bound": "launching takes 80 % of it"}
    assert evaluation_from_json(ours["verdict"]) == replace(
        PASSED, timing=TIMES[1].timing, workloads=()
    )


def test_the_one_timed_workload_has_the_time_of_the_verdict(delivery, tmp_path):
    judged = (Workload(SHORT, timed=False), Workload(LONG, STORED))
    one = replace(delivery, verdict=replace(PASSED, workloads=()), judged=judged)
    done = deliver_to_flashinfer(one, tmp_path / "out")
    [trace] = flashinfer_traces(tmp_path / "out")
    assert trace["workload"]["axes"] == {"rows": 300}
    assert trace["evaluation"]["performance"]["latency_ms"] == 0.02
    assert [(each.workload, each.reason) for each in done.left_out] == [
        (SHORT, "the kernel is right on it, and was not timed: a trace needs a time")
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"verdict": None}, "nobody judged the kernel"),
        ({"judged": ()}, "the run left it out"),
        (
            {
                "verdict": Passed("half", 1e-3, Estimate(5.0, "memory", "sm_90")),
                "judged": (Workload(SHORT),),
            },
            "the kernel's time was estimated, not measured: a trace needs a time",
        ),
        ({"verdict": Failed("infra_error", "gone")}, "the machine failed, not the kernel: gone"),
    ],
)
def test_a_workload_without_a_trace_has_a_reason(delivery, tmp_path, change, reason):
    done = deliver_to_flashinfer(replace(delivery, **change), tmp_path / "out")
    assert done.traces == 0
    assert (SHORT, reason) in [(each.workload, each.reason) for each in done.left_out]
    assert len(done.left_out) == 2
    assert not (tmp_path / "out" / "traces").exists()
    assert solution_in(tmp_path / "out")


def test_inputs_drawn_in_place_of_a_file_are_not_those_of_its_workload(delivery, tmp_path):
    drawn = replace(delivery, judged=(Workload(SHORT), Workload(LONG, "draw_inputs(rows=300)")))
    done = deliver_to_flashinfer(drawn, tmp_path / "out")
    assert done.traces == 1
    assert [(each.workload, each.reason) for each in done.left_out] == [
        (LONG, "the run drew inputs in place of its file blob/y.safetensors, which was not there")
    ]


@pytest.mark.parametrize(
    ("failed", "status", "sol_status"),
    [
        (Failed("compile_error", "why"), "COMPILE_ERROR", "COMPILE_ERROR"),
        (Failed("runtime_error", "why"), "RUNTIME_ERROR", "RUNTIME_ERROR"),
        (Failed("timeout", "why"), "TIMEOUT", "TIMEOUT"),
        (Failed("out_of_memory", "why"), "RUNTIME_ERROR", "RUNTIME_ERROR"),
        (Failed("rejected", "patches torch"), "RUNTIME_ERROR", "REWARD_HACK"),
        (Failed("wrong_output", "output 0 has dtype half; ..."), *["INCORRECT_DTYPE"] * 2),
        (Failed("wrong_output", "output 0 has shape (1,); ..."), *["INCORRECT_SHAPE"] * 2),
    ],
)
def test_a_failure_of_the_kernel_is_that_of_every_workload(
    delivery, sol_delivery, tmp_path, failed, status, sol_status
):
    deliver_to_flashinfer(replace(delivery, verdict=failed), tmp_path / "out")
    deliver_to_sol(replace(sol_delivery, verdict=failed), tmp_path / "sol")
    both = flashinfer_traces(tmp_path / "out"), traces_in(tmp_path / "sol" / NAME / "traces.jsonl")
    for traces, wanted in zip(both, (status, sol_status), strict=True):
        assert len(traces) == 2
        for found in (trace["evaluation"] for trace in traces):
            assert found["status"] == wanted
            assert failed.reason in found["log"]
            assert found["correctness"] is found["performance"] is None


@pytest.mark.parametrize(("error", "theirs"), [(0.009, 0.009), (float("inf"), "Infinity")])
def test_a_wrong_output_is_that_of_its_workload(delivery, tmp_path, error, theirs):
    failed = Failed(
        "wrong_output", "output 0 is off", error=error, feedback=MISMATCH, absolute_error=error
    )
    done = deliver_to_flashinfer(replace(delivery, verdict=failed), tmp_path / "out")
    [trace] = flashinfer_traces(tmp_path / "out")
    assert trace["workload"]["axes"] == {"rows": 300}
    found = trace["evaluation"]
    assert found["status"] == "INCORRECT_NUMERICAL"
    assert found["performance"] is None
    errors = ("max_relative_error", "max_absolute_error")
    assert [found["correctness"][name] for name in errors] == [theirs, theirs]
    assert [(each.workload, each.reason) for each in done.left_out] == [
        (SHORT, f"the judge stopped at another: {LONG}/problem seed 3")
    ]


@pytest.mark.parametrize(
    ("error", "nans", "theirs"),
    [
        (0.25, 0, (0.25, False, False)),
        (float("inf"), 0, (0.0, False, True)),
        (float("inf"), 3, (0.0, True, False)),
    ],
)
def test_sol_execbench_flags_what_is_no_number(sol_delivery, tmp_path, error, nans, theirs):
    mismatch = replace(MISMATCH, nans=nans)
    failed = Failed("wrong_output", "off", error=error, feedback=mismatch, absolute_error=error)
    deliver_to_sol(replace(sol_delivery, verdict=failed), tmp_path / "out")
    [trace] = traces_in(tmp_path / "out" / NAME / "traces.jsonl")
    found = trace["evaluation"]["correctness"]
    assert (found["max_absolute_error"], found["has_nan"], found["has_inf"]) == theirs


def test_an_error_that_nobody_recorded_is_none(delivery, sol_delivery, tmp_path):
    verdict = replace(PASSED, absolute_error=None)
    deliver_to_flashinfer(replace(delivery, verdict=verdict), tmp_path / "out")
    deliver_to_sol(replace(sol_delivery, verdict=verdict), tmp_path / "sol")
    found = flashinfer_traces(tmp_path / "out")[0]["evaluation"]["correctness"]
    assert found["max_absolute_error"] == "NaN"
    found = traces_in(tmp_path / "sol" / NAME / "traces.jsonl")[0]["evaluation"]["correctness"]
    assert "max_absolute_error" not in found
    assert not found["has_nan"]


def test_a_new_folder_gets_the_definition_and_its_workloads(delivery, dataset, tmp_path):
    done = deliver_to_flashinfer(delivery, tmp_path / "out")
    for name in (f"definitions/elementwise/{NAME}.json", f"workloads/elementwise/{NAME}.jsonl"):
        assert (tmp_path / "out" / name).read_text() == (dataset / name).read_text()
        assert tmp_path / "out" / name in done.written
    assert done.data_missing == ("blob/y.safetensors",)
    before = (dataset / f"definitions/elementwise/{NAME}.json").stat()
    inside = deliver_to_flashinfer(delivery, dataset)
    assert len(inside.written) == 2
    assert (dataset / f"definitions/elementwise/{NAME}.json").stat() == before
    assert read_specification(dataset, NAME) == delivery.specification


def test_the_solution_and_the_task_of_sol_execbench(sol_delivery, tmp_path):
    done = deliver_to_sol(sol_delivery, tmp_path / "out")
    task, source = tmp_path / "out" / NAME, sol_delivery.specification.entry.root
    assert json.loads((task / "solution.json").read_text())["spec"] == {
        "languages": ["triton", "pytorch"],
        "target_hardware": ["LOCAL"],
        "entry_point": "main.py::run",
        "dependencies": [],
        "destination_passing_style": False,
    }
    for name in ("definition.json", "workload.jsonl"):
        assert (task / name).read_text() == (source / name).read_text()
    first, _ = traces_in(task / "traces.jsonl")
    assert first["workload"]["tolerance"] == {"max_atol": 1e-3, "allow_negative_inf": True}
    assert done.data_missing == ("blob/y.safetensors",)
    assert deliver_to_sol(sol_delivery, task).written == done.written[:2]


def test_sol_execbench_takes_no_extension_that_compiles_itself(sol_delivery, tmp_path):
    with pytest.raises(BadInputError, match=r"in cuda .* it takes triton, gluon, helion, cutedsl"):
        deliver_to_sol(replace(sol_delivery, language="cuda"), tmp_path / "out")


def test_a_task_is_found_by_the_name_of_its_definition_and_by_its_file(sol_delivery, tmp_path):
    folder = sol_delivery.specification.entry.root.rename(tmp_path / "tasks" / "renamed")
    for dataset in (tmp_path / "tasks", folder, folder / "definition.json"):
        found = read_specification(dataset, NAME)
        assert found.workloads == sol_delivery.specification.workloads


def test_a_task_of_sol_execbench_is_none_of_flashinfer_bench(sol_delivery, tmp_path):
    with pytest.raises(BadInputError, match=r"has no op_type.*use --sol"):
        deliver_to_flashinfer(sol_delivery, tmp_path / "out")


def test_a_folder_that_cannot_be_written_is_named(delivery, tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(
        BadInputError, match=r"out/solutions/.*: cannot be written: Not a directory"
    ):
        deliver_to_flashinfer(delivery, tmp_path / "out")
