"""A comparison as one HTML page that opens offline."""

from __future__ import annotations

from adaexplore.report.compare import chart, reported, tables
from adaexplore.report.compare.comparison import Comparison
from adaexplore.report.page import page


def render_comparison(comparison: Comparison) -> str:
    """Return the whole page, to be written as UTF-8. It runs no script."""
    names = {"tables": tables, "chart": chart, "reported": reported}
    return page("compare.html.j2", comparison=comparison, **names)
