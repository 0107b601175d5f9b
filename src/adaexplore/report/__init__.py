"""Reports on a run: a typed summary first; `terminal` and `html` only draw it."""

from __future__ import annotations

from adaexplore.report.run.headline import Headline, Verdict
from adaexplore.report.run.summary import RunInfo, Summary, summarize

__all__ = ["Headline", "RunInfo", "Summary", "Verdict", "summarize"]
