from __future__ import annotations

from hand_made import PROBLEM, failed, node, passed, run_info
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.verdict.evaluation import Passed, rank
from adaexplore.report import summarize

evaluations = st.one_of(
    st.floats(0.01, 100).map(passed),
    st.sampled_from(["compile_error", "wrong_output", "timeout"]).map(failed),
)


def test_a_run_without_steps_has_an_empty_summary():
    summary = summarize(PROBLEM, [], run_info())

    assert summary.headline.verdict == "empty"
    assert summary.best is None
    assert (summary.rows, summary.curve, summary.groups) == ((), (), ())
    assert summary.totals.wall_s == 0


def test_the_curve_rises_with_each_better_correct_candidate():
    nodes = [
        node(1, failed()),
        node(2, passed(0.8)),
        node(3, passed(1.5), parent_id=2),
        node(4, passed(1.2), parent_id=2),
        node(5, failed("wrong_output"), parent_id=3),
    ]

    curve = summarize(PROBLEM, nodes, run_info()).curve

    assert [point.best_speedup for point in curve] == [None, 0.8, 1.5, 1.5, 1.5]
    assert [point.best_id for point in curve] == [None, 2, 3, 3, 3]


@given(st.lists(evaluations, min_size=1, max_size=30))
def test_the_best_is_the_earliest_of_highest_rank_and_the_curve_never_falls(found):
    nodes = [node(number, evaluation) for number, evaluation in enumerate(found, start=1)]

    summary = summarize(PROBLEM, list(reversed(nodes)), run_info())

    shown = [point.best_speedup for point in summary.curve if point.best_speedup is not None]
    assert shown == sorted(shown)
    top = max(nodes, key=lambda candidate: rank(candidate.evaluation))
    expected = top.id if isinstance(top.evaluation, Passed) else None
    assert (summary.best.node.id if summary.best else None) == expected


def test_rows_know_their_place_in_the_tree():
    nodes = [
        node(1, passed(1.0)),
        node(2, passed(1.1), parent_id=1),
        node(3, passed(1.4), parent_id=2),
        node(4, passed(1.2), parent_id=1),
    ]

    rows = summarize(PROBLEM, nodes, run_info()).rows

    assert [row.depth for row in rows] == [1, 2, 3, 2]
    assert [row.parent.id if row.parent else None for row in rows] == [None, 1, 2, 1]
    assert [row.on_best_path for row in rows] == [True, True, True, False]
    assert [row.improved for row in rows] == [True, True, True, False]
    assert [row.best for row in rows] == [False, False, True, False]


def test_a_reused_evaluation_costs_once():
    same = {"source": "x = 1"}
    nodes = [
        node(1, passed(1.1), **same),
        node(2, passed(1.1), reused=True, **same),
        node(3, failed()),
    ]

    totals = summarize(PROBLEM, nodes, run_info()).totals

    assert totals.propose_s == 1.5
    assert totals.evaluate_s == 5.0
    assert totals.device_s == 1.5
    assert totals.wall_s == 6.5


def test_families_are_grouped_by_origin_best_first():
    nodes = [
        node(1, passed(1.1)),
        node(2, passed(1.3)),
        node(3, failed(), settings={"family": "layout"}),
        node(4, passed(2.0), origin="some-model", settings={}),
    ]

    groups = summarize(PROBLEM, nodes, run_info()).groups

    assert [(g.origin, g.family, g.steps, g.passed, g.best_id) for g in groups] == [
        ("some-model", "", 1, 1, 4),
        ("compiler", "fold", 2, 2, 2),
        ("compiler", "layout", 1, 0, None),
    ]


def test_statuses_are_counted_most_frequent_first():
    nodes = [node(1, failed("timeout")), node(2, passed(1.0)), node(3, passed(1.1))]

    assert list(summarize(PROBLEM, nodes, run_info()).status_counts.items()) == [
        ("passed", 2),
        ("timeout", 1),
    ]
