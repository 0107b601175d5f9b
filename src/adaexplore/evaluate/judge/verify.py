"""Verifying a loaded candidate: its outputs on every input set of every workload."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from adaexplore.core.verdict.evaluation import Failed
from adaexplore.evaluate.judge.check import Reached, check_form, check_outputs
from adaexplore.evaluate.judge.conversation import Conversation, Stop
from adaexplore.evaluate.judge.load import give_parameters
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.workload import JudgedWorkload
from adaexplore.evaluate.timing.fresh import poison_all
from adaexplore.evaluate.truth.compare import Truth
from adaexplore.evaluate.truth.given.constants import MovedConstants
from adaexplore.evaluate.truth.truth import OtherWeights
from adaexplore.evaluate.wire import messages as wire
from adaexplore.evaluate.wire.kernel_messages import RunCaptured
from adaexplore.evaluate.wire.tensors import Layout, SharedTensor
from adaexplore.sandbox.process import WorkerDiedError
from adaexplore.sandbox.watchdog import LimitExceededError

_WeightsOf = Callable[[JudgedWorkload], OtherWeights | MovedConstants | None]


@dataclass(frozen=True, slots=True)
class Compared:
    """A right output: how right it is, and its layout in memory."""

    reached: Reached
    layout: Layout


@dataclass(frozen=True, slots=True)
class Way:
    """A way for a candidate to get other values for constant weights.

    Its constructor runs within `constants_moved` if `moved`; then it is `given` weights by name.
    """

    moved: bool
    given: Mapping[str, SharedTensor]


@dataclass(frozen=True, slots=True)
class VerifiedCandidate:
    """A correct candidate: how right it is, and the layout of its outputs by workload.

    `follows` is the way in which it takes other values for constant weights; None where there are
    no such weights, or it takes none.
    """

    reached: Reached
    layouts: Mapping[str, Layout]
    follows: Way | None = None


def verify(talk: Conversation, reference: Reference) -> VerifiedCandidate:
    """Compare outputs on all input sets, and under other weights; raise `Stop` for a wrong one.

    The candidate has been called on input set 0.
    """
    reached = Reached()
    layouts: dict[str, Layout] = {}
    needs_weights = False
    for workload in reference.workloads:
        for index in range(len(workload.sets)):
            if workload.first_set + index == 0:
                compared, needs_weights = compare_first(talk, reference)
            else:
                compared = compare(talk, workload, index)
            reached = reached.or_worse(compared.reached)
        _compare_again(talk, workload)
        layouts[workload.name] = compared.layout
    other, follows = verify_other_weights(talk, reference, needs_weights=needs_weights)
    reached = reached.or_worse(other)
    if reference.problem.is_shared:
        reached = reached.or_worse(_compare_captured(talk, reference))
    return VerifiedCandidate(reached, layouts, follows)


def compare(talk: Conversation, workload: JudgedWorkload, index: int) -> Compared:
    """Compare the output on an input set, after the call on the next one has been made."""
    if index == 0 and workload.first_set > 0:  # the call before was on another workload
        talk.ask(_run_on(talk, workload, 0))
    run = _run_on(talk, workload, (index + 1) % len(workload.sets))
    return _compare(talk, workload, run, workload.sets[index].truths, workload.set_name(index))


def _run_on(talk: Conversation, workload: JudgedWorkload, index: int) -> wire.RunOn:
    """Return the request for a call on an input set, which is the stage of the talk from now on."""
    talk.stage = f"running on the inputs {workload.set_name(index)!r}"
    return wire.RunOn(workload.first_set + index)


def _compare_again(talk: Conversation, workload: JudgedWorkload) -> None:
    """Compare outputs of an earlier call once more: a user may keep those of several calls."""
    earlier = len(workload.sets) - wire.KEPT_CALLS
    if earlier < 0 or sum(b.tensor.nbytes for b in workload.buffers) > wire.KEPT_BYTES:
        return
    where = f"{workload.set_name(earlier)}, looked at again after {wire.KEPT_CALLS} more calls"
    _compare(talk, workload, wire.DeliverAgain(), workload.sets[earlier].truths, where)


def compare_first(talk: Conversation, reference: Reference) -> tuple[Compared, bool]:
    """Compare on the first input set; return also whether the candidate needs given weights.

    The weights are first those that its constructor makes under the reference's seed, and the
    reference's own only where these give a wrong output: to give them at once would undo a
    constructor that folds a constant into a parameter.
    """
    try:
        compared = compare(talk, reference.first, 0)
        return compared, bool(reference.problem.weights)  # equal to stored ones by chance alone
    except Stop as stop:
        as_made = stop.verdict
    if as_made.status != "wrong_output" or not reference.parameters:
        raise Stop(as_made)
    problem = reference.problem
    try:
        talk.ask(wire.Rebuild(problem.seed, problem.mode))
        give_parameters(talk, reference.parameters)
        talk.ask(wire.RunOn(0))
        return compare(talk, reference.first, 0), True
    except Stop as stop:
        raise Stop(min(as_made, stop.verdict, key=_distance)) from stop
    except (TimeoutError, WorkerDiedError, LimitExceededError) as error:
        raise Stop(as_made) from error


def verify_other_weights(
    talk: Conversation, reference: Reference, *, needs_weights: bool
) -> tuple[Reached, Way | None]:
    """Compare a second model, constructed as the reference's was, under another seed.

    Weights that are the same under every seed have other values in it, in one way or another. A
    candidate that follows in none (None is returned for the way) has folded such weights in its
    constructor, or skips what they do: it must be right with the usual values.

    Training changes weights all the time, so a training step must follow them all. A module of a
    model shares its kernel with the modules that are alike: it gets the weights of each in turn. On
    the CPU it may pack them in every call, as Inductor does for oneDNN.
    """
    truths = reference.first.truths
    constants, other = truths.moved_constants, truths.other_weights
    every = other.parameters if other else {}
    talk.stage = "running with other weights"
    if reference.instance.gradients or reference.problem.is_shared:
        if constants is not None:
            return _after_update(talk, reference, moved_of, {**every, **constants.values})
        return _after_update(talk, reference, other_of, every) if other else (Reached(), None)
    if constants is not None:
        values = {**every, **constants.values}
        for way in (Way(True, values if needs_weights else constants.unmade), Way(False, values)):
            try:
                return _with_weights(talk, reference, moved_of, way), way
            except Stop:
                talk.ask(wire.Restore())
    if other is None:
        return Reached(), None
    usual = Way(False, every if needs_weights else {})
    return _with_weights(talk, reference, other_of, usual), None


def moved_of(workload: JudgedWorkload) -> MovedConstants | None:
    """Return a workload's truths with other values for constant weights."""
    return workload.truths.moved_constants


