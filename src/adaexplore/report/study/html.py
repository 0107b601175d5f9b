"""A study as one HTML page with links to the reports of its runs."""

from __future__ import annotations

from typing import Any

from adaexplore.report.campaign.html import report_link
from adaexplore.report.compare import chart
from adaexplore.report.compare import tables as compare_tables
from adaexplore.report.page import page
from adaexplore.report.study import heat, tables
from adaexplore.report.study.summary import StudySummary


def render_study(summary: StudySummary) -> str:
    """Return the whole page, for the study's folder. It runs no script."""
    return page("study.html.j2", **page_variables(summary))


def page_variables(summary: StudySummary) -> dict[str, Any]:
    """Return the variables of the study's template."""
    return {
        "summary": summary,
        "tables": tables,
        "compare_tables": compare_tables,
        "chart": chart,
        "heat": heat,
        "link": report_link,
    }
