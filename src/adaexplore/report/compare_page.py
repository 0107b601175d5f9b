"""A comparison as one HTML page that opens offline."""

from __future__ import annotations

from adaexplore.report import compare_chart, compare_tables
from adaexplore.report.comparison import Comparison
from adaexplore.report.html import page


def render_comparison(comparison: Comparison) -> str:
    """The whole page; write it as UTF-8. It runs no script."""
    return page(
        "compare.html.j2", comparison=comparison, tables=compare_tables, chart=compare_chart
    )
