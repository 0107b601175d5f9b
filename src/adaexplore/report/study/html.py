"""A study as one HTML page with links to the reports of its runs."""

from __future__ import annotations

from adaexplore.report.compare import chart
from adaexplore.report.compare import tables as compare_tables
from adaexplore.report.page import page
from adaexplore.report.study import heat, tables
from adaexplore.report.study.summary import StudySummary


def render_study(summary: StudySummary) -> str:
    """Return the whole page, for the study's folder. It runs no script."""
    return page(
        "study.html.j2",
        summary=summary,
        tables=tables,
        compare_tables=compare_tables,
        chart=chart,
        heat=heat,
    )
