"""The ranking of a model: its groups of modules, captured as problems, by what they can save."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

import torch
from torch import nn

from adaexplore.core.errors import BadInputError, BadProblemError
from adaexplore.core.problem import Checks, Language, Precision
from adaexplore.core.ranking import CallTime, ModelRanking, RankedGroup
from adaexplore.core.verdict.evaluation import BoundBy
from adaexplore.evaluate.timing.clock import clock_for
from adaexplore.evaluate.timing.roofline import RooflineModel, measure_peaks, work_of
from adaexplore.model.calls import ModelCall
from adaexplore.model.cuts import in_place
from adaexplore.model.cutting import cut_forwards
from adaexplore.model.groups import (
    Group,
    covers_of,
    forms_of,
    group_modules,
    joined,
    outside,
    typical,
    with_times,
)
from adaexplore.model.kept import left_alone, refuse_unfit
from adaexplore.model.profile import CallProfile, profile
from adaexplore.model.seen import Form, Seen, examples, look
from adaexplore.package.describe import CUTS
from adaexplore.problems.live import INTERFACE, capture
from adaexplore.problems.optimized import Captured, own_randomness
from adaexplore.runtime.cuts import Cut, CutForward, OperationRun
from adaexplore.sandbox.lock import device_lock
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.search.headroom import DISPROVED

_MOST_CAPTURED = 8
"""Capturing takes seconds, and the groups behind the first few save next to nothing."""


@dataclass(frozen=True, slots=True)
class CapturedGroup:
    """A group as a problem, with the forms of calls that are its workloads, in their order.

    `homes` are the modules of the model that a kernel is put into: those of the group, or those
    whose forwards have its runs of operations.
    """

    group: Group
    captured: Captured
    forms: tuple[Form, ...]
    homes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RankedModel:
    """A ranking, and its chosen groups as problems, by their names."""

    ranking: ModelRanking
    problems: Mapping[str, CapturedGroup] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """The folder of the captured problems, and what candidates must be."""

    folder: Path
    checks: Checks = field(default_factory=Checks)
    language: Language | None = None
    seed: int = 0


def precision_of(model: nn.Module) -> Precision:
    """Return the precision class that a model runs in: by its weights, and torch's settings."""
    kinds = {t.dtype for t in (*model.parameters(), *model.buffers()) if t.is_floating_point()}
    if kinds & {torch.float16, torch.bfloat16}:
        return "half"
    return "fp32" if torch.get_float32_matmul_precision() == "highest" else "tf32"


def rank_model(
    model: nn.Module, calls: Sequence[ModelCall], options: CaptureOptions
) -> RankedModel:
    """Run the calls of a model, and rank its groups of modules by what kernels can save.

    The model is left as it was. Raises `BadInputError`, in one line, for a model that cannot be
    run.
    """
    device = refuse_unfit(model, calls)
    cuts, seen, changed = _cut(model, calls, device)
    with left_alone(model), in_place(cuts.values()):
        profiles = profile(model, calls, device)
    groups = group_modules(model, seen, profiles, changed, _runs_of(cuts))
    with left_alone(model), in_place(cuts.values()):
        ranked = _Ranked(model, calls, options, seen, profiles, device, cuts)
        ranked.fill(groups)
    times = tuple(CallTime(one.name, one.time_us) for one in profiles)
    rows = sorted(ranked.rows, key=lambda row: (not row.is_chosen, -row.saves, -row.share))
    ranking = ModelRanking(
        type(model).__name__, device, options.checks.precision, times, tuple(rows)
    )
    return RankedModel(ranking, ranked.problems)


