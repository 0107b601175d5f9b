"""Numbers and lines in readable form, the same in every renderer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from adaexplore.core.protocols.client import Usage
from adaexplore.core.text.feedback import baseline_name as baseline_name
from adaexplore.core.text.feedback import claim as claim
from adaexplore.core.text.feedback import estimate as estimate
from adaexplore.core.text.feedback import measured_speedup as measured_speedup
from adaexplore.core.text.feedback import quoted_speedups as quoted_speedups
from adaexplore.core.text.feedback import unproven as unproven
from adaexplore.core.text.units import amount, plural
from adaexplore.core.text.units import duration_s as duration_s
from adaexplore.core.text.units import duration_us as duration_us
from adaexplore.core.text.units import interval as interval
from adaexplore.core.text.units import relative_error as relative_error
from adaexplore.core.text.units import share as share
from adaexplore.core.text.units import speedup as speedup
from adaexplore.core.text.uses import describe_defects as describe_defects
from adaexplore.core.text.uses import describe_uses as describe_uses
from adaexplore.core.verdict.evaluation import Cost, Estimate, Evaluation, Failed, TakenOver, Timing
from adaexplore.report.calls import CallTotals

_MOST_PARTS, _LEAST_PART = 3, 0.1


def tokens(number: float) -> str:
    """Return a number of tokens such as `12.3 ktok`."""
    return amount(number, "tok")


def usage(counted: Usage) -> str:
    """Return the tokens of a call as its provider counts them; empty without a count."""
    if not counted.input_tokens and not counted.output_tokens:
        return ""
    return f"{tokens(counted.input_tokens)} in, {tokens(counted.output_tokens)} out"


def cost_usd(spent: CallTotals) -> str:
    """Return the known cost of calls, such as `0.0312 USD`; `-` for calls answered by hand."""
    if spent.by_hand == spent.calls:
        return "-"
    if spent.unpriced == spent.calls - spent.by_hand:
        return "unknown price"
    beside = f" and {spent.unpriced} of unknown price" if spent.unpriced else ""
    return usd(spent.cost_usd) + beside


def usd(amount: float) -> str:
    """Return money such as `2.31 USD` or `0.0312 USD`."""
    return f"{amount:.2f} USD" if amount >= 1 else f"{amount:.4f} USD"


def spent(some: CallTotals) -> str:
    """Return totals such as `7 calls, 31.2 ktok in, 4.10 ktok out, 0.0312 USD, 1 min 40 s`."""
    about = "about " if some.estimated else ""
    parts = [
        plural(some.calls, "call"),
        f"{about}{tokens(some.input_tokens)} in",
        f"{about}{tokens(some.output_tokens)} out",
    ]
    if some.calls > some.by_hand:
        parts.append(cost_usd(some))
    if some.waited_s:
        parts.append(f"{duration_s(some.waited_s)} waiting")
    return ", ".join(parts)


def cost_s(cost: Cost) -> str:
    """Return the time of evaluations and its largest parts, such as `50 s (being timed 30 s)`."""
    largest = sorted(cost.took_s.items(), key=lambda part: -part[1])[:_MOST_PARTS]
    parts = [f"{what} {duration_s(s)}" for what, s in largest if s >= _LEAST_PART * cost.wall_s]
    return duration_s(cost.wall_s) + (f" ({', '.join(parts)})" if parts else "")


def one_line(message: str, limit: int = 0) -> str:
    """Return `message` without line breaks and control characters, cut to `limit` if positive."""
    printable = "".join(char if char.isprintable() else " " for char in message)
    line = " ".join(printable.split())
    return f"{line[: limit - 1]}…" if 0 < limit < len(line) else line


def facts(mapping: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return a nested mapping as rows (dotted name, value); floats keep six digits."""
    rows: list[tuple[str, str]] = []
    for key, value in mapping.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            rows += facts(value, f"{name}.")
        else:
            rows.append(
                (name, _listed(value) if isinstance(value, list | tuple) else _plain(value))
            )
    return rows


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(map(_plain, values)) or "none"


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return " ".join(map(_plain, value.values()))
    if isinstance(value, list | tuple):
        return f"[{_listed(value)}]"
    return json.dumps(value, default=str, ensure_ascii=False)


def workload(timing: Timing | Estimate) -> str:
    """Return the speedup and time of one workload, such as `1.83× (1.80–1.86), 312 µs`."""
    if isinstance(timing, Estimate):
        return estimate(timing)
    ends = interval(timing.speedup_ci)
    return f"{speedup(timing.speedup)} ({ends}), {duration_us(timing.time_us)}"


def measured(evaluation: Evaluation) -> str:
    """Return the speedup with its interval, or the status of an evaluation without one."""
    timing = evaluation.measured
    if timing is None:
        return evaluation.status
    return f"{speedup(timing.speedup)} (95 % {interval(timing.speedup_ci)})"


def verdict_line(evaluation: Evaluation) -> str:
    """Return a verdict in one line: the claim and the time, or what is wrong."""
    origin = f" (of {evaluation.taken_over.machine})" if evaluation.taken_over else ""
    if isinstance(evaluation, Failed):
        return f"{evaluation.status}: {one_line(evaluation.reason, 60)}{origin}"
    timing = evaluation.measured
    if timing is None:
        return f"correct, not measured{origin}"
    return f"{claim(timing)}  {duration_us(timing.time_us)}{origin}"


def origin_of(taken: TakenOver) -> str:
    """Return where and when a verdict that was taken over was made."""
    when = datetime.fromtimestamp(taken.at, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"judged on {taken.machine}, {when}"
