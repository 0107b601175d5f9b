"""A campaign's results as one HTML page with links to the reports of its runs."""

from __future__ import annotations

from adaexplore.report.campaign import chart, tables
from adaexplore.report.campaign.summary import CampaignSummary
from adaexplore.report.page import page


def render_campaign(summary: CampaignSummary) -> str:
    """Return the whole page, for the campaign's folder. It runs no script."""
    return page("campaign.html.j2", summary=summary, tables=tables, chart=chart)