def recapture(
    model: nn.Module, calls: Sequence[ModelCall], ranking: ModelRanking, options: CaptureOptions
) -> RankedModel:
    """Capture the chosen groups of a ranking again; raise as `rank_model` does."""
    cuts, seen, _ = _cut(model, calls, refuse_unfit(model, calls))
    problems = {}
    locked = device_lock(ranking.device, exclusive=False)
    with left_alone(model), in_place(cuts.values()), locked:
        for row in ranking.chosen:
            if not seen.keys() >= set(row.paths):
                raise BadInputError(f"{row.name}: the calls do not reach all of its modules")
            forms = forms_of(row.paths, seen)
            if max(row.forms) >= len(forms):
                raise BadInputError(f"{row.name}: the calls are fewer than the run began with")
            known = list(forms.items())
            modules = {path: model.get_submodule(path) for path in row.paths}
            group = Group(
                row.kind,
                row.paths,
                dict(known[i] for i in row.forms),
                row.share,
                row.own_share,
                row.operations,
                covers={path: covers_of(path, module) for path, module in modules.items()},
            )
            path = typical(row.paths, seen)
            problems[row.name] = _captured(model, calls, options, row.name, group, path, cuts)
    return RankedModel(ranking, problems)


def _cut(
    model: nn.Module, calls: Sequence[ModelCall], device: str
) -> tuple[dict[str, CutForward], dict[str, Seen], list[str]]:
    """Return the forwards of modules with runs of operations, all calls, and what calls change."""
    with left_alone(model) as changed, device_lock(device, exclusive=False):
        seen = look(model, calls)
    with left_alone(model), device_lock(device, exclusive=False):
        cuts = cut_forwards(model, calls, seen, changed)
        if cuts:
            with in_place(cuts.values()):
                seen = look(model, calls)
    return cuts, seen, changed


def _runs_of(cuts: Mapping[str, CutForward]) -> dict[str, OperationRun]:
    return {joined(path, n): run for path, cut in cuts.items() for n, run in cut.runs.items()}


