"""Results in KernelBench's own layout: of judged answers here, of campaigns with `bench`."""

import json
from dataclasses import replace

import pytest

from adaexplore.core.bench import BenchEntry, BenchVerdict
from adaexplore.core.errors import BadInputError
from adaexplore.core.verdict.evaluation import Cost, Estimate, Failed, Passed, Timing
from adaexplore.problems.benchmarks import benchmark_named
from adaexplore.run.outcome.kernelbench_results import export_kernelbench
from adaexplore.store.bench import BenchManifest, append_verdict, create_bench

TIMING = Timing(
    time_us=200.0,
    time_ci_us=(198.0, 202.0),
    baselines_us={"eager": 500.0, "compile": 300.0},
    speedup=1.5,
    speedup_ci=(1.48, 1.52),
    speedup_eager=2.5,
    samples=100,
)
RIGHT = Passed("fp32", 1e-7, TIMING, Cost(wall_s=1.0, device_s=1.0))
RIGHT_ESTIMATED = replace(RIGHT, timing=Estimate(12.0, "memory", "sm_90"))
WRONG = Failed("wrong_output", "output is off by 1")
BROKEN = Failed("compile_error", "no such name")


@pytest.fixture
def judged(tmp_path):
    """Make a folder of judged answers to these problems; return it."""

    def judged(*rows):
        entries, files, verdicts = [], {}, []
        for place, problem, verdict in rows:
            entry = BenchEntry("ours", "k", "c", place, problem, f"answers/{place}", place)
            entries.append(entry)
            files |= {problem: "# problem\n", f"answers/{place}": f"# {place}\n"}
            verdicts.append(BenchVerdict(entry, "fp32", "cpp", "NVIDIA H200", verdict, "unclear"))
        path = tmp_path / "bench"
        create_bench(path, BenchManifest("kernelbench", "c", {}, False, tuple(entries)), files)
        for verdict in verdicts:
            append_verdict(path, verdict)
        return path

    return judged


def test_each_level_has_a_run_with_verdicts_and_kernels(judged, tmp_path):
    path = judged(
        ("b.py", "problems/level_1/7_Relu.py", WRONG),
        ("a.py", "problems/level_1/7_Relu.py", RIGHT),
        ("level_1_problem_8_sample_3_kernel.py", "problems/level_1/8_Gelu.py", BROKEN),
        ("c.py", "problems/level_2/7_Add.py", RIGHT),
        ("d.py", "problems/level_2/8_Mul.py", None),
        ("e.py", "problems/other.py", RIGHT),
    )
    out = tmp_path / "out"
    done = export_kernelbench(path, out)
    assert done.samples == 4
    assert [name for name, _ in done.left_out] == ["d.py", "e.py"]
    assert [why for _, why in done.left_out] == [
        "unclear",
        "no problem of KernelBench: no level in its path",
    ]
    first = json.loads((out / "ours_level1" / "eval_results.json").read_text())
    keys = ("sample_id", "compiled", "correctness", "runtime")
    assert {pid: [tuple(row[k] for k in keys) for row in rows] for pid, rows in first.items()} == {
        "7": [(0, True, True, 0.2), (1, True, False, -1.0)],
        "8": [(3, False, False, -1.0)],
    }
    kernels = {file.name: file.read_text() for file in (out / "ours_level1").glob("*.py")}
    assert kernels["level_1_problem_7_sample_0_kernel.py"] == "# a.py\n"
    assert kernels["level_1_problem_7_sample_1_kernel.py"] == "# b.py\n"
    assert (out / "ours_level2" / "level_2_problem_7_sample_0_kernel.py").is_file()
    means = {}
    for name in ("eager", "strongest"):
        times = json.loads((out / f"baseline_{name}.json").read_text())
        means[name] = [
            times[f"level{i}"][f].get("mean") for i, f in ((1, "7_Relu.py"), (2, "7_Add.py"))
        ]
    assert means == {"eager": [0.5, 0.5], "strongest": [0.3, 0.3]}


def test_what_is_written_is_read_back_as_answers_with_verdicts(judged, tmp_path):
    path = judged(("a.py", "problems/level_1/7_Relu.py", RIGHT))
    export_kernelbench(path, tmp_path / "out")
    [answer] = benchmark_named("kernelbench").answers(tmp_path / "out", None)
    assert (answer.key, answer.source) == ("1/7", "# a.py\n")
    assert (answer.theirs.said, answer.theirs.time_us) == ("correct", 200.0)


def test_a_verdict_without_times_has_none(judged, tmp_path):
    path = judged(("a.py", "problems/level_1/7_Relu.py", RIGHT_ESTIMATED))
    export_kernelbench(path, tmp_path / "out")
    [row] = json.loads((tmp_path / "out/ours_level1/eval_results.json").read_text())["7"]
    assert (row["correctness"], row["runtime"], row["runtime_stats"]) == (True, -1.0, {})


def test_what_cannot_be_exported_is_refused_in_a_line(judged, tmp_path):
    with pytest.raises(BadInputError, match="takes a campaign, or a folder of `bench`"):
        export_kernelbench(tmp_path, tmp_path / "out")
    path = judged(("e.py", "problems/other.py", RIGHT))
    with pytest.raises(BadInputError, match=r"no result of a problem of KernelBench: e\.py"):
        export_kernelbench(path, tmp_path / "out")


def test_a_full_folder_is_left_alone(judged, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").touch()
    with pytest.raises(BadInputError, match="is not empty"):
        export_kernelbench(judged(("a.py", "problems/level_1/7_Relu.py", RIGHT)), tmp_path / "out")
