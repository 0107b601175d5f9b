"""A campaign's results as one HTML page with links to the reports of its runs."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from adaexplore.report.campaign import chart, forest, tables
from adaexplore.report.campaign.summary import CampaignSummary, Result
from adaexplore.report.page import page


def render_campaign(summary: CampaignSummary) -> str:
    """Return the whole page, for the campaign's folder. It runs no script."""
    return page("campaign.html.j2", **page_variables(summary))


def page_variables(summary: CampaignSummary) -> dict[str, Any]:
    """Return the variables of the campaign's template."""
    return {
        "summary": summary,
        "tables": tables,
        "chart": chart,
        "forest": forest,
        "link": report_link,
    }


def report_link(result: Result) -> str:
    """Return the address of a run's report, beside the page."""
    return f"{quote(result.folder)}/report.html"
