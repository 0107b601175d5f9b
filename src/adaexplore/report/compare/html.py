"""A comparison as one HTML page that opens offline."""

from __future__ import annotations

from typing import Any

from adaexplore.report.compare import chart, reported, tables
from adaexplore.report.compare.comparison import Comparison
from adaexplore.report.page import page


def render_comparison(comparison: Comparison) -> str:
    """Return the whole page, to be written as UTF-8. It runs no script."""
    return page("compare.html.j2", **page_variables(comparison))


def page_variables(comparison: Comparison) -> dict[str, Any]:
    """Return the variables of the comparison's template."""
    return {"comparison": comparison, "tables": tables, "chart": chart, "reported": reported}
