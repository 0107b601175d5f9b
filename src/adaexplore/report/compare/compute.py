"""Searches side by side, computed once; renderers only draw it.

What runs found is compared by problem, at equal amounts of what they used, and never across
environments, precision classes, or measurements and estimates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from adaexplore.core.problem import Precision
from adaexplore.report.averages import NO_KERNEL_SPEEDUP
from adaexplore.report.compare.arms import Arm
from adaexplore.report.compare.comparison import (
    ArmCurve,
    Checkpoint,
    Comparison,
    ProblemRow,
    RunGroup,
)
from adaexplore.report.compare.standings import RunsByProblem, checkpoint, curves, effort, found_by
from adaexplore.report.compare.traces import Axis, Trace, spelled

Choose = Callable[[float], Sequence[float]]
"""The checkpoints for runs of this length."""

CHECKPOINTS = (10, 25, 50, 100)


def checkpoints(steps: int) -> list[int]:
    """Those within `steps`, and the last step."""
    return sorted({*(at for at in CHECKPOINTS if at < steps), steps})


@dataclass(frozen=True, slots=True)
class _GroupKey:
    """What runs share that may be compared."""

    labelled: bool
    precision: Precision
    environment: str
    estimated: bool


@dataclass(frozen=True, slots=True)
class _GroupRuns:
    """The runs of one kind, and where to compare them.

    `everything` has all problems, `field` those of every arm. `shortest` is the run in it that is
    known least far, `length` how far.
    """

    arms: Sequence[Arm]
    axis: Axis
    places: Sequence[float]
    everything: RunsByProblem
    field: RunsByProblem
    shortest: Trace
    length: float


def compare(
    arms: Sequence[Arm],
    axis: Axis,
    choose: Choose,
    *,
    at: Sequence[float] = (),
    notes: Sequence[str] = (),
    command: str = "",
) -> Comparison:
    """The comparison of these arms, whose runs have steps, at equal amounts of `axis`.

    Without `at`, the checkpoints are those that are chosen for the shortest run.
    """
    traces = [trace for arm in arms for trace in arm.traces]
    names = _problem_names(traces)
    labelled = {(trace.key, trace.environment) for trace in traces if trace.labels}

    def kind_of(trace: Trace) -> _GroupKey:
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
        own = [Arm(a.name, tuple(t for t in a.traces if kind_of(t) == kind)) for a in arms]
        groups.append(
            _group(kind, _ground([arm for arm in own if arm.traces], axis, choose, at), names, at)
        )
    apart = dict.fromkeys(f"{kind.precision} on {kind.environment}" for kind in kinds)
    return Comparison(
        axis=axis,
        arms=tuple(arm.name for arm in arms),
        groups=tuple(groups),
        notes=(
            *notes,
            *([f"not compared with each other: {'; '.join(apart)}"] if len(apart) > 1 else []),
        ),
        labels={names[t.key]: dict(t.labels) for t in traces if t.labels},
        command=command,
    )


def _problem_names(traces: Sequence[Trace]) -> dict[str, str]:
    """A name for every problem by its key, with a number where several are called the same."""
    keys = {trace.key: trace.problem for trace in traces}
    taken: Counter[tuple[str, str]] = Counter()
    names = {}
    for key, problem in keys.items():
        taken[problem.name, problem.precision] += 1
        count = taken[problem.name, problem.precision]
        names[key] = problem.name if count == 1 else f"{problem.name} ({count})"
    return names


def _ground(arms: Sequence[Arm], axis: Axis, choose: Choose, at: Sequence[float]) -> _GroupRuns:
    everything = _field(arms, axis, 0.0, common=False)
    field = _field(arms, axis, 0.0)
    traces = [t for sides in (field or everything).values() for side in sides for t in side]
    shortest = min(traces, key=lambda trace: trace.reach(axis))
    length = min(shortest.reach(axis), max(trace.used(axis) for trace in traces))
    places = sorted(set(at)) or choose(length)
    return _GroupRuns(arms, axis, places, everything, field, shortest, length)


def _field(arms: Sequence[Arm], axis: Axis, at: float, *, common: bool = True) -> RunsByProblem:
    """The problems with the arms' runs that went so far; if `common`, those that every arm has."""
    field: dict[str, list[list[Trace]]] = {}
    for i, arm in enumerate(arms):
        for trace in arm.traces:
            if trace.reach(axis) >= at:
                field.setdefault(trace.key, [[] for _ in arms])[i].append(trace)
    return {key: sides for key, sides in field.items() if all(sides) or not common}


