"""Recorded runs side by side: their traces, and the comparison of the arms they make."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from adaexplore.core.ask import MANUAL
from adaexplore.core.errors import BadInputError
from adaexplore.core.node import Node
from adaexplore.core.settings.limits import parse_budget
from adaexplore.llm.budget import counted
from adaexplore.report.compare.arms import make_arms
from adaexplore.report.compare.comparison import Comparison
from adaexplore.report.compare.compute import checkpoints, compare
from adaexplore.report.compare.reported import ReportedRun, reported_run
from adaexplore.report.compare.traces import AXES, WHOLE, Axis, RunTrace, judged_on, points
from adaexplore.run.outcome.results import summary_of
from adaexplore.run.proposers import Plan
from adaexplore.run.starts import starts_digest
from adaexplore.search.headroom import stop_reason
from adaexplore.store import RunRecord, Store, is_run, read_run
from adaexplore.store.campaign import is_campaign, read_manifest
from adaexplore.store.published import is_published, published_runs

_AT = "write it as 10,25,50 (steps), 20evaluations, 0.5usd,2usd, 500ktok or 30min; or usd, tok, ..."
_UNITS: dict[str, Axis] = {
    "step": "steps",
    "evaluation": "evaluations",
    "evaluations": "evaluations",
    "tok": "tokens",
    "s": "seconds",
    **{axis: axis for axis in AXES},
}
_NO_FACETS = {
    *("device", "steps", "budget", "run", "record", "replay", "base_url", "model", "prompts"),
    *("memory_update", "allocation", "turn_steps", "first_steps", "target", "concurrency"),
    *("start_from", "inputs_seed"),
}
"""Fields of `Config` that make no arms: they name places, or do not change the search."""


def compare_runs(
    paths: Sequence[Path], *, by: Sequence[str] = (), at: str = "", command: str = ""
) -> Comparison:
    """Compare runs, and the runs of campaigns, by their arms; `command` is the line that does so.

    Raises `BadInputError` for runs that cannot be compared.
    """
    axis, amounts = parse_at(at)
    every, copies = _distinct(dict(_runs(paths)))
    theirs = [path for path in every if not is_run(path) and is_published(path)]
    recorded = [trace_of(path, arm) for path, arm in every.items() if path not in theirs]
    traces = [trace for trace in recorded if trace.points]
    reported = tuple(reported_in(path, traces) for path in theirs)
    if reported and not traces:
        return Comparison(axis, (), (), (), {}, command, reported)
    if not traces:
        raise BadInputError("none of these runs has a step: there is nothing to compare")
    for trace in traces:
        _require_used(trace, axis)
    arms, notes = make_arms(traces, [key.strip() for keys in by for key in keys.split(",")])
    notes += [f"{trace.path} has no step yet" for trace in recorded if not trace.points]
    notes += [f"{copy} is {first} once more, and left out" for copy, first in copies.items()]
    if len(arms) == 1:
        notes.append("there is one arm, so nothing to compare it with: --by says what makes arms")
    found = compare(arms, axis, chooser(axis), at=amounts, notes=notes, command=command)
    return replace(found, reported=reported)


def reported_in(path: Path, beside: Sequence[RunTrace] = ()) -> ReportedRun:
    """Return what a run of others reports, beside the runs of its problem that were measured."""
    with read_run(path) as directory:
        run, nodes = directory.store.run(), directory.store.nodes()
    source = run.problem.source.strip()
    alike = [trace for trace in beside if source and trace.problem.source.strip() == source]
    timings = [point.timing for trace in alike for point in trace.points if point.timing]
    measured = max((timing.speedup_eager for timing in timings), default=None)
    return reported_run(str(path), nodes, run.environment.gpu, measured)


def parse_at(text: str) -> tuple[Axis, list[float]]:
    """Parse the points of comparison: the axis, and the amounts if any are named.

    Raises `BadInputError`, with examples, for what is not understood.
    """
    if not text:
        return "steps", []
    if text in _UNITS:
        return _UNITS[text], []
    found = [_amount(part.strip()) for part in text.split(",")]
    axes = list(dict.fromkeys(axis for axis, _ in found))
    if len(axes) > 1:
        raise BadInputError(f"--at {text}: {' and '.join(axes)} are two axes; {_AT}")
    return axes[0], [amount for _, amount in found]


def _amount(part: str) -> tuple[Axis, float]:
    number = part.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    unit = part[len(number) :].strip()
    if unit.lower() in ("", "evaluation", "evaluations"):
        if not (number.isascii() and number.isdigit() and 0 < int(number) < 10**9):
            raise BadInputError(f"--at {part}: {_AT}")
        return _UNITS[unit.lower() or "steps"], float(number)
    try:
        limits = parse_budget(part)
    except BadInputError:
        raise BadInputError(f"--at {part}: {_AT}") from None
    amounts: dict[Axis, float | None] = {
        "steps": limits.steps,
        "usd": limits.usd,
        "tokens": limits.tokens,
        "seconds": limits.seconds,
    }
    return next((axis, amount) for axis, amount in amounts.items() if amount)


def _runs(paths: Iterable[Path]) -> Iterable[tuple[Path, str]]:
    """Yield runs as they are, and those of campaigns and of the published search in their place.

    Those of a study have their arm beside them, others an empty text.
    """
    for path in paths:
        if theirs := published_runs(path):
            yield from ((run, "") for run in theirs)
            continue
        if not is_campaign(path):
            yield path, ""
            continue
        entries = read_manifest(path)["order"]["entries"]
        there = [(path / entry["name"], entry.get("arm", "")) for entry in entries]
        there = [(run, arm) for run, arm in there if is_run(run)]
        if not there:
            raise BadInputError(f"{path} is a campaign without a run: none of its problems began")
        yield from there


def _distinct(every: Mapping[Path, str]) -> tuple[dict[Path, str], dict[Path, Path]]:
    """Return the runs without copies and exports of others; and those, with the run that stays."""
    first: dict[tuple[str, float, int | None], Path] = {}
    copies: dict[Path, Path] = {}
    for path in every:
        with read_run(path) as directory:
            run = directory.store.run()
        if run.created_at:  # of a run of the published search nobody knows it
            here = first.setdefault((run.problem.name, run.created_at, run.config.seed), path)
            if here != path:
                copies[path] = here
    return {path: arm for path, arm in every.items() if path not in copies}, copies


def trace_of(path: Path, arm: str = "") -> RunTrace:
    """Return a run as a comparison reads it; `arm` is its arm in a study."""
    with read_run(path) as directory:
        store, run = directory.store, directory.store.run()
        nodes = store.nodes()
        spent, unknown = _spent(store, nodes)
        summary = summary_of(store, path)
    return RunTrace(
        path=str(path),
        problem=run.problem,
        facets={**({"arm": arm} if arm else {}), **_facets(run, path)},
        environment=judged_on(run.problem, run.environment),
        labels=summary.labels,
        points=points(nodes, spent, summary.diversity),
        claimed=summary.headline.timing,
        by_algebra=summary.headline.by_algebra,
        ended=stop_reason(nodes, run.reference, run.config) is not None,
        unknown=unknown,
    )


def _facets(run: RunRecord, path: Path) -> dict[str, Any]:
    """All that may tell a run from others: its settings, and what it was asked to be."""
    plan = Plan.of(run)
    return {
        **run.config.model_dump(exclude=_NO_FACETS),
        "policy": run.config.policy_text,
        "proposer": "+".join(plan.proposers),
        "memory": run.config.memory or "none",
        "start_from": starts_digest(plan.starts),
        "prompts": plan.digest[:8] if plan.templates else "bundled",
        "language": run.problem.language,
        "folder": path.resolve().parent.name,
        "version": run.package_version,
        "commit": run.environment.commit[:8],
    }


def _spent(store: Store, nodes: Sequence[Node]) -> tuple[list[tuple[float, int]], frozenset[Axis]]:
    """Dollars and tokens of each step's calls, and which of them are not known of all.

    The calls of an ask that became no step count for the next one that did.
    """
    asks = {node.id: node.ask_id for node in nodes if node.ask_id is not None}
    ends = sorted((ask, step) for step, ask in asks.items())
    usd, tokens = dict.fromkeys(asks, 0.0), dict.fromkeys(asks, 0)
    unknown: set[Axis] = set()
    for call in store.calls():
        place = bisect(ends, (call.ask_id, 0))
        if place == len(ends):
            continue
        step, usage = ends[place][1], counted(call.prompt, call.reply)
        usd[step] += usage.cost_usd or 0.0
        tokens[step] += usage.input_tokens + usage.output_tokens
        if usage.cost_usd is None and call.reply.model != MANUAL:
            unknown.add("usd")
        if not call.prompt.messages and not call.reply.usage.input_tokens:
            unknown.add("tokens")
    return [(usd.get(node.id, 0.0), tokens.get(node.id, 0)) for node in nodes], frozenset(unknown)


def _require_used(trace: RunTrace, axis: Axis) -> None:
    """Raises `BadInputError` for a run that nobody can say it of how far it is on an axis."""
    if axis in trace.unknown:
        why = {
            "usd": "a call has no known price; compare at equal tokens: --at tok",
            "tokens": "it was exported without its prompts; compare at equal steps or seconds",
        }
        raise BadInputError(f"{trace.path}: {why[axis]}")
    if not trace.used(axis):
        raise BadInputError(
            f"{trace.path} used no {axis}: it cannot be compared at equal {axis}; leave it out, "
            "or compare at equal steps or seconds"
        )


def chooser(axis: Axis) -> Callable[[float], Sequence[float]]:
    """Return the choice of checkpoints for runs of a given length."""
    if axis in WHOLE:
        return lambda length: checkpoints(max(int(length), 1))
    return lambda length: sorted({_rounded(length * share) for share in (0.25, 0.5, 1.0)})


def _rounded(amount: float) -> float:
    """Two digits, rounded down: every run goes that far."""
    unit = 10.0 ** (math.floor(math.log10(amount)) - 1)
    return math.floor(amount / unit) * unit
