"""The table over many problems: means that say what they are over."""

import json
from dataclasses import replace
from io import StringIO

import pytest
from hand_made import PROBLEM, call, failed, node, on_two_workloads, passed, run_info
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from adaexplore.core.verdict.evaluation import Estimate, Passed
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.core.verdict.uses import Use
from adaexplore.report import summarize
from adaexplore.report.averages import averages
from adaexplore.report.campaign import chart
from adaexplore.report.campaign.html import render_campaign
from adaexplore.report.campaign.summary import Result, result_of, summarize_campaign
from adaexplore.report.campaign.tables import campaign_tables, unjudged_lines
from adaexplore.report.run.costs import summarize_costs


def result(name, *evaluations, labels=None, precision="fp32", confirmed=(), calls=()):
    nodes = [node(i, evaluation) for i, evaluation in enumerate(evaluations, 1)]
    costs = summarize_costs(nodes, calls, {}, [0.0] * len(nodes), len)
    info = run_info(reference=ReferenceFacts(labels=labels or {}), confirmations=dict(confirmed))
    summary = summarize(PROBLEM, nodes, info, costs=costs)
    return result_of(
        name, precision, "cpu", state="done", reason="all steps made", folder=name, summary=summary
    )


def refused(name, why):
    return result_of(name, "fp32", "cpu", state="refused", reason=why)


def campaign(*results):
    return summarize_campaign(
        results,
        name="night",
        command="adaexplore campaign a.toml",
        allocation="headroom",
        budget="",
        wall_s=75.0,
    )


def printed(summary, width=80):
    console = Console(file=StringIO(), width=width)
    console.print(campaign_tables(summary))
    return console.file.getvalue()


def test_the_averages_of_hand_made_speedups():
    found = averages([0.5, 2.0, 40.0], problems=4)
    assert found.median == 2.0
    assert found.mean == pytest.approx(42.5 / 3)
    assert found.mean_capped == pytest.approx(12.5 / 3)
    assert found.geometric_mean == pytest.approx(40 ** (1 / 3))
    assert found.fast_p == {1.0: 0.5, 1.5: 0.5, 2.0: 0.25}  # more than p, of all four
    assert found.published_mean == pytest.approx(12.5 / 4)
    assert found.published_geometric_mean == pytest.approx((0.5 * 2 * 10 * 0.1) ** 0.25)


def test_averages_without_a_correct_kernel():
    found = averages([], problems=2)
    assert (found.median, found.mean, found.mean_capped, found.geometric_mean) == (None,) * 4
    assert set(found.fast_p.values()) == {0.0}
    assert found.published_geometric_mean == pytest.approx(0.1)


@pytest.mark.parametrize(("speedups", "problems"), [([], 0), ([1.0], 0), ([1.0, 2.0], 1)])
def test_impossible_averages_are_refused(speedups, problems):
    with pytest.raises(ValueError, match="of"):
        averages(speedups, problems)


@given(st.lists(st.floats(0.01, 1000.0), min_size=1, max_size=20), st.integers(0, 5))
def test_averages_keep_their_order(speedups, without):
    found = averages(speedups, len(speedups) + without)
    assert found.geometric_mean <= found.mean * (1 + 1e-9)
    assert found.mean_capped <= min(found.mean, 10.0) * (1 + 1e-9)
    assert found.published_mean <= found.mean_capped * (1 + 1e-9)
    assert 1 >= found.fast_p[1.0] >= found.fast_p[1.5] >= found.fast_p[2.0] >= 0


def test_labelled_problems_have_their_own_averages():
    summary = campaign(
        result("softmax", passed(2.0)),
        result("zeros", passed(900.0), labels={"constant": "zeros would pass"}),
        result("norm", passed(8.0)),
    )
    plain, labelled = summary.groups
    assert plain.like_for_like.geometric_mean == pytest.approx(4.0)
    assert labelled.like_for_like.geometric_mean == pytest.approx(900.0)
    text = printed(summary)
    before, after = text.split("labelled problems")
    assert "zeros" not in before
    assert "zeros: constant: zeros would pass" in after


def test_a_remark_leaves_a_problem_among_the_others():
    [group] = campaign(
        result("deep", passed(2.0), labels={"overhead-bound": "launching"}),
        result("norm", passed(8.0)),
    ).groups
    assert not group.labelled
    assert group.like_for_like.geometric_mean == pytest.approx(4.0)
    assert "deep: overhead-bound: launching" in printed(campaign(*group.results))


def test_a_winner_that_counts_on_constant_weights_is_averaged_apart():
    counts_on_zeros = replace(passed(30.0), labels=("constant-weights",))
    summary = campaign(result("norm", passed(2.0)), result("adapter", counts_on_zeros))
    usual, apart = summary.groups
    assert [r.name for r in usual.results] == ["norm"]
    assert [r.name for r in apart.results] == ["adapter"]
    assert "adapter: constant-weights: of the winner" in printed(summary, width=120)


