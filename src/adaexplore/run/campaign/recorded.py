"""What is recorded of a campaign or a study, on any machine, also while it runs."""

from __future__ import annotations

from pathlib import Path

from adaexplore.report.campaign.summary import CampaignSummary
from adaexplore.report.study.summary import StudySummary
from adaexplore.run.campaign.job import ProgressRow
from adaexplore.run.campaign.run import CampaignRun
from adaexplore.run.study.records import study_summary


def recorded(path: Path, *, reports: bool) -> CampaignSummary | StudySummary:
    """Summarize what is recorded of a campaign; with `reports`, write those of its runs too."""
    run = CampaignRun(path, lambda _: ProgressRow())
    return shown_as(run, run.summary(reports=reports))


def shown_as(run: CampaignRun, summary: CampaignSummary) -> CampaignSummary | StudySummary:
    """Return the summary to show: that of a study if the campaign is one."""
    return study_summary(run.path, summary) if run.is_study else summary
