"""The figures of a study against small computations of their own."""

import json
import math
import random
from io import StringIO
from itertools import product
from statistics import fmean

import pytest
from hand_made import passed, under_load
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from rich.console import Console
from study_made import STEPS, studied

from adaexplore.report.study.heat import draw
from adaexplore.report.study.html import render_study
from adaexplore.report.study.tables import study_tables

ARMS, PROBLEMS, SEEDS = ("tree", "alone"), ("p", "q", "r"), (0, 1)
CELLS = list(product(ARMS, PROBLEMS, SEEDS))
speedups = st.one_of(st.none(), st.sampled_from([0.4, 1.1, 1.3, 1.7, 3.0, 25.0]))
found_speedups = st.fixed_dictionaries({cell: st.tuples(speedups).map(list) for cell in CELLS})


def over_eager(speedup):
    return speedup * 900 / 720  # of the hand-made baselines


@examples(max_examples=25, deadline=None)
@given(found_speedups, st.randoms())
def test_the_main_table_and_the_tests_by_an_independent_computation(found, rng):
    keys = list(found)
    rng.shuffle(keys)  # pairs are by problem and seed, whatever the order of the runs
    keys.sort(key=lambda key: ARMS.index(key[0]))
    summary = studied({key: found[key] for key in keys})
    for score in summary.scores:
        if score.scope != "all":
            continue
        as_measured = (lambda x: x) if score.baseline == "strongest" else over_eager
        own = [s and as_measured(s) for (arm, *_), [s] in found.items() if arm == score.arm]
        assert score.averages.fast_p == {
            p: pytest.approx(sum((s or 0) > p for s in own) / 6) for p in (1, 1.2, 1.5, 2)
        }
        capped = [min(s or 0, 10) for s in own]
        assert score.averages.published_mean == pytest.approx(sum(capped) / 6)
        logs = [math.log(min(s, 10) if s else 0.1) for s in own]
        assert score.averages.published_geometric_mean == pytest.approx(math.exp(sum(logs) / 6))
        assert (score.runs, score.problems, score.correct) == (6, 3, 6 - own.count(None))

    [pair] = summary.tests[0].pairs
    differences = [
        fmean(
            math.log(found["alone", problem, seed][0] or 0.1)
            - math.log(found["tree", problem, seed][0] or 0.1)
            for seed in SEEDS
        )
        for problem in PROBLEMS
    ]
    assert (pair.arm, pair.over, pair.samples) == ("alone", "tree", 3)
    assert pair.ratio == pytest.approx(math.exp(fmean(differences)))
    observed = abs(sum(differences)) - 1e-9
    flips = [
        sum(s * d for s, d in zip(signs, differences, strict=True))
        for signs in product((1, -1), repeat=3)
    ]
    assert pair.p_value == pytest.approx(sum(abs(one) >= observed for one in flips) / 8)


def test_pairs_are_of_the_same_problem_whatever_the_order_of_the_runs():
    fast = {"p": 1.2, "q": 3.0, "r": 8.0}  # one arm is a tenth faster everywhere
    found = {("tree", problem, 0): [fast[problem]] for problem in "pqr"}
    found |= {("alone", problem, 0): [1.1 * fast[problem]] for problem in "rpq"}
    [pair] = studied(found).tests[0].pairs
    assert (pair.wins, pair.ties, pair.losses) == (3, 0, 0)
    assert pair.ratio == pytest.approx(1.1)
    low, high = pair.interval
    assert low == pytest.approx(1.1)
    assert high == pytest.approx(1.1)


def test_a_cell_that_some_arm_lacks_counts_for_none():
    found = {cell: [2.0] for cell in CELLS} | {("alone", "q", 1): [], ("tree", "q", 1): [8.0]}
    summary = studied(found)
    assert ("q", 1) not in summary.cells
    assert {
        score.averages.published_mean for score in summary.scores if score.baseline == "strongest"
    } == {2.0}
    assert any("q (seed 1)" in note for note in summary.notes)
    assert summary.comparisons[0].groups[0].claims.standings[0].speedup == pytest.approx(2.0)


def test_a_gain_under_load_counts_as_none_and_a_note_says_so(monkeypatch):
    monkeypatch.setattr(
        "study_made.passed", lambda speedup: (passed, under_load)[speedup > 3](speedup)
    )
    found = {cell: [2.0] for cell in CELLS} | {("tree", "q", 1): [8.0], ("alone", "r", 0): [9.0]}
    summary = studied(found)
    [note] = summary.notes
    assert note.startswith("measured while other programs kept the machine busy")
    assert note.endswith("counted as 1.000×: 2 winners")
    [comparison, *_] = summary.comparisons
    assert any(line.endswith("the best of 2 runs") for line in comparison.notes)