def test_a_winner_that_fails_silently_in_use_is_named():
    stale = Use("weights changed in place", "wrong", "off by 0.9")
    winner = replace(passed(3.0), uses=(Use("pickle", "refuses", "TypeError"), stale))
    summary = campaign(result("norm", winner))
    line = "the winner: SILENTLY WRONG: weights changed in place (off by 0.9)"
    assert f"norm: {line}" in printed(summary, width=120)
    assert f"<strong>norm</strong>: {line}" in render_campaign(summary)
    assert "TypeError" not in printed(summary, width=120)


def test_means_are_given_with_algebra_and_without():
    less_work = replace(passed(32.0), labels=("algebra",))
    summary = campaign(
        result("norm", passed(2.0)), result("mean", less_work), result("gelu", passed(8.0))
    )
    [group] = summary.groups
    assert group.by_algebra == 1
    assert group.like_for_like.geometric_mean == pytest.approx(8.0)
    assert group.like_for_like_without.geometric_mean == pytest.approx(4.0)
    text = printed(summary, width=120)
    assert "geometric mean, 1 by algebra left out" in text
    assert "mean: algebra: the winner needs less" in text
    assert summary.to_json()["groups"][0]["over_eager_without_algebra"] is not None


def test_precision_classes_are_not_mixed():
    summary = campaign(result("a", passed(2.0)), result("a-tf32", passed(4.0), precision="tf32"))
    assert [(group.precision, len(group.results)) for group in summary.groups] == [
        ("fp32", 1),
        ("tf32", 1),
    ]


def test_failed_problems_count_and_unjudged_ones_do_not():
    summary = campaign(
        result("good", failed(), passed(3.0)), result("bad", failed()), refused("nan", "NaN it is")
    )
    [group] = summary.groups
    assert (len(group.results), group.correct, group.faster) == (2, 1, 1)
    assert group.like_for_like.fast_p[1.0] == 0.5
    assert [one.name for one in summary.unjudged] == ["nan"]
    assert "nan: NaN it is" in printed(summary)


def test_unmeasured_problems_are_correct_and_in_no_average():
    guess = Passed("fp32", 1e-7, Estimate(5.0, "memory", "sm_90"))
    [group] = campaign(result("guessed", guess), result("good", passed(3.0))).groups
    assert (group.correct, group.unmeasured, group.like_for_like.fast_p[1.0]) == (2, 1, 1.0)
    alone = campaign(result("guessed", guess))
    [group] = alone.groups
    assert group.like_for_like is group.over_eager is None
    assert "fp32: 1 of 1 correct, 1 not measured" in printed(alone)
    assert "mean" not in printed(alone)
    assert json.loads(json.dumps(alone.to_json()))["groups"][0]["over_eager"] is None
    assert "Average" not in render_campaign(alone)


def test_a_problem_lists_its_workloads():
    summary = campaign(result("a", on_two_workloads()), result("b", passed(3.0)))
    words = [line.split() for line in printed(summary, width=100).splitlines()]
    assert ["long", "900", "720", "compile", "320", "2.25×", "2.21–2.29", "2.81×", "-"] in words
    assert "2.25× (2.21–2.29), 320 µs" in render_campaign(summary)


def test_the_confirmation_counts():
    flattered = result("a", passed(3.0), confirmed={1: passed(1.5)})
    withdrawn = result("b", passed(3.0), confirmed={1: failed("wrong_output", "off")})
    assert flattered.timing.speedup == 1.5
    assert withdrawn.claimed is None
    [group] = campaign(flattered, withdrawn).groups
    assert (group.correct, group.like_for_like.mean) == (1, 1.5)


def test_costs_add_up():
    paid = result("a", passed(2.0), calls=[call(1, cost_usd=0.25), call(2)])
    summary = campaign(paid, result("b", passed(2.0), failed()))
    spent = summary.spent
    assert (spent.usd, spent.unpriced, spent.calls, spent.tokens) == (0.25, 1, 2, 240)
    assert spent.device_s == pytest.approx(1.0 + 1.0 + 0.5)
    assert "spent: 1 min 15 s, device held 2.5 s" in printed(summary, 120)
    assert "0.2500 USD and 1 calls of unknown price" in printed(summary, 120)


def test_names_fit_a_narrow_terminal():
    text = printed(campaign(result("transformer_block", passed(2.0)), result("b", failed())))
    assert "transformer_block" in text
    assert "2.00×* 1.96–2.04" in text
    assert "* not measured again in a fresh process" in text
    assert "no correct" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_the_table_names_the_strongest_baseline():
    baselines = {"eager": 900.0, "compile": 720.0, "graph": 600.0}
    text = printed(campaign(result("a", passed(2.0, baselines=baselines))), width=100)
    assert "600 graph" in text
    assert "compile" not in text


