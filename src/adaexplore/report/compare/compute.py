"""The computation of a comparison.

Results of runs are compared by problem, at equal amounts of an axis, and never across environments,
precision classes, or measurements and estimates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from adaexplore.core.problem import Precision
from adaexplore.core.text.units import plural
from adaexplore.core.verdict.labels import set_apart
from adaexplore.report.averages import NO_KERNEL_SPEEDUP
from adaexplore.report.compare.arms import SearchArm
from adaexplore.report.compare.comparison import (
    ArmCurve,
    Checkpoint,
    Comparison,
    ProblemRow,
    RunGroup,
)
from adaexplore.report.compare.standings import RunsByProblem, checkpoint, curves, effort, found_by
from adaexplore.report.compare.traces import Axis, RunTrace, spelled

Choose = Callable[[float], Sequence[float]]
"""Returns the checkpoints for runs of a given length."""

CHECKPOINTS = (10, 25, 50, 100)


def checkpoints(steps: int) -> list[int]:
    """Return the checkpoints within `steps`, and the last step."""
    return sorted({*(at for at in CHECKPOINTS if at < steps), steps})


@dataclass(frozen=True, slots=True)
class _GroupKey:
    """The properties that comparable runs share."""

    labelled: bool
    precision: Precision
    environment: str
    estimated: bool


@dataclass(frozen=True, slots=True)
class _GroupRuns:
    """The runs of one group and the amounts of their comparison.

    `everything` has all problems, `common` those of every arm. `shortest` is the run with the least
    known length among these, `length` that length.
    """

    arms: Sequence[SearchArm]
    axis: Axis
    places: Sequence[float]
    everything: RunsByProblem
    common: RunsByProblem
    shortest: RunTrace
    length: float


def compare(
    arms: Sequence[SearchArm],
    axis: Axis,
    choose: Choose,
    *,
    at: Sequence[float] = (),
    notes: Sequence[str] = (),
    command: str = "",
) -> Comparison:
    """Return the comparison of these arms at equal amounts of `axis`; every run has steps.

    `at` sets the checkpoints; without it, `choose` sets them for the shortest run.
    """
    traces = [trace for arm in arms for trace in arm.traces]
    names = _problem_names(traces)
    labelled = {(trace.key, trace.environment) for trace in traces if set_apart(trace.labels)}

    def kind_of(trace: RunTrace) -> _GroupKey:
        problem = trace.problem
        return _GroupKey(
            labelled=(trace.key, trace.environment) in labelled,
            precision=problem.precision,
            environment=trace.environment,
            estimated=problem.target is not None,
        )

    kinds = sorted(dict.fromkeys(map(kind_of, traces)), key=lambda kind: kind.labelled)
    groups = []
    for kind in kinds:
        own = [SearchArm(a.name, tuple(t for t in a.traces if kind_of(t) == kind)) for a in arms]
        groups.append(
            _group(
                kind, _group_runs([arm for arm in own if arm.traces], axis, choose, at), names, at
            )
        )
    apart = dict.fromkeys(f"{kind.precision} on {kind.environment}" for kind in kinds)
    return Comparison(
        axis=axis,
        arms=tuple(arm.name for arm in arms),
        groups=tuple(groups),
        notes=(
            *notes,
            *_under_load(traces),
            *([f"not compared with each other: {'; '.join(apart)}"] if len(apart) > 1 else []),
        ),
        labels={names[t.key]: dict(t.labels) for t in traces if t.labels},
        command=command,
    )


def _problem_names(traces: Sequence[RunTrace]) -> dict[str, str]:
    """Return a name for every problem by its key; equal names get a number."""
    keys = {trace.key: trace.problem for trace in traces}
    taken: Counter[tuple[str, str]] = Counter()
    names = {}
    for key, problem in keys.items():
        taken[problem.name, problem.precision] += 1
        count = taken[problem.name, problem.precision]
        names[key] = problem.name if count == 1 else f"{problem.name} ({count})"
    return names


def _group_runs(
    arms: Sequence[SearchArm], axis: Axis, choose: Choose, at: Sequence[float]
) -> _GroupRuns:
    everything = _runs_by_problem(arms, axis, 0.0, common=False)
    field = _runs_by_problem(arms, axis, 0.0)
    traces = [t for sides in (field or everything).values() for side in sides for t in side]
    shortest = min(traces, key=lambda trace: trace.reach(axis))
    length = min(shortest.reach(axis), max(trace.used(axis) for trace in traces))
    places = sorted(set(at)) or choose(length)
    return _GroupRuns(arms, axis, places, everything, field, shortest, length)


def _runs_by_problem(
    arms: Sequence[SearchArm], axis: Axis, at: float, *, common: bool = True
) -> RunsByProblem:
    """Return the runs that reached `at`, by problem; if `common`, for problems of all arms."""
    field: dict[str, list[list[RunTrace]]] = {}
    for i, arm in enumerate(arms):
        for trace in arm.traces:
            if trace.reach(axis) >= at:
                field.setdefault(trace.key, [[] for _ in arms])[i].append(trace)
    return {key: sides for key, sides in field.items() if all(sides) or not common}


def _group(
    kind: _GroupKey, runs: _GroupRuns, names: Mapping[str, str], at: Sequence[float]
) -> RunGroup:
    arms, axis, places = runs.arms, runs.axis, runs.places
    fields = {place: _runs_by_problem(arms, axis, place) for place in places}
    last = fields[places[-1]]
    checkpoints: list[Checkpoint] = []
    rows: list[ProblemRow] = []
    claims, without, drawn = None, None, list[ArmCurve]()
    if not kind.estimated:
        checkpoints = [
            checkpoint(arms, field, place, partial(RunTrace.best, axis=axis, at=place))
            for place, field in fields.items()
            if field
        ]
        if runs.common:
            claims = checkpoint(arms, runs.common, None, lambda trace: trace.claimed)
            without = _without_algebra(arms, runs.common)
        if last:
            drawn = curves(arms, last, axis, places[-1])
        rows = list(_rows(runs, names))
    return RunGroup(
        environment=kind.environment,
        precision=kind.precision,
        labelled=kind.labelled,
        estimated=kind.estimated,
        places=tuple(places),
        checkpoints=tuple(checkpoints),
        claims=claims,
        claims_without=without,
        rows=tuple(rows),
        efforts=tuple(
            effort(
                arm.name,
                [t for sides in (last or runs.everything).values() for t in sides[i]],
                axis,
                places[-1],
            )
            for i, arm in enumerate(arms)
        ),
        curves=tuple(drawn),
        notes=tuple(_notes(runs, fields, rows, names, given=bool(at))),
    )


def _without_algebra(arms: Sequence[SearchArm], common: RunsByProblem) -> Checkpoint | None:
    """Return the claims without the problems that an arm won by algebra; None for all or none."""
    left = {
        key: sides
        for key, sides in common.items()
        if not any(trace.by_algebra for side in sides for trace in side)
    }
    if not left or len(left) == len(common):
        return None
    claims = checkpoint(arms, left, None, lambda trace: trace.claimed)
    return replace(claims, left_out=len(common) - len(left))


def _rows(runs: _GroupRuns, names: Mapping[str, str]) -> Iterator[ProblemRow]:
    for key, sides in runs.everything.items():
        for arm, side in zip(runs.arms, sides, strict=True):
            yield ProblemRow(
                problem=names[key],
                arm=arm.name,
                found=tuple(
                    found_by(
                        [
                            trace.best(runs.axis, place)
                            for trace in side
                            if trace.reach(runs.axis) >= place
                        ]
                    )
                    for place in runs.places
                ),
                claimed=found_by([trace.claimed for trace in side]),
                paired=key in runs.common,
            )


def _under_load(traces: Sequence[RunTrace]) -> list[str]:
    loaded = sum(trace.claimed is not None and trace.claimed.is_under_load for trace in traces)
    if not loaded:
        return []
    why = "measured while other programs kept the machine busy, so counted as 1.000×"
    return [f"{why}: the best of {plural(loaded, 'run')}"]


def _notes(
    runs: _GroupRuns,
    fields: Mapping[float, RunsByProblem],
    rows: Sequence[ProblemRow],
    names: Mapping[str, str],
    *,
    given: bool,
) -> Iterator[str]:
    """Yield notes for the reader of the figures."""
    arms, axis = runs.arms, runs.axis
    having: dict[str, list[str]] = {}
    for key, sides in runs.everything.items():
        if key not in runs.common:
            who = " and ".join(arm.name for arm, side in zip(arms, sides, strict=True) if side)
            having.setdefault(who, []).append(names[key])
    if not runs.common:
        yield "no problem has runs of every arm; --by with fewer keys makes fewer arms"
        return
    for who, some in having.items():
        yield f"left out of figures over problems, because only {who} has runs: {', '.join(some)}"
    traces = [t for sides in runs.common.values() for side in sides for t in side]
    longest = max((trace.used(axis) for trace in traces), default=0.0)
    if given:
        for place, field in fields.items():
            short = sum(trace.reach(axis) < place for trace in traces)
            if short:
                yield (
                    f"at {spelled(axis, place)}: {short} of {len(traces)} runs are shorter "
                    f"and left out; problems that remain: {len(field)}"
                )
    elif longest > runs.length:
        yield (
            f"compared up to {spelled(axis, runs.length)}, the length of {runs.shortest.path}; "
            f"the longest run has {spelled(axis, longest)} (--at leaves shorter runs out)"
        )
    if any(one.correct < one.runs for row in rows for one in row.found):
        yield f"a run without a correct kernel counts as {NO_KERNEL_SPEEDUP:g}×"
