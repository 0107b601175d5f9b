"""The report on a run as one HTML file that opens offline and makes no network request."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from typing import Any

from adaexplore.report import text
from adaexplore.report.axes import NARROW, WIDE
from adaexplore.report.page import asset, page
from adaexplore.report.run import chart, diversity
from adaexplore.report.run.embed import page_json
from adaexplore.report.run.summary import Summary

_SHOWN_APART = ("errors", "baselines_us", "notes", "labels")
SCRIPTS = ("source.js", "detail.js", "tree.js", "table.js", "chart.js", "main.js")
"""Scripts that are inlined, in this order, as one module."""


def render(summary: Summary) -> str:
    """Return the whole page, to be written as UTF-8.

    All data of the run is escaped. The page's own policy allows no script except the inlined one,
    identified by its hash.
    """
    return page("report.html.j2", **page_variables(summary))


def page_variables(summary: Summary) -> dict[str, Any]:
    """Return the variables of the report's template."""
    script = "\n".join(asset(name) for name in SCRIPTS)
    return {
        "summary": summary,
        "problem": summary.problem,
        "info": summary.info,
        "head": summary.headline,
        "gauge": _gauge(summary),
        "charts": [chart.make_chart(summary, size) for size in (WIDE, NARROW)],
        "diversity": diversity,
        "diversity_lines": diversity.lines(summary.diversity),
        "chart_description": chart.describe(summary),
        "reference_facts": _reference_facts(summary),
        "environment_facts": text.facts(_known(summary.info.environment.to_json())),
        "created": _moment(summary.info.created_at),
        "script": script,
        "script_hash": _csp_hash(script),
        "data": page_json(summary),
    }


def _csp_hash(script: str) -> str:
    """Return the hash by which a Content Security Policy admits one inline script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _gauge(summary: Summary) -> dict[str, float] | None:
    """Return the claimed interval and the baseline as percentages of a bar's width."""
    timing = summary.headline.timing
    if timing is None:
        return None
    low, high = timing.speedup_ci
    end = max(high, 1.0) * 1.12
    return {
        "baseline": 100 / end,
        "value": 100 * timing.speedup / end,
        "low": 100 * low / end,
        "high": 100 * high / end,
    }


def _reference_facts(summary: Summary) -> list[tuple[str, str]]:
    """Return the facts about the reference, with readable names for known keys."""
    facts = summary.info.reference
    baselines = facts.baselines_us.items()
    others = {name: value for name, value in facts.to_json().items() if name not in _SHOWN_APART}
    return [
        *((text.baseline_name(name), text.duration_us(time)) for name, time in baselines),
        *((f"PyTorch's own error, {n}", text.relative_error(e)) for n, e in facts.errors.items()),
        *((name.replace("_", " "), value) for name, value in text.facts(_known(others))),
    ]


def _known(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts without unknown ones: None, empty, or 0."""
    return {name: value for name, value in facts.items() if value or value is False}


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC" if seconds else ""
