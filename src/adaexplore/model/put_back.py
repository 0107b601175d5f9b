"""Verified candidates put into a model, compared and timed end to end, and kept where they help."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torch import nn

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Precision
from adaexplore.core.replacement import CallOutcome, ModelOutcome, Ratio, Replacement
from adaexplore.model.calls import ModelCall
from adaexplore.model.kept import left_alone, refuse_unfit
from adaexplore.model.placed import Placements
from adaexplore.model.program import program_of
from adaexplore.model.rank import CapturedGroup
from adaexplore.model.seen import examples
from adaexplore.model.unseen import Difference, Original
from adaexplore.model.ways import Fastest, Stopwatch
from adaexplore.problems.live import capture
from adaexplore.problems.optimized import Captured, Optimized
from adaexplore.problems.written import in_one_line

_NO_GAIN = "the model is not clearly faster with it"


@dataclass(frozen=True, slots=True)
class Winner:
    """The winner for a group: its captured problem, and the source of the kernel."""

    problem: CapturedGroup
    source: str


class _UnlikeError(Exception):
    """A module of a group that differs from the one that was captured."""


def put_back(
    model: nn.Module,
    calls: Sequence[ModelCall],
    winners: Mapping[str, Winner],
    *,
    precision: Precision,
    folder: Path,
) -> tuple[ModelOutcome, Placements]:
    """Put winners into a model, and keep those by which the model gets faster.

    `folder` gets the sources, which stay in use. Raises `BadInputError` for a model that cannot be
    run; then no winner is in it.
    """
    device = refuse_unfit(model, calls)
    placements = Placements()
    with left_alone(model):
        putting = _Putting(model, calls, placements, precision, device, folder)
        for name, winner in winners.items():
            putting.add(name, winner)
        outcome = putting.outcome(winners)
    placements.put([one.name for one in outcome.kept])
    return outcome, placements


@dataclass(slots=True)
class _Trial:
    """The groups that are in place, and their measurements so far."""

    original: Fastest
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
    ) -> None:
        self._model = model
        self._calls = calls
        self._placements = placements
        self._folder = folder
        self._truth = Original(model, calls, precision, device)
        self._watch = Stopwatch(model, calls, placements, precision, device)
        self._reasons: dict[str, str] = {}

    def add(self, name: str, winner: Winner) -> None:
        """Build a winner for every module of its group; note the reason where that fails."""
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        try:
            for path in winner.problem.group.paths:
                module = self._model.get_submodule(path)
                self._placements.add(name, module, self._built(path, winner, folder))
        except (_UnlikeError, BadProblemError) as error:
            self._leave_out(name, str(error))
        except Exception as error:  # noqa: BLE001 - whatever the constructor of a kernel raises
            self._leave_out(name, f"its kernel raised {in_one_line(error)}")

    def outcome(self, winners: Mapping[str, Winner]) -> ModelOutcome:
        """Compare and time the model with the winners, and return what stays."""
        for name in self._placements.names:
            self._compare(name)
        original = self._watch.fastest(())
        trial = _Trial(original, self._watch.fastest(self._placements.names))
        self._leave_out_useless(trial)
        speedup, times_us = self._settled(trial)
        return ModelOutcome(
            speedup,
            self._call_outcomes(trial, times_us),
            tuple(
                Replacement(
                    name,
                    len(winner.problem.group.paths),
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

    def _built(self, path: str, winner: Winner, folder: Path) -> Optimized:
        """Return the winner with the weights of a module that computes what the captured does."""
        captured = winner.problem.captured
        if path == winner.problem.group.paths[0]:
            return captured.optimized(winner.source, folder)
        with tempfile.TemporaryDirectory(prefix="adaexplore-alike-") as scratch:
            own = self._captured(path, winner.problem, Path(scratch))
            if program_of(own.problem.source) != program_of(captured.problem.source):
                raise _UnlikeError(f"{path} computes something else than the captured module")
            return own.optimized(winner.source, folder)

    def _captured(self, path: str, problem: CapturedGroup, folder: Path) -> Captured:
        found = examples(self._model, self._calls, [path])[path]
        return capture(
            self._model.get_submodule(path),
            folder=folder,
            name=problem.captured.problem.name,
            calls=[found[form] for form in problem.forms],
            checks=problem.captured.problem.checks,
        )

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
        with self._placements.only(names):
            return self._truth.differences(self._model)

    def _leave_out(self, name: str, reason: str) -> None:
        self._reasons[name] = reason
        self._placements.drop(name)

    def _leave_out_useless(self, trial: _Trial) -> None:
        """Take out each winner without which the model is as fast."""
        if len(trial.state.names) < 2:
            return
        for name in self._placements.names:
            without = self._watch.fastest(trial.state.names - {name})
            brought, _ = self._watch.ratio(without, trial.state)
            trial.brought[name] = brought
            if not brought.is_gain:
                self._reasons[name] = _NO_GAIN
                trial.state = without

    def _call_outcomes(self, trial: _Trial, times_us: Sequence[float]) -> tuple[CallOutcome, ...]:
        differences = self._differences(trial.state.names)
        return tuple(
            CallOutcome(call.name, before, time_us, way, found.error, found.own_error)
            for call, before, time_us, way, found in zip(
                self._calls,
                trial.original.times_us,
                times_us,
                trial.state.ways,
                differences,
                strict=True,
            )
        )
