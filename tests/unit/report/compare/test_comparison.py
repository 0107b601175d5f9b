"""Searches side by side: paired, honest about what failed, never across environments."""

import json
from dataclasses import replace
from io import StringIO

import pytest
from hand_made import estimated, failed, passed
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from traced import compared, reaching, trace

from adaexplore.core.problem import Checks
from adaexplore.report.compare.chart import charts
from adaexplore.report.compare.html import render_comparison
from adaexplore.report.compare.tables import comparison_tables, heads, verdicts

PROBLEMS = [f"problem {i}" for i in range(8)]


def printed(comparison, width=80):
    console = Console(file=StringIO(), width=width)
    console.print(comparison_tables(comparison))
    return console.file.getvalue()


def suite(policy, factor, **changes):
    """A run of every problem; beam's are by so much faster than uct's."""
    return [
        reaching(policy, name, 1.0, (1 + i / 4) * factor, **changes)
        for i, name in enumerate(PROBLEMS)
    ]


def test_arms_are_paired_by_problem():
    [group] = compared(*suite("uct", 1.0), *reversed(suite("beam", 1.5))).groups
    [checkpoint] = group.checkpoints
    [pair] = checkpoint.pairs
    assert (checkpoint.at, checkpoint.problems) == (2, 8)
    assert pair.ratio == pytest.approx(1.5, rel=0.02)
    assert (pair.wins, pair.ties, pair.losses) == (8, 0, 0)
    low, high = pair.interval
    assert 1.4 < low <= high < 1.6  # however different the problems are
    assert pair.decision == "faster"
    assert checkpoint.standings[0].interval[1] / checkpoint.standings[0].interval[0] > 1.3
    assert verdicts(group, "steps") == [
        "beam over uct at 2 steps: 1.50× (95 % 1.50–1.50, p = 0.008), won 8, tied 0, lost 0: "
        "beam is faster."
    ]


@pytest.mark.parametrize(
    ("factors", "decision"),
    [
        ([0.7] * 8, "slower"),
        ([0.5, 2.0] * 4, "undecided"),
        ([2.0] * 5, "too few"),
        ([2.0], "too few"),
    ],
)
def test_the_interval_decides(factors, decision):
    runs = [reaching("uct", f"p{i}", 2.0) for i in range(len(factors))]
    runs += [reaching("beam", f"p{i}", 2.0 * factor) for i, factor in enumerate(factors)]
    [group] = compared(*runs).groups
    assert group.checkpoints[0].pairs[0].decision == decision


def test_a_difference_within_the_noise_is_a_tie():
    runs = [trace("uct", "a", passed(2.0, spread=0.2)), trace("beam", "a", passed(2.3, spread=0.2))]
    [group] = compared(*runs).groups
    assert group.checkpoints[0].pairs[0].ties == 1
    runs = [reaching("uct", "a", 2.0, 2.0), reaching("beam", "a", 2.0, 2.3)]
    [group] = compared(*runs).groups
    assert group.checkpoints[0].pairs[0].wins == 1


def test_a_run_without_a_correct_kernel_counts_as_in_a_campaign():
    runs = [reaching("uct", "a", 4.0), reaching("uct", "b", 4.0)]
    runs += [reaching("beam", "a", 4.0), trace("beam", "b", failed())]
    comparison = compared(*runs)
    [group] = comparison.groups
    own = group.checkpoints[0].standings[1]
    assert own.speedup == pytest.approx((4.0 * 0.1) ** 0.5)
    assert own.averages.geometric_mean == pytest.approx(4.0)  # of those with a correct kernel
    assert own.averages.fast_p[1.0] == 0.5
    assert own.averages.published_geometric_mean == pytest.approx((4.0 * 0.1) ** 0.5)
    assert group.checkpoints[0].pairs[0].losses == 1
    assert "none correct" in printed(comparison)
    assert "counts as 0.1×" in printed(comparison)


