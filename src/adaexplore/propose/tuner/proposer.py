"""Variants of a kernel in its numbers, chosen by Optuna's TPE."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from adaexplore.core.candidate import Candidate
from adaexplore.core.node import Node
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.proposer import Context, Dialogue
from adaexplore.core.verdict.evaluation import Evaluation, Passed, Timing
from adaexplore.propose.tuner.space import Space, space_of

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study

ORIGIN = "tuner"
VALUES = "parameters"
"""Key of a proposal's settings for the chosen values."""
UNFIT = "unfit"
"""Key of a proposal's settings for the rejected values, which do not fit the device."""

_RANDOM = 6  # first variants: TPE knows nothing yet
_MOST_UNFIT = 12  # rejected for one proposal
_MOST_ASKS = 20  # of the optimizer, which may name the same point repeatedly
_PENALTY = math.log(2)
"""Distance below the worst score at which a failed variant counts."""

Fits = Callable[[Candidate], bool]
"""Returns True if the device can run a candidate, decided without the device."""

Values = Mapping[str, int]


class Tuner:
    """The proposer of "tune" steps: one variant of the last node of the window.

    Tree-structured Parzen estimator (Bergstra et al. 2011) as in Optuna, over each parameter's
    choices in their order. It learns from the variants in the history and the kernel itself; a
    failed variant counts as half as fast as the slowest. The same context and seed give the same
    variant, always one that the history does not have.
    """

    def __init__(self, fits: Fits = lambda _: True) -> None:
        self._fits = fits

    def begin(self, context: Context) -> Dialogue:
        """Return a variant, or the reason why there is none; asks no model."""
        yield from ()
        base = context.window[-1]
        space = space_of(base.candidate, context.problem)
        tried = [(space.present, base.evaluation), *variants(base, context.history)]
        unfit = [
            values
            for node in context.history
            if node.parent_id == base.id and node.proposal.origin == ORIGIN
            for values in node.proposal.settings.get(UNFIT, [])
        ]
        passed_over: list[Values] = []
        language = base.candidate.language
        while len(passed_over) <= _MOST_UNFIT:
            values = _next(space, tried, [*unfit, *passed_over], context.seed)
            if values is None:
                break
            candidate = Candidate(space.variant(values), language)
            if self._fits(candidate):
                settings = {**base.proposal.settings, "form": "tune", VALUES: dict(values)}
                settings |= {UNFIT: passed_over} if passed_over else {}
                return Proposal(candidate, ORIGIN, _note(space, values), settings)
            passed_over.append(values)
        settings = {"form": "tune", UNFIT: passed_over}
        failure = "no variant is left to try that fits the device"
        return Proposal(Candidate("", language), ORIGIN, "nothing", settings, failure=failure)

    def close(self) -> None:
        """Do nothing."""


def variants(base: Node, history: Sequence[Node]) -> list[tuple[Values, Evaluation]]:
    """Return the variants of a kernel among some nodes, with their evaluations."""
    return [
        (node.proposal.settings[VALUES], node.evaluation)
        for node in history
        if node.parent_id == base.id
        and node.proposal.origin == ORIGIN
        and VALUES in node.proposal.settings
    ]


def _next(
    space: Space,
    tried: Sequence[tuple[Values, Evaluation]],
    unfit: Sequence[Values],
    seed: int,
) -> Values | None:
    """Return the next point to try, None if none is left."""
    known = {_key(values) for values, _ in tried} | {_key(values) for values in unfit}
    if len(known) >= space.size:
        return None
    from optuna.trial import TrialState

    study, domains = _study(space, tried, unfit, seed)
    choices = {parameter.name: parameter.choices for parameter in space.parameters}
    for _ in range(_MOST_ASKS):
        trial = study.ask(domains)
        values = {name: choices[name][index] for name, index in trial.params.items()}
        if _key(values) not in known:
            return values
        study.tell(trial, state=TrialState.FAIL)  # seen before: ask for another
    return _nearest_unknown(space, tried, known)


def _study(
    space: Space,
    tried: Sequence[tuple[Values, Evaluation]],
    unfit: Sequence[Values],
    seed: int,
) -> tuple[Study, dict[str, BaseDistribution]]:
    """Return an optimizer that knows the tried points."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)  # else it reports every study
    domains: dict[str, BaseDistribution] = {
        parameter.name: optuna.distributions.IntDistribution(0, len(parameter.choices) - 1)
        for parameter in space.parameters
    }
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=_RANDOM)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    scores = [_score(evaluation) for _, evaluation in tried]
    worst = min((score for score in scores if score is not None), default=0.0) - _PENALTY
    told = [
        *(
            (values, worst if score is None else score)
            for (values, _), score in zip(tried, scores, strict=True)
        ),
        *((values, worst) for values in unfit),
    ]
    choices = {parameter.name: parameter.choices for parameter in space.parameters}
    for values, score in told:
        point = {name: choices[name].index(value) for name, value in values.items()}
        study.add_trial(optuna.trial.create_trial(params=point, distributions=domains, value=score))
    return study, domains


def _nearest_unknown(
    space: Space,
    tried: Sequence[tuple[Values, Evaluation]],
    known: set[tuple[tuple[str, int], ...]],
) -> Values | None:
    """Return an untried point, as few steps as possible from the best tried point."""
    scores = [_score(evaluation) for _, evaluation in tried]
    ranked = [-math.inf if score is None else score for score in scores]
    ring: list[Values] = [tried[ranked.index(max(ranked))][0]]
    seen = {_key(ring[0])}
    while ring:
        further: list[Values] = []
        for point in ring:
            for parameter in space.parameters:
                at = parameter.choices.index(point[parameter.name])
                for value in parameter.choices[max(at - 1, 0) : at + 2]:
                    near = {**point, parameter.name: value}
                    if _key(near) not in known:
                        return near
                    if _key(near) not in seen:
                        seen.add(_key(near))
                        further.append(near)
        ring = further
    return None


def _score(evaluation: Evaluation) -> float | None:
    """Return `ln` of a kernel's speed, None for a failed one."""
    if not isinstance(evaluation, Passed):
        return None
    timing = evaluation.timing
    return math.log(timing.speedup) if isinstance(timing, Timing) else -math.log(timing.time_us)


def _key(values: Values) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(values.items()))


def _note(space: Space, values: Values) -> str:
    """Return the numbers that differ from the kernel's own."""
    present = space.present
    changes = [f"{k} {present[k]} -> {v}" for k, v in values.items() if v != present[k]]
    return "; ".join(changes)
