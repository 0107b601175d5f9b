"""The chart of a campaign: the winners' speedups by category, or by precision class."""

from __future__ import annotations

from adaexplore.report.bands import BandsChart, Speed, bands_charts
from adaexplore.report.campaign.summary import CampaignSummary, Result


def charts(summary: CampaignSummary) -> list[BandsChart]:
    """Return a wide and a narrow chart of the winners; none where nothing was measured."""
    bands: dict[str, list[Speed]] = {}
    for result in summary.results:
        speeds = bands.setdefault(_band(result), [])
        if result.timing:
            speeds.append(Speed(result.name, result.timing, css_of(result)))
    return bands_charts(bands)


def describe(summary: CampaignSummary) -> str:
    """Return the chart's content in one sentence, for screen readers."""
    right = sum(result.claimed is not None for result in summary.results)
    return f"Speedups of the winners, logarithmic: {right} of {len(summary.results)} right."


def _band(result: Result) -> str:
    return result.category or result.precision


def css_of(result: Result) -> str:
    """Return the CSS class of a winner's mark."""
    if result.set_apart:
        return "unmeasured"
    return "small" if result.by_algebra else "large"
