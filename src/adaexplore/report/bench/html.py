"""A judged benchmark as one HTML page that opens offline."""

from __future__ import annotations

from adaexplore.report.bench import chart, tables
from adaexplore.report.bench.summary import BenchSummary
from adaexplore.report.page import page


def render_bench(summary: BenchSummary) -> str:
    """Return the whole page, to be written as UTF-8. It runs no script."""
    return page("bench.html.j2", summary=summary, tables=tables, chart=chart)
