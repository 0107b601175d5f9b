"""The page of a comparison in a real browser: curves, tables, nothing asked of any network."""

from __future__ import annotations

import pytest

from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation import Timing
from adaexplore.report.compare.arms import make_arms
from adaexplore.report.compare.compute import compare
from adaexplore.report.compare.html import render_comparison
from adaexplore.report.compare.traces import Point, RunTrace

HOSTILE = "</style><img src=x onerror=\"console.error('ran')\">"

pytestmark = pytest.mark.browser


def trace(policy: str, problem: str, *speedups: float) -> RunTrace:
    points = []
    for step, speedup in enumerate(speedups, 1):
        ends = (speedup * 0.98, speedup * 1.02)
        timing = Timing(720 / speedup, (1.0, 2.0), {"eager": 720.0}, speedup, ends, speedup, 100)
        used = dict.fromkeys(("steps", "evaluations", "usd", "tokens", "seconds"), float(step))
        points.append(Point(used, 1.0, True, timing))
    return RunTrace(
        path=f"runs/{policy}",
        problem=Problem(problem, problem, "triton", "cuda:0"),
        facets={"policy": policy},
        environment="NVIDIA H200, torch 2.11.0+cu130, triton 3.6.0",
        labels={},
        points=tuple(points),
        claimed=points[-1].timing,
    )


def rendered(policies: int = 2, problems: int = 7, name: str = "a problem with a long name") -> str:
    traces = [
        trace(f"policy-{i}", f"{name} {j}", 0.5, 1 + i / 3, 1 + i / 2 + j / 5)
        for i in range(policies)
        for j in range(problems)
    ]
    arms, notes = make_arms(traces)
    return render_comparison(
        compare(arms, "steps", lambda length: [1, length], notes=notes, command="compare " * 90)
    )


def test_comparison_opens_from_disk_without_errors_or_requests(open_page):
    watched = open_page(rendered(name=HOSTILE))

    assert watched.complaints == []
    assert [url.split(":")[0] for url in watched.requests].count("file") == 1
    assert all(url.startswith(("file:", "data:")) for url in watched.requests)
    assert watched.page.locator("img").count() == 0
    assert f"{HOSTILE} 0" in watched.page.locator("table").nth(1).inner_text()


def test_every_arm_has_its_own_curve_band_and_colour(open_page):
    chart = open_page(rendered(policies=4)).page.locator("svg.chart.wide")

    strokes = chart.locator("path.arm").evaluate_all(
        "paths => paths.map(path => getComputedStyle(path).stroke)"
    )
    assert len(set(strokes)) == 4
    for path in chart.locator("path.arm, path.band").all():
        box = path.bounding_box()
        assert box["width"] > 500
        assert box["height"] > 0


def test_the_faster_arm_ends_higher(open_page):
    page = open_page(rendered()).page

    tops = page.locator("svg.chart.wide path.arm").evaluate_all(
        "paths => paths.map(path => path.getBBox().y)"
    )
    assert tops[1] < tops[0]
    assert "policy-1 over policy-0 at 3 steps" in page.locator(".sentence").inner_text()
    assert "policy-1 is faster" in page.locator(".sentence").inner_text()


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_the_comparison_never_scrolls_sideways(open_page, width):
    page = open_page(rendered(policies=7), width=width).page

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("svg.chart").filter(visible=True).count() == 1
