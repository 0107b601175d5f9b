"""Reports on a run: a typed summary first; `terminal` and `html` only draw it."""

from __future__ import annotations

from adaexplore.report.headline import Headline, Verdict
from adaexplore.report.summary import RunInfo, Summary, summarize

__all__ = ["Headline", "RunInfo", "Summary", "Verdict", "summarize"]
