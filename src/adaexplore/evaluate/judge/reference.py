"""The judge's side of a problem: the reference and its workloads."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from adaexplore.core.problem import PRECISIONS, Precision, Problem
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.core.verdict.labels import TRAINING_STEP
from adaexplore.evaluate.judge.workload import JudgedWorkload
from adaexplore.evaluate.timing.baselines.built import EAGER, by_speed, left_out, strongest
from adaexplore.evaluate.timing.baselines.trial import BaselineTrial
from adaexplore.evaluate.timing.combine import combined_roofline_facts, geometric_mean
from adaexplore.evaluate.timing.rounds import QUIET
from adaexplore.evaluate.truth.device_memory.turns import let_others_time
from adaexplore.evaluate.truth.labels import labels_of, overhead_label
from adaexplore.evaluate.wire.tensors import share
from adaexplore.sandbox.user.user_code import Instance

_KEPT = 2  # baselines that are built for a search; the others are for confirmations


class Reference:
    """A problem's reference on its device, run once in every precision class and in float64.

    A `brief` reference gives verdicts: eager is the only baseline, and times are rough unless a
    candidate is timed beside its parent. The judge holds one model for all workloads; `first` is
    the workload that candidates are loaded with. `beside` names the baselines that are timed beside
    candidates. A `lean` one needs the least memory: the fewest input sets, one set of weights.
    With `own_only`, no inputs but the problem's own are tried. `turn` keeps the turn for large work
    that large tensors take, until it is closed. `try_each` tries baselines by their names, each in
    a process of its own, before such a turn; without it, all are built in this process.

    Raises `BadProblemError`, in one line, for a reference that cannot be run or verified against.
    """

    def __init__(
        self,
        problem: Problem,
        folder: Path,
        *,
        brief: bool = False,
        lean: bool = False,
        own_only: bool = False,
        turn: ExitStack | None = None,
        try_each: Callable[[Sequence[str]], list[BaselineTrial]] | None = None,
    ) -> None:
        self.problem = problem
        self.brief = brief
        self._try_each = try_each
        self._trials: dict[str, BaselineTrial] = {}
        self.instance = Instance.judged(problem, folder)
        self.notes: list[str] = _notes_on_gradients(self.instance)
        self.beside: tuple[str, ...] = ()
        self.workloads: list[JudgedWorkload] = []
        self.took_s: Mapping[str, float] = {}
        self._waited = 0.0
        timed = len(problem.timed_workloads)
        turn = turn or ExitStack()
        first_set = 0
        for workload in problem.workloads:
            judged = JudgedWorkload(
                problem,
                self.instance,
                workload,
                self.notes,
                first_set=first_set,
                sharing=timed,
                turn=turn,
                before_turn=self._try,
                lean=lean,
                own_only=own_only,
            )
            self.workloads.append(judged)
            first_set += len(judged.sets)
        self.parameters = {n: share(t) for n, t in self.instance.model.state_dict().items()}

    @property
    def first(self) -> JudgedWorkload:
        """The first workload."""
        return self.workloads[0]

    @property
    def timed(self) -> list[JudgedWorkload]:
        """The workloads whose time counts: those that the problem names, or else the first."""
        return [w for w in self.workloads if w.workload.timed] or self.workloads[:1]

    @property
    def precision(self) -> Precision:
        """The loosest precision class that a candidate may have."""
        return self.first.runs.precision

    @property
    def errors(self) -> dict[Precision, float]:
        """The largest error of PyTorch's own run in each class, over all workloads."""
        found = [workload.truths.errors for workload in self.workloads]
        return {p: max(e[p] for e in found if p in e) for p in PRECISIONS if p in found[0]}

    @cached_property
    def labels(self) -> dict[str, str]:
        """The problem's own labels and those found (see `truth.labels`), each with the reason."""
        labels = dict(self.problem.labels)
        if gradients := self.instance.gradients:
            reached = ", ".join((*gradients.input_names, *gradients.parameters))
            labels[TRAINING_STEP] = f"a call goes forward and backward, to {reached}"
        for workload in self.timed:
            for label, why in labels_of(workload.runs, workload.truths).items():
                labels.setdefault(label, self._of(workload, why))
        return labels

    @property
    def offered(self) -> list[str]:
        """The names of the baselines that apply to a timed workload, but eager, which always does.

        None for a brief reference.
        """
        if self.brief:
            return []
        names = dict.fromkeys(name for w in self.timed for name in w.baselines.offered)
        return [name for name in names if name != EAGER]

    @property
    def every(self) -> tuple[str, ...]:
        """The baselines that can be timed on every timed workload."""
        first, *others = (w.baselines.built for w in self.timed)
        return tuple(name for name in first if all(name in other for other in others))

    def try_baselines(self) -> None:
        """Try the baselines that were not tried before a turn for large work."""
        self._try(self.offered)

    def complete(self) -> None:
        """Make the lazy parts now: timing needs the device for itself.

        The time slots of all workloads, the labels, and the baselines: the two fastest by their
        trials, or all that are offered where there were no trials. Others may time between them.
        """
        trials = self._trials.values()
        self.notes += [left_out(trial.baseline, trial.why) for trial in trials if trial.why]
        self._waited = max((trial.waited for trial in trials), default=0.0)
        for workload in self.timed:
            workload.baselines_us = {
                trial.baseline: trial.times_us[workload.name] for trial in trials if not trial.why
            }
        self._build(self._ranked() if trials else self.offered, _KEPT if trials else math.inf)
        for workload in self.timed:
            let_others_time(self.problem.device)
            workload.prepare_timing()
        let_others_time(self.problem.device)
        _ = self.labels

    def complete_baselines(self) -> bool:
        """Build the baselines that were tried and not kept; return whether there are more now."""
        before = self.every
        self._build(self._ranked(), math.inf)
        return self.every != before

    def time_baselines(self) -> None:
        """Time the baselines that are built, and choose those to time beside candidates.

        The caller holds the device.
        """
        for workload in self.timed:
            workload.time_baselines()
        waited = max(self._waited, *(w.baselines.waited for w in self.timed))
        if waited > QUIET:
            self.notes.append(_busy(waited))
        self.beside = strongest(
            [{name: w.baselines_us[name] for name in self.every} for w in self.timed]
        )

    def measure_limits(self) -> None:
        """Measure the roofline, and label what is bound by overhead; the caller holds the device.

        After `time_baselines`.
        """
        for workload in self.timed:
            workload.measure_roofline()
            eager_us = workload.baselines_us["eager"]
            found = overhead_label(workload.runs, workload.from_problem.inputs, eager_us)
            for label, why in found.items():
                self.labels.setdefault(label, self._of(workload, why))

    def mend_inputs(self) -> bool:
        """Restore inputs that a candidate changed; return whether there were any."""
        changed = [workload.mend_inputs() for workload in self.workloads]
        return any(changed)

    def are_slower(self, beside_us: Mapping[str, Mapping[str, float]]) -> bool:
        """Return whether a workload's baselines took much longer than at first, by workload."""
        return any(w.are_slower(beside_us[w.name]) for w in self.timed)

    def are_still_slower(self, beside_us: Mapping[str, Mapping[str, float]]) -> bool:
        """Return whether all workloads with slower baselines still have some, timed again."""
        slower = [w for w in self.timed if w.are_slower(beside_us[w.name])]
        return all(w.are_slower(w.time_again(beside_us[w.name])) for w in slower)

    def untimed_facts(self) -> ReferenceFacts:
        """Return the facts that need no measurement of time."""
        return ReferenceFacts(
            precision=self.precision,
            errors=self.errors,
            bounds=self.first.bounds,
            input_sets=tuple(name for w in self.workloads for name in w.set_names),
            parameters=sum(p.numel() for p in self.instance.model.parameters()),
            layers=self.instance.layers,
            outputs=self.first.output_forms,
            inputs=self.first.input_forms,
            labels=self.labels,
            notes=tuple(self.notes),
            workloads=tuple(workload.facts() for workload in self.workloads),
        )

    def facts(self) -> ReferenceFacts:
        """Return the facts about the reference, its baselines timed."""
        names = set.intersection(*(set(w.baselines_us) for w in self.timed))
        rooflines = [w.roofline.facts() for w in self.timed if w.roofline]
        products = [w.products for w in self.timed if w.products]
        return replace(
            self.untimed_facts(),
            baselines_us={
                name: geometric_mean([w.baselines_us[name] for w in self.timed])
                for name in self.timed[0].baselines_us
                if name in names
            },
            roofline=combined_roofline_facts(rooflines)
            if len(rooflines) == len(self.timed)
            else None,
            products=max(products, key=lambda each: each.flops, default=None),
            compiles="compile" in names,
            took_s=self.took_s,
        )

    def _try(self, names: Sequence[str]) -> None:
        missing = [name for name in names if name not in (EAGER, *self._trials)]
        if missing and self._try_each and not self.brief:
            asked = missing if self._trials else [EAGER, *missing]
            self._trials |= {trial.baseline: trial for trial in self._try_each(asked)}

    def _ranked(self) -> list[str]:
        """Return the baselines with known times, the fastest first."""
        return by_speed([workload.baselines_us for workload in self.timed])

    def _build(self, names: Sequence[str], most: float) -> None:
        """Build baselines in this order on all timed workloads, until there are `most` of them.

        With several workloads, the fastest of each is among them.
        """
        known = [w.baselines_us for w in self.timed if w.baselines_us]
        first = {min(names, key=us.__getitem__, default="") for us in known}
        count = 0
        for name in names:
            if count >= most and name not in first:
                continue
            if all(w.baselines.build(name) for w in self.timed):
                count += 1
            else:
                for workload in self.timed:  # the trial timed a wrong result
                    workload.baselines_us.pop(name, None)

    def _of(self, workload: JudgedWorkload, text: str) -> str:
        """Name the workload where there are several."""
        return f"{workload.name}: {text}" if len(self.workloads) > 1 else text


def _busy(waited: float) -> str:
    return (
        "the machine was busy when the baselines were timed: their threads waited for "
        f"{waited:.0%} of the time, so others may be the strongest; a confirmation times all again"
    )


def _notes_on_gradients(instance: Instance) -> list[str]:
    """Name what a training step leaves out."""
    left_out = instance.gradients.unreached if instance.gradients else ()
    return [f"no gradient reaches {', '.join(left_out)}: none is asked for"] if left_out else []