def test_seeds_of_a_problem_count_once():
    runs = [reaching("uct", "a", 1.0), reaching("uct", "a", 4.0), reaching("uct", "b", 8.0)]
    [group] = compared(*runs).groups
    assert group.checkpoints[0].standings[0].speedup == pytest.approx((2.0 * 8.0) ** 0.5)
    assert group.rows[0].found[0].runs == 2


def test_problems_without_runs_of_every_arm_are_left_out_and_named():
    runs = [reaching("uct", "a", 2.0), reaching("uct", "b", 90.0), reaching("beam", "a", 2.0)]
    comparison = compared(*runs)
    [group] = comparison.groups
    assert group.checkpoints[0].standings[0].speedup == pytest.approx(2.0)
    assert [row.paired for row in group.rows] == [True, True, False, False]
    assert group.notes == ("left out of figures over problems, because only uct has runs: b",)
    assert group.efforts[0].runs == 1


def test_arms_without_a_common_problem_are_only_listed():
    comparison = compared(reaching("uct", "a", 2.0), reaching("beam", "b", 3.0), by=["policy"])
    [group] = comparison.groups
    assert (group.checkpoints, group.claims, group.curves) == ((), None, ())
    assert group.notes == (
        "no problem has runs of every arm; --by with fewer keys makes fewer arms",
    )
    assert "3.00×" in printed(comparison)
    assert "3.00×" in render_comparison(comparison)


def test_environments_and_classes_are_kept_apart():
    elsewhere = reaching("beam", "a", 9.0, environment="another GPU")
    loose = reaching("beam", "a", 9.0)
    loose = replace(loose, problem=replace(loose.problem, checks=Checks("tf32")))
    comparison = compared(reaching("uct", "a", 2.0), elsewhere, loose)
    assert [len(group.efforts) for group in comparison.groups] == [1, 1, 1]
    assert not any(c.pairs for group in comparison.groups for c in group.checkpoints)
    assert comparison.notes == (
        "not compared with each other: fp32 on a GPU, torch 2.11.0; fp32 on another GPU; "
        "tf32 on a GPU, torch 2.11.0",
    )


def test_estimates_give_no_speedups():
    runs = []
    for policy in ("uct", "beam"):
        guessed = trace(policy, "a", estimated(), failed())
        runs.append(replace(guessed, problem=replace(guessed.problem, target="sm_90")))
    comparison = compared(*runs)
    [group] = comparison.groups
    assert group.estimated
    assert (group.checkpoints, group.claims, group.rows, group.curves) == ((), None, (), ())
    assert group.efforts[0].correct == 0.5
    assert "×" not in printed(comparison)
    assert "×" not in render_comparison(comparison).split("Reproduce")[0].split("<main>")[1]


def test_labelled_problems_are_averaged_apart():
    labels = {"constant": "zeros would pass"}
    runs = [reaching("uct", "zeros", 900.0, labels=labels), reaching("uct", "a", 2.0)]
    runs += [reaching("beam", "zeros", 900.0), reaching("beam", "a", 2.0)]
    comparison = compared(*runs)
    plain, labelled = comparison.groups
    assert plain.checkpoints[0].standings[0].speedup == pytest.approx(2.0)
    assert {row.problem for row in labelled.rows} == {"zeros"}
    assert comparison.notes == ()
    assert "zeros: constant: zeros would pass" in printed(comparison)


def test_the_shortest_run_sets_the_length():
    runs = [reaching("uct", "a", 1.0, 2.0), reaching("beam", "a", 1.0, 1.0, 8.0)]
    [group] = compared(*runs).groups
    assert group.places == (2,)
    assert group.checkpoints[0].pairs[0].ratio == pytest.approx(0.5)
    assert group.notes[0].startswith("compared up to 2 steps, the length of runs/uct/a;")
    ended = replace(runs[0], ended=True)
    [group] = compared(ended, runs[1]).groups
    assert group.places == (3,)
    assert group.checkpoints[0].pairs[0].ratio == pytest.approx(4.0)


