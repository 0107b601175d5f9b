"""The table of a judged benchmark: what counts where, from hand-made verdicts."""

from dataclasses import replace
from io import StringIO

import pytest
from hand_made import failed, passed
from rich.console import Console

from adaexplore.core.bench import BenchEntry, BenchVerdict, LeftOutAnswer, TheirVerdict
from adaexplore.core.verdict.labels import ALGEBRA, OVERHEAD_BOUND
from adaexplore.report.bench import chart
from adaexplore.report.bench.html import render_bench
from adaexplore.report.bench.summary import summarize_bench
from adaexplore.report.bench.tables import bench_tables


def verdict(key, evaluation, labels=None, collection="ours", unjudged=""):
    level = key.partition("/")[0]
    place = f"{key}.py"
    entry = BenchEntry(
        collection, key, f"level {level}", place, f"problems/{place}", f"answers/{place}", key
    )
    return BenchVerdict(
        entry, "fp32", "triton", "NVIDIA H200", evaluation, unjudged, "", labels or {}
    )


def by_algebra(speedup):
    return replace(passed(speedup), labels=(ALGEBRA,))


@pytest.fixture
def verdicts():
    return [
        verdict("1/1", passed(2.0)),
        verdict("1/2", passed(0.5), {OVERHEAD_BOUND: "a remark"}),
        verdict("1/3", passed(1.01, spread=0.05)),
        verdict("1/4", failed("wrong_output", "output is off by 1")),
        verdict("1/5", by_algebra(32.0)),
        verdict("1/6", passed(100.0), {"constant": "it does not depend on its input"}),
        verdict("1/7", None, unjudged="the reference is random"),
        verdict("1/8", failed("infra_error", "the driver is gone")),
        verdict("2/1", passed(3.0)),
        verdict("2/9", failed("rejected", "it patches the clock"), collection="theirs"),
    ]


@pytest.fixture
def summary(verdicts):
    extra = replace(verdicts[0].entry, key="1/9", place="1/9.py")
    return summarize_bench(
        [*(one.entry for one in verdicts), extra],
        verdicts,
        benchmark="kernelbench",
        command="adaexplore bench kernelbench",
        precision="fp32",
    )


def test_the_counts_of_a_group(summary):
    level = summary.groups[0]
    assert (level.collection, level.category) == ("ours", "level 1")
    assert (level.answers, level.judged, level.unjudged, level.unfinished) == (9, 6, 1, 2)
    assert (level.right, level.faster) == (5, 3)  # 1.01 with an interval from 0.96 is not clear
    assert level.statuses == {"passed": 5, "wrong_output": 1}


def test_labelled_problems_are_apart_and_remarks_are_not(summary):
    level = summary.groups[0]
    assert (level.ordinary.judged, level.ordinary.right) == (5, 4)
    assert level.ordinary.like_for_like.geometric_mean == pytest.approx(
        (2 * 0.5 * 1.01 * 32) ** 0.25
    )
    assert level.labelled.judged == 1
    assert level.labelled.like_for_like.geometric_mean == pytest.approx(100)


def test_wrong_answers_count_in_fast_p_and_not_in_the_mean(summary):
    assert summary.groups[0].ordinary.like_for_like.fast_p == {1.0: 0.6, 1.5: 0.4, 2.0: 0.2}


def test_the_mean_is_there_without_algebra_too(summary):
    without = summary.groups[0].ordinary.without_algebra
    assert without.geometric_mean == pytest.approx((2 * 0.5 * 1.01) ** (1 / 3))
    assert without.fast_p[1.0] == 0.5  # of four
    assert summary.groups[1].ordinary.without_algebra is None


def test_a_collection_has_a_total_over_its_categories(summary):
    ours, theirs = summary.totals
    assert (ours.judged, ours.right, theirs.judged, theirs.right) == (7, 6, 1, 0)
    assert theirs.ordinary.like_for_like.geometric_mean is None


def printed(summary):
    console = Console(file=StringIO(), width=4096)
    console.print(bench_tables(summary))
    return console.file.getvalue()


def test_the_table_has_a_row_for_each_category_and_each_total(summary):
    lines = printed(summary).splitlines()
    starts = [line.split()[:3] for line in lines[1:5]]
    assert starts == [
        ["ours", "level", "1"],
        ["ours", "level", "2"],
        ["ours", "all", "10"],
        ["theirs", "level", "2"],
    ]
    assert lines[1].split()[-7:] == ["60", "%", "40", "%", "20", "%", "1", "of", "1", "100×"][-7:]
    assert "ours: 1 cannot be judged, 2 not judged yet of 10" in lines


