"""Groups of runs: the arms of a comparison."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.core.text.hints import near
from adaexplore.report.compare.traces import RunTrace

ONLY_ASKED = frozenset({"folder", "seed", "version", "commit"})
"""Facets that form arms only on request, because they do not affect a search."""

_NAMES = frozenset({"arm", "policy", "proposer", "folder", "language"})
"""Facets whose values are shown without their key."""


@dataclass(frozen=True, slots=True)
class SearchArm:
    """An arm: runs that repeat each other."""

    name: str
    traces: tuple[RunTrace, ...]


def make_arms(
    traces: Sequence[RunTrace], by: Sequence[str] = ()
) -> tuple[list[SearchArm], list[str]]:
    """Return the arms, in the order of their first runs, and notes for the reader.

    Without `by`, the arms are those of the study that all runs belong to; elsewhere all facets in
    which two runs of one problem differ separate them. Raises `BadInputError` for a facet that no
    run has.
    """
    for key in by:
        _require(key, traces)
    of_study = ["arm"] if all("arm" in trace.facets for trace in traces) else []
    keys = list(dict.fromkeys(by)) or of_study or _differing(traces)
    members: dict[tuple[Hashable, ...], list[RunTrace]] = {}
    for trace in traces:
        members.setdefault(tuple(_value(trace, key) for key in keys), []).append(trace)
    arms = [SearchArm(_name(keys, group[0].facets), tuple(group)) for group in members.values()]
    notes = [
        f"{arm.name} has runs that differ in {', '.join(inside)}: add --by {inside[0]} to tell "
        "them apart"
        for arm in arms
        if (inside := _differing(arm.traces)) and keys != of_study
    ]
    for key in ("version", "commit"):
        values = {_value(trace, key) for trace in traces}
        if len(values) > 1 and key not in keys:
            notes.append(f"runs were made by {len(values)} {key}s of adaexplore (--by {key})")
            break
    return arms, notes


def _differing(traces: Iterable[RunTrace]) -> list[str]:
    """Return the facets in which runs of one problem differ, without those on request only."""
    by_problem: dict[str, list[RunTrace]] = {}
    for trace in traces:
        by_problem.setdefault(trace.key, []).append(trace)
    found: dict[str, None] = {}
    for group in by_problem.values():
        for key in group[0].facets:
            if len({_value(trace, key) for trace in group}) > 1 and key not in ONLY_ASKED:
                found[key] = None
    return list(found)


def _value(trace: RunTrace, key: str) -> Hashable:
    return str(trace.facets.get(key))


def _name(keys: Sequence[str], facets: Mapping[str, Any]) -> str:
    values = [(key, str(facets.get(key))) for key in keys]
    return ", ".join(v if k in _NAMES else f"{k}={v}" for k, v in values) or "all runs"


def _require(key: str, traces: Sequence[RunTrace]) -> None:
    known = list(dict.fromkeys(name for trace in traces for name in trace.facets))
    if key not in known:
        raise BadInputError(f"--by {key}: runs have nothing of that name; {near(key, known)}")
