"""Verified candidates put into a model, compared and timed end to end, and kept where they help."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from torch import nn

from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Precision
from adaexplore.core.replacement import CallOutcome, ModelOutcome, Ratio, Replacement
from adaexplore.model.calls import ModelCall
from adaexplore.model.kept import left_alone, refuse_unfit
from adaexplore.model.placements import Placements
from adaexplore.model.rank import CapturedGroup
from adaexplore.model.unseen import Difference, Original
from adaexplore.model.ways import Fastest, Stopwatch
from adaexplore.package.describe import describe_kernel
from adaexplore.package.imported import import_kernel
from adaexplore.problems.written import in_one_line
from adaexplore.sandbox.lock import device_lock

_NO_GAIN = "the model is not clearly faster with it"
_COMPILATIONS, _WITHOUT_ONE = 2, 1
"""Kinds of compilation to try with the winners, the original's fastest, and without one winner."""


@dataclass(frozen=True, slots=True)
class GroupWinner:
    """The winner for a group: its captured problem, and the source of the kernel."""

    problem: CapturedGroup
    source: str


def put_back(
    model: nn.Module,
    calls: Sequence[ModelCall],
    winners: Mapping[str, GroupWinner],
    *,
    precision: Precision,
    folder: Path,
    listen: Callable[[str], None] = lambda _: None,
) -> tuple[ModelOutcome, Placements]:
    """Put winners into a model, and keep those by which the model gets faster.

    `folder` gets the sources, which stay in use. `listen` is told what is done next. Raises
    `BadInputError` for a model that cannot be run; then no winner is in it.
    """
    device = refuse_unfit(model, calls)
    placements = Placements(model)
    with left_alone(model):
        listen("the original: its outputs on unseen inputs")
        with device_lock(device, exclusive=False):
            putting = _Putting(model, calls, placements, precision, device, folder, listen)
        for name, winner in winners.items():
            listen(f"{name}: tried on its workloads")
            with device_lock(device, exclusive=False):
                putting.add(name, winner)
        outcome = putting.outcome(winners)
    placements.put([one.name for one in outcome.kept])
    return outcome, placements


@dataclass(slots=True)
class _Trial:
    """The groups that are in place, and their measurements so far."""

    original: Fastest
    with_all: Fastest
    state: Fastest
    brought: dict[str, Ratio] = field(default_factory=dict)


