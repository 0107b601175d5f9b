"""Reports on runs, campaigns and comparisons: a typed summary first, then its renderers."""

from __future__ import annotations

from adaexplore.report.campaign.summary import CampaignSummary, Result
from adaexplore.report.compare.resample import PairedRuns, mean_intervals
from adaexplore.report.run.headline import Headline, Verdict
from adaexplore.report.run.html import render
from adaexplore.report.run.summary import Row, RunInfo, Summary, summarize

__all__ = [
    "CampaignSummary",
    "Headline",
    "PairedRuns",
    "Result",
    "Row",
    "RunInfo",
    "Summary",
    "Verdict",
    "mean_intervals",
    "render",
    "summarize",
]
