"""The command `adaexplore-lab simulate`."""

import json

import pytest
from typer.testing import CliRunner

from adaexplore.core.errors import BadInputError
from adaexplore_lab.cli import app
from adaexplore_lab.simulate import SYNTHETIC, RecordedRun, RecordedStep, runs_json

SMALL = ["--steps", "12", "--seeds", "10", "--jobs", "1"]


def simulate(*words):
    return CliRunner().invoke(app, ["simulate", *words])


def test_tables_and_a_file_say_what_was_found(tmp_path):
    output = tmp_path / "out.json"
    names = ["synthetic:families", "synthetic:polish:p_climb=0.6"]
    words = [w for name in names for w in ("--landscape", name)]
    result = simulate("--policy", "ps", "--policy", "beam:width=3", *words, *SMALL, "-o", output)
    assert result.exit_code == 0, result.output
    for text in ("families", "polish", "the mean over landscapes", "ps", "beam:width=3"):
        assert text in result.output
    data = json.loads(output.read_text())
    assert set(data["landscapes"]) == {"families", "polish:p_climb=0.6"}
    assert (data["steps"], data["seeds"], data["parallel"]) == (12, [0, 9], 1)
    assert len(data["found"]) == 4
    assert all(set(row["speedups"]) == {"10", "12"} for row in data["found"])
    assert all(len(row["speedups"]["12"]) == 10 for row in data["found"])
    assert {row["landscape"] for row in data["standings"]} == {
        "families",
        "polish:p_climb=0.6",
        "all",
    }


def recorded(name, problem, path):
    """The file of a run that went from 1x to 2x by three small steps and one that failed."""
    speedups = [1.0, 1.3, 0.0, 1.6, 2.0]
    steps = [
        RecordedStep(
            number,
            number - 1 if speedups[number - 2] else number - 2,
            "small" if number > 1 else "large",
            "model",
            "passed" if speedup else "timeout",
            speedup,
            speedup,
            0.01,
            (),
        )
        for number, speedup in enumerate(speedups, 1)
    ]
    path.write_text(runs_json([RecordedRun(name, problem, tuple(steps))]))
    return str(path)


def test_recorded_runs_are_kept_in_one_file_and_make_a_landscape_for_each_problem(tmp_path):
    first = recorded("one", "conv", tmp_path / "one.json")
    second = recorded("two", "softmax", tmp_path / "two.json")
    both = str(tmp_path / "both.json")
    result = simulate("--landscape", first, "--landscape", second, "--save", both)
    assert result.exit_code == 0, result.output
    result = simulate("--policy", "uct", "--landscape", both, *SMALL)
    assert result.exit_code == 0, result.output
    for text in ("conv: fitted to recorded runs", "softmax: fitted", "the mean over landscapes"):
        assert text in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--landscape", "synthetic:moon"], "known: families, ladder"),
        (["--landscape", "synthetic:polish:slope=1"], "no number 'slope'; known: families, low"),
        (["--landscape", "synthetic:polish:low=deep"], "low cannot be 'deep'"),
        (["--landscape", "synthetic:polish:families=0"], "it takes a family"),
        (["--landscape", "nowhere"], "neither a run, nor a file"),
        (["--policy", "best"], "no policy 'best'"),
        (["--save", "x.json"], "takes the landscapes of runs"),
    ],
)
def test_what_there_is_not(words, message):
    result = simulate(*words, *SMALL)
    assert isinstance(result.exception, BadInputError)
    assert message in str(result.exception)


def test_every_synthetic_landscape_says_what_it_is_like():
    assert all(landscape.about for landscape in SYNTHETIC.values())
