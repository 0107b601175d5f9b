"""The page of a judged benchmark in a real browser: charts, bars, tables, no network."""

from __future__ import annotations

import pytest

from adaexplore.core.bench import BenchEntry, BenchVerdict
from adaexplore.core.verdict.evaluation import Evaluation, Failed, Passed, Timing
from adaexplore.report.bench.html import render_bench
from adaexplore.report.bench.summary import summarize_bench

HOSTILE = "</style><img src=x onerror=\"console.error('ran')\">"

pytestmark = pytest.mark.browser


def passed(speedup: float) -> Passed:
    ends = (speedup * 0.97, speedup * 1.03)
    baselines = {"eager": 900.0, "compile": 720.0}
    timing = Timing(720 / speedup, (1.0, 2.0), baselines, speedup, ends, speedup * 1.25, 100)
    return Passed("fp32", 1e-7, timing)


def rendered(collections: int = 7) -> str:
    verdicts = []
    for number in range(collections):
        for place in range(9):
            name = f"a collection with a name {number}"
            entry = BenchEntry(
                name, f"1/{place}", "level 1", f"{place}.py", f"problems/{place}.py", "", f"{place}"
            )
            wrong: Evaluation = Failed("wrong_output", f"off by {place} {HOSTILE}")
            found = passed(0.4 + place / 2) if place < 7 else wrong
            verdicts.append(BenchVerdict(entry, "fp32", "triton", "NVIDIA H200", found))
    return render_bench(
        summarize_bench(
            [verdict.entry for verdict in verdicts],
            verdicts,
            benchmark="kernelbench",
            command=f"adaexplore bench {HOSTILE}",
            precision="fp32",
        )
    )


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_opens_without_a_complaint_and_fits(open_page, width):
    watched = open_page(rendered(), width=width)
    assert watched.complaints == []
    assert [url for url in watched.requests if not url.startswith(("file:", "data:"))] == []
    page = watched.page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    [chart] = [one for one in page.locator("svg.chart").all() if one.is_visible()]
    assert chart.locator("circle").count() == 7 * 7
    assert page.locator(".bar").count() == 7


def test_the_parts_of_a_bar_are_as_wide_as_their_counts(open_page):
    page = open_page(rendered(1)).page
    parts = page.locator(".bar-parts i").all()
    assert [part.get_attribute("class") for part in parts] == ["faster", "right", "wrong_output"]
    assert [part.inner_text() for part in parts] == ["5", "2", "2"]
    widths = [part.bounding_box()["width"] for part in parts]
    assert widths[0] / widths[1] == pytest.approx(2.5, rel=0.05)
