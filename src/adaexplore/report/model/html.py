"""The ranking of a model's modules as one HTML page."""

from __future__ import annotations

from adaexplore.core.ranking import ModelRanking
from adaexplore.report.model import tables
from adaexplore.report.page import page


def render_ranking(ranking: ModelRanking) -> str:
    """Return the whole page. It runs no script."""
    return page("model.html.j2", ranking=ranking, tables=tables)