def test_shorter_runs_are_left_out_and_counted():
    runs = [*suite("uct", 1.0), *suite("beam", 1.5), reaching("uct", "long", *[2.0] * 5)]
    runs += [reaching("beam", "long", *[2.0] * 5)]
    [group] = compared(*runs, at=[2, 5, 50]).groups
    assert [(c.at, c.problems) for c in group.checkpoints] == [(2, 9), (5, 1)]
    assert group.notes[:2] == (
        "at 5 steps: 16 of 18 runs are shorter and left out; problems that remain: 1",
        "at 50 steps: 18 of 18 runs are shorter and left out; problems that remain: 0",
    )


def test_equal_time_is_not_equal_steps():
    slow = replace(passed(2.0), cost=replace(passed(2.0).cost, wall_s=60.0))
    runs = [trace("uct", "a", failed(), passed(2.0), failed()), trace("beam", "a", failed(), slow)]
    [group] = compared(*runs).groups
    assert group.checkpoints[0].pairs[0].ratio == 1.0
    [group] = compared(*runs, axis="seconds", at=[6.5]).groups
    assert group.checkpoints[0].pairs[0].ratio == pytest.approx(0.1 / 2.0)


@settings(max_examples=20)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.lists(st.floats(0.05, 50))),
        min_size=1,
        max_size=6,
    )
)
def test_any_runs_can_be_shown(runs):
    traces = [
        reaching(policy, problem, *speedups) if speedups else trace(policy, problem, failed())
        for policy, problem, speedups in runs
    ]
    comparison = compared(*traces)
    json.dumps(comparison.to_json(), allow_nan=False)
    assert printed(comparison)
    assert "</html>" in render_comparison(comparison)
    for group in comparison.groups:
        for curve in group.curves:
            assert list(curve.speedups) == sorted(curve.speedups)
        for checkpoint in group.checkpoints:
            for pair in checkpoint.pairs:
                assert pair.wins + pair.ties + pair.losses == checkpoint.problems


def test_curves_end_at_the_values_of_the_table():
    comparison = compared(*suite("uct", 1.0), *suite("beam", 1.5))
    [group] = comparison.groups
    ends = [curve.speedups[-1] for curve in group.curves]
    assert ends == [standing.speedup for standing in group.checkpoints[-1].standings]
    wide, narrow = charts(group, comparison.arms, "steps")
    assert [line.css for line in wide.lines] == ["arm-0", "arm-1"]
    assert all(line.band.endswith("Z") for line in (*wide.lines, *narrow.lines))
    assert [tick.label for tick in wide.x_ticks] == ["1", "2"]


def test_a_page_escapes_its_input():
    evil = "<script>alert(1)</script>"
    page = render_comparison(compared(reaching("uct", evil, 2.0), reaching(evil, evil, 3.0)))
    assert "<script" not in page


def test_tables_fit_a_narrow_terminal():
    runs = [*suite("uct", 1.0), *suite("beam", 1.5)]
    text = printed(compared(*runs))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "beam is faster." in " ".join(text.split())
    assert "8 of 8" in text


def test_claims_are_also_averaged_without_problems_that_an_arm_won_by_algebra():
    plain = [reaching(arm, "a", speed) for arm, speed in (("uct", 2.0), ("archive", 3.0))]
    won = [reaching("uct", "b", 40.0, by_algebra=True), reaching("archive", "b", 1.0)]
    [group] = compared(*plain, *won).groups
    assert group.claims.problems == 2
    assert (group.claims_without.problems, group.claims_without.left_out) == (1, 1)
    speedups = {each.arm: each.speedup for each in group.claims_without.standings}
    assert sorted(speedups.values()) == pytest.approx([2.0, 3.0])
    assert "claimed, 1 by algebra left out" in heads(group, "steps")
    assert compared(*plain).groups[0].claims_without is None
    assert compared(*won).groups[0].claims_without is None
