"""A campaign's results as one HTML page that links its runs' reports."""

from __future__ import annotations

from jinja2 import Environment, FunctionLoader, StrictUndefined

import adaexplore
from adaexplore.report import text
from adaexplore.report.campaign import CampaignSummary
from adaexplore.report.campaign_tables import averages_rows, reached, spending, title
from adaexplore.report.html import TEMPLATES


def render_campaign(summary: CampaignSummary) -> str:
    """The whole page; write it as UTF-8 into the campaign's folder. It runs no script."""
    environment = Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("campaign.html.j2").render(
        summary=summary,
        text=text,
        title=title,
        reached=reached,
        spending=spending,
        averages_rows=averages_rows,
        style=_asset("report.css"),
        version=adaexplore.__version__,
    )
    return page.encode(errors="replace").decode()


def _asset(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