class _Ranked:
    """The rows of a ranking, filled from the largest group to the smallest."""

    def __init__(
        self,
        model: nn.Module,
        calls: Sequence[ModelCall],
        options: CaptureOptions,
        seen: Mapping[str, Seen],
        profiles: Sequence[CallProfile],
        device: str,
        cuts: Mapping[str, CutForward],
    ) -> None:
        self._model = model
        self._calls = calls
        self._options = options
        self._seen = seen
        self._profiles = profiles
        self._device = device
        self._cuts = cuts
        self.rows: list[RankedGroup] = []
        self.problems: dict[str, CapturedGroup] = {}

    def fill(self, groups: Sequence[Group]) -> None:
        """Add the rows of groups, and the problems of those that can be searched."""
        pending = list(groups)
        while pending:
            pending.sort(key=lambda group: -group.share)
            group = pending.pop(0)
            name = self._name(group)
            reason = group.reason or self._overlap(group)
            if reason and not group.reason:
                chosen = [problem.group for problem in self.problems.values()]
                if rest := outside(group, chosen, self._seen, self._profiles):
                    pending.append(rest)
                    continue
            if not reason and len(self.problems) == _MOST_CAPTURED:
                reason = f"{_MOST_CAPTURED} larger groups come first"
            if not reason:
                try:
                    self._capture(name, group)
                except BadProblemError as error:
                    reason = str(error)
                    if len(group.forms) > 1:  # such as a graph that is another for one token
                        pending += [self._only(group, form) for form in group.forms]
                        continue
            self._add(name, group, reason)

    def _capture(self, name: str, group: Group) -> None:
        path = typical(group.paths, self._seen)
        with device_lock(self._device, exclusive=False):
            self.problems[name] = _captured(
                self._model, self._calls, self._options, name, group, path, self._cuts
            )

    def _only(self, group: Group, form: Form) -> Group:
        one = replace(group, forms={form: group.forms[form]})
        return with_times(one, self._seen, self._profiles)

    def _add(self, name: str, group: Group, reason: str) -> None:
        known = list(forms_of(group.paths, self._seen))
        saves, bound_by = (0.0, None) if reason else self._saves(self.problems[name])
        self.rows.append(
            RankedGroup(
                name=name,
                kind=group.kind,
                paths=group.paths,
                calls=group.calls,
                operations=group.operations,
                share=group.share,
                own_share=group.own_share,
                saves=saves,
                bound_by=bound_by,
                reason=reason,
                forms=tuple(map(known.index, group.forms)),
            )
        )

    def _name(self, group: Group) -> str:
        base = re.sub(r"\W", "_", group.kind)
        count = sum(row.kind == group.kind for row in self.rows)
        return f"{base}-{count + 1}" if count else base

    def _overlap(self, group: Group) -> str:
        for name, chosen in self.problems.items():
            if group.overlaps(chosen.group):
                return f"overlaps with {name}, which takes more of the time"
        return ""

    def _saves(self, problem: CapturedGroup) -> tuple[float, BoundBy | None]:
        """Return the share of the model's time above the roofline of a group, and its limit."""
        limits = self._limits(problem.captured)
        floors = dict(zip(problem.forms, limits, strict=True))
        saved = fmean(
            self._saved_us(one, problem.group, floors) / one.time_us for one in self._profiles
        )
        slowest = max(limits, key=lambda limit: limit.floor_us)
        return saved, slowest.bound_by

    def _saved_us(
        self, one: CallProfile, group: Group, limits: Mapping[Form, RooflineModel]
    ) -> float:
        saved = 0.0
        for path in group.paths:
            counted = self._seen[path].forms[one.name]
            covered = {form: count for form, count in counted.items() if form in limits}
            if covered:
                part = sum(covered.values()) / sum(counted.values())
                time_us = part * one.modules[path].time_us
                floor_us = sum(limits[form].floor_us * count for form, count in covered.items())
                is_bound = floor_us <= DISPROVED * time_us
                saved += max(time_us - floor_us, 0.0) if is_bound else time_us
        return saved

    def _limits(self, captured: Captured) -> list[RooflineModel]:
        """Return the roofline of each workload of a problem."""
        problem, precision = captured.problem, self._options.checks.precision
        with (
            tempfile.TemporaryDirectory(prefix="adaexplore-rank-") as scratch,
            own_randomness(),
            device_lock(self._device, exclusive=False),
        ):
            instance = Instance.of(problem, Path(scratch))
            works = [
                work_of(instance, instance.inputs(problem.seed, workload), precision)
                for workload in problem.workloads
            ]
        most = max(work.bytes for work in works)
        with device_lock(self._device, exclusive=True):
            peaks = measure_peaks(self._device, clock_for(self._device), most, precision)
        return [RooflineModel(work, peaks, precision) for work in works]


def _captured(
    model: nn.Module,
    calls: Sequence[ModelCall],
    options: CaptureOptions,
    name: str,
    group: Group,
    path: str,
    cuts: Mapping[str, CutForward],
) -> CapturedGroup:
    """Capture the member at a path, with a workload for each form of calls.

    Beside the problem of a run lie the cut forwards of the group, by which packages find it.
    """
    found = examples(model, calls, [path])[path]
    problem = capture(
        model.get_submodule(path),
        folder=options.folder / name,
        name=name,
        calls=[found[form] for form in group.forms],
        language=options.language,
        checks=options.checks,
        seed=options.seed,
    )
    if not (options.folder / name / INTERFACE).exists():
        raise BadProblemError(
            "a value in its calls or its result is no plain data (a tensor, a number, text or "
            "None, in a collection), so no kernel could find its calls"
        )
    homes = group.paths
    if path in _runs_of(cuts):
        homes = tuple(each.rpartition(".")[0] for each in group.paths)
        data = [cut.to_json() for cut in Cut.all_of(cuts[home] for home in homes)]
        (options.folder / name / CUTS).write_text(json.dumps(data, indent=1), encoding="utf-8")
    return CapturedGroup(group, problem, tuple(group.forms), homes)