class _Putting:
    """Candidates of groups, taken out again where they are wrong or do not help."""

    def __init__(
        self,
        model: nn.Module,
        calls: Sequence[ModelCall],
        placements: Placements,
        precision: Precision,
        device: str,
        folder: Path,
        listen: Callable[[str], None],
    ) -> None:
        self._model = model
        self._calls = calls
        self._device = device
        self._placements = placements
        self._folder = folder
        self._truth = Original(model, calls, precision, device)
        self._listen = listen
        self._stage = ""
        self._watch = Stopwatch(model, calls, placements, precision, device, self._timing)
        self._reasons: dict[str, str] = {}

    def _timing(self, way: str) -> None:
        self._listen(f"{self._stage}, {way}")

    def add(self, name: str, winner: GroupWinner) -> None:
        """Try a winner on every module of its group; note the reason where that fails."""
        try:
            package = self._package(name, winner)
            self._placements.add(name, package, winner.problem.homes)
        except BadInputError as error:
            self._leave_out(name, str(error))
        except Exception as error:  # noqa: BLE001 - whatever a kernel raises when it is tried
            self._leave_out(name, f"its kernel raised {in_one_line(error)}")

    def _package(self, name: str, winner: GroupWinner) -> ModuleType:
        plain = re.sub(r"\W", "_", name)
        with tempfile.TemporaryDirectory(prefix="adaexplore-original-") as scratch:
            described = describe_kernel(
                winner.problem.captured.problem, winner.source, plain, Path(scratch)
            )
            return import_kernel(described, self._folder)

    def outcome(self, winners: Mapping[str, GroupWinner]) -> ModelOutcome:
        """Compare and time the model with the winners, and return what stays."""
        counts = {name: self._placements.count(name) for name in winners}
        for name in self._placements.names:
            self._listen(f"{name}: the model's outputs with it")
            self._compare(name)
        self._stage = "the original"
        original = self._watch.fastest(())
        self._stage = "with the winners"
        kinds = original.compilations(_COMPILATIONS)
        with_all = self._watch.fastest(self._placements.names, kinds)
        trial = _Trial(original, with_all, with_all)
        self._leave_out_useless(trial)
        speedup, times_us = self._settled(trial)
        return ModelOutcome(
            speedup,
            self._call_outcomes(trial, times_us),
            tuple(
                Replacement(
                    name,
                    counts[name] or len(winner.problem.group.paths),
                    trial.brought.get(name),
                    self._reasons.get(name, ""),
                )
                for name, winner in winners.items()
            ),
        )

    def _settled(self, trial: _Trial) -> tuple[Ratio, list[float]]:
        """Return the speedup over the original and the times; take all winners out without one."""
        if trial.state.names:
            speedup, times_us = self._watch.ratio(trial.original, trial.state)
            reason = self._objection(trial, speedup)
            for name in trial.state.names:
                trial.brought.setdefault(name, speedup)
                if reason:
                    self._reasons[name] = reason
            if not reason:
                return speedup, times_us
        trial.state = trial.original
        return Ratio(1.0, 1.0, 1.0), [min(times.values()) for times in trial.original.times_us]

    def _objection(self, trial: _Trial, speedup: Ratio) -> str:
        """Return the reason to take all winners out, empty if there is none."""
        if not speedup.is_gain:
            return _NO_GAIN
        return self._wrong(trial.state.names)

    def _compare(self, name: str) -> None:
        """Take out a winner that makes the model's outputs on unseen inputs wrong."""
        try:
            wrong = self._wrong([name])
        except Exception as error:  # noqa: BLE001 - whatever a kernel raises inside the model
            wrong = f"the model with its kernel raised {in_one_line(error)}"
        if wrong:
            self._leave_out(name, wrong)

    def _wrong(self, names: Collection[str]) -> str:
        """Return how wrong the outputs are with some winners, empty where they are not."""
        worst = max(self._differences(names), key=lambda one: one.excess)
        if worst.is_same:
            return ""
        return (
            f"the model's outputs on unseen inputs are wrong by {worst.error:.1e} with it "
            f"(allowed: {worst.allowed:.1e}, the original: {worst.own_error:.1e})"
        )

    def _differences(self, names: Collection[str]) -> list[Difference]:
        with self._placements.only(names), device_lock(self._device, exclusive=False):
            return self._truth.differences(self._model, lambda: self._placements.runs)

    def _leave_out(self, name: str, reason: str) -> None:
        self._reasons[name] = reason
        self._placements.drop(name)

    def _leave_out_useless(self, trial: _Trial) -> None:
        """Take out each winner without which the model is as fast."""
        if len(trial.state.names) < 2:
            return
        for name in self._placements.names:
            self._stage = f"without {name}"
            kinds = trial.state.compilations(_WITHOUT_ONE)
            kinds |= trial.original.compilations(_WITHOUT_ONE)
            without = self._watch.fastest(trial.state.names - {name}, kinds)
            brought, _ = self._watch.ratio(without, trial.state)
            trial.brought[name] = brought
            if not brought.is_gain:
                self._reasons[name] = _NO_GAIN
                trial.state = without

    def _call_outcomes(self, trial: _Trial, times_us: Sequence[float]) -> tuple[CallOutcome, ...]:
        differences = self._differences(trial.state.names)
        return tuple(
            CallOutcome(
                call.name,
                before,
                time_us,
                way,
                found.error,
                found.own_error,
                found.agreeing,
                found.steps,
                after,
            )
            for call, before, after, time_us, way, found in zip(
                self._calls,
                trial.original.times_us,
                trial.with_all.times_us,
                times_us,
                trial.state.ways,
                differences,
                strict=True,
            )
        )