def _group(
    kind: _GroupKey, ground: _GroupRuns, names: Mapping[str, str], at: Sequence[float]
) -> RunGroup:
    arms, axis, places = ground.arms, ground.axis, ground.places
    fields = {place: _field(arms, axis, place) for place in places}
    last = fields[places[-1]]
    checkpoints: list[Checkpoint] = []
    rows: list[ProblemRow] = []
    claims, drawn = None, list[ArmCurve]()
    if not kind.estimated:
        checkpoints = [
            checkpoint(arms, field, place, partial(Trace.best, axis=axis, at=place))
            for place, field in fields.items()
            if field
        ]
        if ground.field:
            claims = checkpoint(arms, ground.field, None, lambda trace: trace.claimed)
        if last:
            drawn = curves(arms, last, axis, places[-1])
        rows = list(_rows(ground, names))
    return RunGroup(
        environment=kind.environment,
        precision=kind.precision,
        labelled=kind.labelled,
        estimated=kind.estimated,
        places=tuple(places),
        checkpoints=tuple(checkpoints),
        claims=claims,
        rows=tuple(rows),
        efforts=tuple(
            effort(
                arm.name,
                [t for sides in (last or ground.everything).values() for t in sides[i]],
                axis,
                places[-1],
            )
            for i, arm in enumerate(arms)
        ),
        curves=tuple(drawn),
        notes=tuple(_notes(ground, fields, rows, names, given=bool(at))),
    )


def _rows(ground: _GroupRuns, names: Mapping[str, str]) -> Iterator[ProblemRow]:
    for key, sides in ground.everything.items():
        for arm, side in zip(ground.arms, sides, strict=True):
            yield ProblemRow(
                problem=names[key],
                arm=arm.name,
                found=tuple(
                    found_by(
                        [
                            trace.best(ground.axis, place)
                            for trace in side
                            if trace.reach(ground.axis) >= place
                        ]
                    )
                    for place in ground.places
                ),
                claimed=found_by([trace.claimed for trace in side]),
                paired=key in ground.field,
            )


def _notes(
    ground: _GroupRuns,
    fields: Mapping[float, RunsByProblem],
    rows: Sequence[ProblemRow],
    names: Mapping[str, str],
    *,
    given: bool,
) -> Iterator[str]:
    """What a reader must know beside the figures."""
    arms, axis = ground.arms, ground.axis
    having: dict[str, list[str]] = {}
    for key, sides in ground.everything.items():
        if key not in ground.field:
            who = " and ".join(arm.name for arm, side in zip(arms, sides, strict=True) if side)
            having.setdefault(who, []).append(names[key])
    if not ground.field:
        yield "no problem has runs of every arm: --by with fewer keys makes fewer arms"
        return
    for who, some in having.items():
        yield f"in no figure over problems, since only {who} has runs of them: {', '.join(some)}"
    traces = [t for sides in ground.field.values() for side in sides for t in side]
    longest = max((trace.used(axis) for trace in traces), default=0.0)
    if given:
        for place, field in fields.items():
            short = sum(trace.reach(axis) < place for trace in traces)
            if short:
                yield (
                    f"at {spelled(axis, place)}: {short} of {len(traces)} runs do not go so far "
                    f"and are left out; problems left: {len(field)}"
                )
    elif longest > ground.length:
        yield (
            f"compared up to {spelled(axis, ground.length)}, as far as {ground.shortest.path} "
            f"goes; the longest run goes to {spelled(axis, longest)} (--at leaves shorter ones out)"
        )
    if any(one.correct < one.runs for row in rows for one in row.found):
        yield f"a run in which nothing is correct counts as {NO_KERNEL_SPEEDUP:g}×"