def test_what_is_left_open_is_in_no_average_and_a_wide_claim_is_its_lower_end():
    found = [
        with_interval(2.4, 1.2, 10.0),
        with_interval(0.9, 0.05, 6.0),
        passed(2.0),
        with_interval(1.6, 0.8, 1.63, allowance=(0.5, 1.0)),
    ]
    summary = campaign(*(result(f"p{i}", each) for i, each in enumerate(found)))
    [group] = summary.groups
    assert [each.verdict for each in group.results] == ["faster", "too_noisy", "faster", "unproven"]
    assert (group.correct, group.left_open, group.faster) == (4, 2, 2)
    assert group.like_for_like.mean == pytest.approx((1.2 + 2.0) / 2)
    text = printed(summary, width=120)
    assert "4 of 4 correct, 2 left open, 2 clearly faster" in text
    assert "≥ 1.20×" in text
    assert "≥ 1.20×" in render_campaign(summary)
    assert summary.to_json()["groups"][0]["left_open"] == 2
    assert summary.to_json()["groups"][0]["results"][0]["winner"]["claim"] == 1.2


def with_interval(speedup, low, high, **changes):
    found = passed(speedup)
    return replace(found, timing=replace(found.timing, speedup_ci=(low, high), **changes))


def test_json_holds_all_data():
    summary = campaign(result("a", passed(2.0)), refused("nan", "NaN it is"))
    data = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    [group] = data["groups"]
    assert group["like_for_like"]["fast_p"] == {"1.0": 1.0, "1.5": 1.0, "2.0": 0.0}
    assert group["results"][0]["winner"]["speedup"] == 2.0
    assert group["results"][0]["run"] == "a"
    assert data["unjudged"][0]["reason"] == "NaN it is"


def test_the_page_names_the_strongest_baseline_and_the_quoted_speedups():
    baselines = {"eager": 900.0, "compile": 720.0, "compile-max-autotune": 600.0}
    one = passed(2.0, baselines=baselines)
    one = replace(one, timing=replace(one.timing, speedup_compile=2.4))
    page = render_campaign(campaign(result("a", one)))
    assert "<td>torch.compile (max-autotune)</td>" in page
    assert '<td class="num">2.40×</td>' in page
    assert '<td class="num">3.00×</td>' in page


def test_the_page_links_the_reports_and_escapes_its_input():
    page = render_campaign(
        campaign(
            result("a b", passed(2.0)),
            result("none", failed()),
            refused("nan", "<script>alert(1)</script>"),
        )
    )
    assert 'href="a%20b/report.html"' in page
    assert "<script>alert" not in page
    assert "script-src" not in page
    assert "geometric mean" in page


class TestCategories:
    """Campaigns over tasks of a benchmark."""

    @pytest.fixture
    def summary(self):
        def result(name, category, claimed=None, verdict="no correct", **changes):
            fields = {"steps": 3, "verdict": verdict, "claimed": claimed, "category": category}
            return Result(name, "fp32", "cpu", "done", "all steps made", **(fields | changes))

        results = [
            result("a", "level 1", passed(4.0), "faster"),
            result("b", "level 1", passed(1.0), "slower"),
            result("c", "level 1"),
            result("d", "level 1", passed(8.0), "faster", labels={"redundant": "why"}),
            result("e", "level 2", passed(1.1, 0.5), "too_noisy"),
            Result("4/1", "fp32", "", "left_out", "no package", category="level 4"),
            Result("4/2", "fp32", "", "left_out", "no package", category="level 4"),
        ]
        return summarize_campaign(
            results, name="n", command="c", allocation="uniform", budget="", wall_s=1.0
        )

    def test_a_row_counts_what_was_chosen_judged_right_and_faster(self, summary):
        rows = {row.category: row for row in summary.categories}
        counts = {
            name: (row.problems, row.judged, row.right, row.faster, row.left_open, row.labelled)
            for name, row in rows.items()
        }
        assert counts == {
            "level 1": (4, 4, 3, 2, 0, 1),
            "level 2": (1, 1, 1, 0, 1, 0),
            "level 4": (2, 0, 0, 0, 0, 0),
            "": (7, 5, 4, 2, 1, 1),
        }
        first = rows["level 1"].like_for_like
        assert first.geometric_mean == pytest.approx(2.0)
        assert first.fast_p[1.5] == pytest.approx(1 / 3)
        assert rows["level 2"].like_for_like is None

    def test_the_chart_has_a_band_for_each_category_and_the_page_names_the_rest(self, summary):
        wide, narrow = chart.charts(summary)
        assert [(band.name, len(band.dots)) for band in wide.bands] == [
            ("level 1", 3),
            ("level 2", 1),
            ("level 4", 0),
        ]
        assert len(narrow.bands) == 3
        page = render_campaign(summary)
        assert page.count("<circle") == 8
        assert "1 level 1, 2 level 2, 3 level 4" in page
        assert unjudged_lines(summary) == ["4/1, 4/2: no package"]

    def test_a_campaign_without_tasks_has_no_categories_and_a_chart_by_class(self):
        result = Result(
            "a", "tf32", "cpu", "done", "", steps=1, verdict="faster", claimed=passed(2.0)
        )
        summary = summarize_campaign(
            [result], name="n", command="c", allocation="uniform", budget="", wall_s=1.0
        )
        assert summary.categories == ()
        assert [band.name for band in chart.charts(summary)[0].bands] == ["tf32"]
        assert "By category" not in render_campaign(summary)