def other_of(workload: JudgedWorkload) -> OtherWeights | None:
    """Return a workload's truths with the weights of another seed."""
    return workload.truths.other_weights


def rebuild(talk: Conversation, reference: Reference, seed: int, way: Way) -> None:
    """Put a second model with other weights in the place of the first, until `Restore`."""
    talk.ask(wire.Rebuild(seed, reference.problem.mode, way.moved))
    give_parameters(talk, way.given)


def _after_update(
    talk: Conversation,
    reference: Reference,
    weights_of: _WeightsOf,
    values: Mapping[str, SharedTensor],
) -> tuple[Reached, Way]:
    """Compare after weights were changed in place between two calls.

    As an optimizer does it between two steps; those of a model's module through `.data`, which
    counts no version, so that a candidate follows them only where it keeps nothing of them.
    """
    problem, first = reference.problem, reference.first
    talk.ask(wire.Rebuild(problem.seed, problem.mode))
    where = "after weights were changed in place"
    if problem.is_shared:
        where += " through .data (keep nothing that is computed from weights)"
        give_parameters(talk, reference.parameters)
    talk.ask(wire.RunOn(first.first_set + first.own_index))
    give_parameters(talk, values, uncounted=problem.is_shared)
    reached = _compare_all(talk, reference, weights_of, where)
    talk.ask(wire.Restore())
    return reached, Way(False, values)


def _compare_captured(talk: Conversation, reference: Reference) -> Reached:
    """Compare a call that is captured in a CUDA graph, as a whole model may be."""
    talk.stage = "being captured in a CUDA graph, between calls with weights at other addresses"
    workload = reference.first
    number, truths = workload.first_set + workload.own_index, workload.from_problem.truths
    talk.ask(wire.RunOn(number))
    where = "a call captured in a CUDA graph"
    return _compare(talk, workload, RunCaptured(number), truths, where).reached


def _with_weights(
    talk: Conversation, reference: Reference, weights_of: _WeightsOf, way: Way
) -> Reached:
    """Compare a second model with other weights."""
    other = weights_of(reference.first)
    assert other is not None
    rebuild(talk, reference, other.seed, way)
    reached = _compare_all(talk, reference, weights_of, "with other weights")
    talk.ask(wire.Restore())
    return reached


def _compare_all(
    talk: Conversation, reference: Reference, weights_of: _WeightsOf, how: str
) -> Reached:
    """Compare on one input set of each workload that has truths with these weights."""
    reached = Reached()
    for workload in reference.workloads:
        other = weights_of(workload)
        if other is not None:
            run = wire.RunOn(workload.first_set + workload.own_index)
            talk.ask(run)
            where = f"{workload.set_name(workload.own_index)}, {how}"
            compared = _compare(talk, workload, run, other.truths, where)
            reached = reached.or_worse(compared.reached)
    return reached


def _compare(
    talk: Conversation,
    workload: JudgedWorkload,
    run: wire.Request[wire.Outputs],
    truths: list[Truth],
    where: str,
) -> Compared:
    """Make a call, and compare the outputs that are delivered: of `RunOn`, of the call before."""
    poison_all(workload.buffers)
    described = talk.ask(run).outputs
    check_form(described, workload.outputs)
    outputs = [shared.tensor for shared in workload.buffers]
    reached = check_outputs(workload, outputs, truths, where)
    return Compared(reached, tuple(out.strides for out in described))


def _distance(verdict: Failed) -> float:
    return math.inf if verdict.error is None else verdict.error