def test_the_bars_count_every_verdict(summary):
    ours, theirs = chart.bars(summary)
    assert {part.kind: part.count for part in ours.parts} == {
        "faster": 4,
        "right": 2,
        "wrong_output": 1,
        "unjudged": 2,
    }
    assert [part.kind for part in theirs.parts] == ["rejected"]
    assert sum(part.share for part in ours.parts) == pytest.approx(1)


def test_the_dots_of_a_collection_rise(summary):
    ours, theirs = chart.charts(summary)[0].bands
    assert [dot.y for dot in ours.dots] == sorted((dot.y for dot in ours.dots), reverse=True)
    assert [dot.css for dot in ours.dots] == ["large"] * 4 + ["small", "unmeasured"]
    assert not theirs.dots
    assert ours.right == theirs.left


def test_the_page_escapes_reasons_and_says_why(verdicts, summary):
    page = render_bench(summary)
    assert "it patches the clock" in page
    assert "the reference is random" in page
    assert page.count("<circle") == 2 * 6
    evil = verdict("1/1", failed("wrong_output", "<script>alert(1)</script>"))
    assert "<script>" not in render_bench(replace(summary, verdicts=(evil,)))


def test_a_page_without_a_measurement_has_no_chart(verdicts):
    only = [verdicts[3]]
    page = render_bench(
        summarize_bench([only[0].entry], only, benchmark="b", command="c", precision="fp32")
    )
    assert "<svg" not in page
    assert "wrong output" in page


def test_verdicts_survive_json(verdicts):
    for one in verdicts:
        assert BenchVerdict.from_json(one.to_json()) == one


def test_their_verdicts_stand_beside_ours():
    theirs = [TheirVerdict("correct", True, 12.0, 2.0), TheirVerdict("mismatch", False), None]
    pairs = [(a, b) for a in theirs for b in (passed(2.0), failed("wrong_output", "off"))]
    verdicts = []
    for number, (recorded, evaluation) in enumerate(
        [*pairs, (TheirVerdict("?", None), pairs[0][1])]
    ):
        one = verdict(f"1/{number}", evaluation)
        verdicts.append(replace(one, entry=replace(one.entry, theirs=recorded)))
    verdicts.append(verdict("1/9", passed(1.5), collection="without"))
    summary = summarize_bench(
        [one.entry for one in verdicts], verdicts, benchmark="b", command="c", precision="fp32"
    )
    [beside] = summary.beside
    counts = (beside.both_right, beside.only_theirs, beside.only_ours, beside.neither)
    assert (beside.collection, counts) == ("ours", (1, 1, 1, 1))
    page = render_bench(summary)
    assert "correct, 12.0 µs, 2.00×" in page
    assert "In theirs alone" in page


def test_answers_that_are_left_out_are_named_with_the_reason():
    left_out = [LeftOutAnswer("ours", f"4/{i}", f"4_{i}.py", "no package") for i in (1, 2)]
    one = verdict("1/1", passed(2.0))
    summary = summarize_bench(
        [one.entry], [one], benchmark="b", command="c", precision="fp32", left_out=left_out
    )
    assert "ours: left out, 2: no package: 4_1.py, 4_2.py" in render_bench(summary)


def test_their_own_test_and_golden_times_are_counted_over_the_same_answers(verdicts):
    def told(verdict, *, right, called):
        theirs = TheirVerdict("tested", right=right, called=called)
        return replace(verdict, entry=replace(verdict.entry, theirs=theirs, golden_us=50.0))

    judged = [
        told(verdicts[0], right=True, called=True),
        told(verdicts[1], right=False, called=True),
        told(verdicts[3], right=True, called=True),
        told(verdicts[2], right=False, called=False),
        told(verdicts[6], right=True, called=True),
    ]
    summary = summarize_bench(
        [one.entry for one in judged], judged, benchmark="b", command="", precision="fp32"
    )
    [beside] = summary.beside
    assert (beside.answers, beside.called, beside.right_by_theirs) == (4, 3, 2)
    assert beside.over_golden == pytest.approx(50.0 / judged[0].evaluation.measured.time_us)
    assert summary.to_json()["beside"][0]["called"] == 3
    assert "75" in render_bench(summary)
