"""`adaexplore export --parquet`, with real files and the real check of overlaps."""

import pyarrow.parquet
import pytest
from trained_runs import BENCHMARK, SOURCE, write_run

from adaexplore.cli import main


@pytest.fixture
def adaexplore(command_line):
    return command_line("adaexplore", main)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs of a problem of one's own, of a benchmark's, and of one that cannot be traced."""
    folder = tmp_path_factory.mktemp("runs")
    write_run(folder / "mine")
    write_run(folder / "theirs", BENCHMARK, "softmax")
    write_run(folder / "broken", "class Model: ...", "broken")
    return folder


def read(path):
    return pyarrow.parquet.read_table(path).to_pylist()


def test_a_benchmarks_problem_is_left_out_and_counted_in_one_line(adaexplore, folder, tmp_path):
    target = tmp_path / "sft.parquet"
    runs = [folder / "mine", folder / "theirs", folder / "broken"]
    result = adaexplore("export", *runs, "--parquet", target, "--form", "sft")
    assert result.out.splitlines() == [
        f"{target}: 1 rows of 1 runs",
        "left out: 2 problems, 1 with a benchmark's structure, "
        "1 that cannot be compared with benchmarks",
    ]
    [row] = read(target)
    assert (row["problem"], row["license"], row["run"]) == ("tanh_scan", "MIT", "mine")


def test_benchmarks_are_kept_on_request_with_the_licence_that_is_given(
    adaexplore, folder, tmp_path
):
    target = tmp_path / "rl.parquet"
    more = ("--parquet", target, "--form", "rl", "--with-benchmarks", "--license", "BSD-3-Clause")
    adaexplore("export", folder / "mine", folder / "theirs", *more)
    assert [(r["problem"], r["license"]) for r in read(target)] == [
        ("tanh_scan", "MIT"),
        ("softmax", "BSD-3-Clause"),
    ]


def test_a_folder_of_further_benchmarks_leaves_their_problems_out(adaexplore, folder, tmp_path):
    (tmp_path / "held_out").mkdir()
    (tmp_path / "held_out" / "1_scan.py").write_text(SOURCE.replace("8, 8", "3, 5"))
    more = ("--form", "rl", "--exclude", tmp_path / "held_out")
    result = adaexplore("export", folder / "mine", "--parquet", tmp_path / "x.parquet", *more)
    assert result.code == 2
    assert "no row of form rl in 1 runs: left out: 1 problems" in result.err
    assert not (tmp_path / "x.parquet").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--parquet", "x"], "--parquet needs --form: rl, sft, sft-steps, preferences"),
        (["--parquet", "x", "--form", "dpo"], "--form dpo: no such form; there are rl, sft"),
        (["--parquet", "x", "--form", "rl", "--reward", "r"], "--reward r: no such reward"),
        (["-o", "x.json.xz"], "2 runs: only --parquet takes more than one"),
        (
            ["--with-benchmarks", "--form", "rl", "--parquet", "no/such/x"],
            "cannot write no/such/x: No such file or directory",
        ),
    ],
)
def test_a_wrong_order_is_one_clear_line(adaexplore, folder, words, said):
    result = adaexplore("export", folder / "mine", folder / "mine", *words)
    assert result.code == 2
    assert said in result.err
