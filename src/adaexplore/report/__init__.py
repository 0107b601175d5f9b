"""Reports on runs, campaigns and comparisons: a typed summary first, then its renderers."""

from __future__ import annotations

from adaexplore.report.run.headline import Headline, Verdict
from adaexplore.report.run.summary import RunInfo, Summary, summarize

__all__ = ["Headline", "RunInfo", "Summary", "Verdict", "summarize"]