def test_labelled_problems_are_in_the_figures_over_all_alone():
    found = {(arm, problem, 0): [8.0 if problem == "q" else 2.0] for arm, problem, _ in CELLS}
    summary = studied(found, labels={"q": {"collapsible": "it collapses"}})
    means = {
        (score.scope, score.problems): score.averages.published_mean
        for score in summary.scores
        if (score.arm, score.baseline) == ("tree", "strongest")
    }
    assert means == {("all", 3): pytest.approx(4.0), ("unlabelled", 2): pytest.approx(2.0)}
    assert [tests.problems for tests in summary.tests] == [3, 2]


def test_curves_are_along_steps_cost_where_it_is_known_and_time():
    summary = studied({cell: [1.0, 2.0] for cell in CELLS})
    assert [one.axis for one in summary.comparisons] == ["steps", "seconds"]
    curve = summary.comparisons[0].groups[0].curves[0]
    assert curve.at == (1.0, 2.0)
    assert curve.speedups == pytest.approx((1.0, 2.0))


def test_kinds_of_steps_and_the_use_of_the_memory():
    summary = studied({("tree", "p", 0): [2.0], ("tree", "q", 0): [2.0]}, made=STEPS)
    large, small = summary.kinds
    assert (large.kind, large.steps, large.gain, large.similarity) == ("large", 2, None, None)
    assert (small.steps, small.compared, small.correct) == (6, 4, pytest.approx(2 / 3))
    assert (small.faster, small.improved) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert small.gain == pytest.approx(math.exp(0.05))
    assert small.similarity == pytest.approx(0.8)
    [row] = summary.memory
    assert (row.prompted, row.per_step, row.tokens, row.distinct) == (6, 1.0, 40.0, 2)
    assert (row.breaking, row.breaking_shown) == (0.5, 0.25)
    assert (row.correct_breaking, row.correct_keeping) == (0.5, 1.0)
    assert summary.shown.rows == ("a", "b")
    assert summary.shown.values == ((2.0, 2.0), (1.0, 1.0))
    assert dict(zip(summary.broken.rows, summary.broken.values, strict=True)) == {
        "c": (2.0, 2.0),
        "a": (1.0, 1.0),
    }


def test_the_map_of_speedups():
    found = {cell: [2.0] for cell in CELLS} | {("alone", "q", 0): [0.5], ("alone", "r", 0): [None]}
    found[("alone", "r", 1)] = [None]
    heat = studied(found).speedups
    assert heat.columns == ARMS
    values = dict(zip(heat.rows, heat.values, strict=True))
    assert values["q"] == (pytest.approx(2.0), pytest.approx(1.0))
    assert values["r"][1] == pytest.approx(0.1)
    cells = {cell.title: cell for cell in draw(heat, "speedups").cells}
    assert cells["p, tree: 2.00×"].tone == "faster"
    assert cells["r, alone: none"].tone == "slower"


def test_the_page_the_tables_and_the_data_are_whole():
    rng = random.Random(0)
    found = {cell: [rng.uniform(0.5, 3.0), None, 2.0] for cell in CELLS}
    summary = studied(found, labels={"q": {"collapsible": "it <collapses>"}}, made=STEPS)
    page = render_study(summary)
    for words in (
        "fast_1.2",
        "Arm over arm",
        "Best so far against steps",
        "Best so far against time",
        "Problems and arms",
        "Kinds of steps",
        "Steps whose source breaks a rule",
        'href="tree/p-seed0/report.html"',
        "it &lt;collapses&gt;",
        "adaexplore study arms.toml",
    ):
        assert words in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    console = Console(file=StringIO(), width=120)
    console.print(study_tables(summary))
    shown = console.file.getvalue()
    for words in ("fast_1.2", "arm over arm", "by kind of step", "memory", "rules.json"):
        assert words in shown
    data = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    assert data["tests"][0]["pairs"][0]["decision"] == "too few"
    assert data["scores"][0]["averages"]["fast_p"]["1.2"] >= 0
    assert data["speedups"]["p"].keys() == {"tree", "alone"}


def test_a_study_without_a_judged_run_has_a_page_too():
    summary = studied({("tree", "p", 0): [], ("alone", "p", 0): []})
    assert summary.scores == summary.tests == summary.comparisons == ()
    assert "not every arm has a judged run" in render_study(summary)
