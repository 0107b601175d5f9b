"""`adaexplore simulate` in a process of its own, as a shell runs it."""

import json

import pytest
from typer.testing import CliRunner

from adaexplore.cli.app import app
from adaexplore.errors import BadInputError
from adaexplore.simulate import SYNTHETIC

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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--landscape", "synthetic:moon"], "known: families, ladder"),
        (["--landscape", "synthetic:polish:slope=1"], "no number 'slope'; known: families, low"),
        (["--landscape", "synthetic:polish:low=deep"], "low cannot be 'deep'"),
        (["--landscape", "synthetic:polish:families=0"], "it takes a family"),
        (["--landscape", "nowhere"], "neither a run, nor a file"),
        (["--policy", "best"], "no policy 'best'"),
        (["--save", "x.json"], "takes the landscape of one run"),
    ],
)
def test_what_there_is_not(words, message):
    result = simulate(*words, *SMALL)
    assert isinstance(result.exception, BadInputError)
    assert message in str(result.exception)


def test_every_synthetic_landscape_says_what_it_is_like():
    assert all(landscape.about for landscape in SYNTHETIC.values())
