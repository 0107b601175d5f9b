"""The table over many searches keeps labelled problems out of its mean."""

from __future__ import annotations

import io

from rich.console import Console
from run_problems import tables


def row(problem, speedup, **labels):
    best = {
        "time_us": 10.0,
        "baselines_us": {"eager": 10.0 * speedup, "compile": None},
        "speedup": speedup,
        "speedup_ci": [0.99 * speedup, 1.01 * speedup],
        "speedup_eager": speedup,
        "error": 1e-7,
    }
    return {"problem": problem, "precision": "fp32", "error": "", "best": best, "labels": labels}


def printed(rows):
    console = Console(file=io.StringIO(), width=120)
    for part in tables(rows, "fp32"):
        console.print(part)
    return console.file.getvalue()


def test_a_labelled_problem_is_in_a_table_and_a_mean_of_its_own():
    text = printed([row("softmax", 2.0), row("zeros", 900.0, constant="zeros would pass")])
    first, second = text.split("labelled problems, in no mean above")

    assert "geometric mean 2.000x" in first
    assert "zeros" not in first
    assert "geometric mean 900.000x" in second
    assert "zeros: constant: zeros would pass" in second


def test_without_labels_there_is_one_table():
    assert "labelled" not in printed([row("softmax", 2.0), row("norm", 8.0)])
    assert "geometric mean 4.000x" in printed([row("softmax", 2.0), row("norm", 8.0)])
