"""The ranking of a model's modules, and the result, as one HTML page."""

from __future__ import annotations

from adaexplore.core.ranking import ModelRanking
from adaexplore.core.replacement import ModelOutcome
from adaexplore.report.model import tables
from adaexplore.report.page import page


def render_model(ranking: ModelRanking, outcome: ModelOutcome | None = None) -> str:
    """Return the whole page, with the result if there is one. It runs no script."""
    return page("model.html.j2", ranking=ranking, outcome=outcome, tables=tables)
