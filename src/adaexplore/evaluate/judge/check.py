"""Comparing a candidate's outputs with the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from adaexplore.core.problem import PRECISIONS, Precision, Tolerance
from adaexplore.core.verdict.evaluation import Failed, Mismatch
from adaexplore.evaluate.judge.conversation import Stop
from adaexplore.evaluate.judge.workload import JudgedWorkload
from adaexplore.evaluate.truth.compare import Deviation, Truth, share_within, unlikeness
from adaexplore.evaluate.truth.mismatch import find_mismatch
from adaexplore.evaluate.truth.precision import up_to
from adaexplore.evaluate.wire.messages import OutputDescription
from adaexplore.sandbox.user.values import NamedTensor


@dataclass(frozen=True, slots=True)
class Reached:
    """The strictest class that all outputs so far reach, and their largest error.

    Both errors are against float64, on inputs of the problem's own kind: `error` relative,
    `absolute` that of the worst element.
    """

    precision: Precision = PRECISIONS[0]
    error: float = 0.0
    absolute: float = 0.0

    def or_worse(self, other: Reached) -> Reached:
        """Return the looser class and the larger errors of two."""
        loosest = max(self.precision, other.precision, key=PRECISIONS.index)
        error, absolute = max(self.error, other.error), max(self.absolute, other.absolute)
        return Reached(loosest, error, absolute)


def check_form(described: Sequence[OutputDescription], wanted: Sequence[NamedTensor]) -> None:
    """Raise `Stop` unless number, class, shape, dtype and device are those of the reference's."""
    if len(described) != len(wanted):
        reason = f"{len(described)} output tensors; the reference returns {len(wanted)}"
        raise Stop(Failed("wrong_output", reason))
    for out, (path, reference) in zip(described, wanted, strict=True):
        for what, got, want in (
            ("shape", out.shape, tuple(reference.shape)),
            ("dtype", out.dtype, str(reference.dtype).partition(".")[2]),
            ("device", out.device, reference.device.type),
        ):
            if got != want:
                reason = f"{path} has {what} {got}; the reference's has {want}"
                raise Stop(Failed("wrong_output", reason))
        if out.class_name not in ("Tensor", "Parameter"):
            reason = f"{path} is of the tensor class {out.class_name}; return a plain tensor"
            raise Stop(Failed("rejected", reason))


def check_outputs(
    workload: JudgedWorkload, outputs: Sequence[torch.Tensor], truths: Sequence[Truth], where: str
) -> Reached:
    """Compare outputs with the truths; raise `Stop` where one is wrong."""
    reached = Reached()
    for out, truth in zip(outputs, truths, strict=True):
        reached = reached.or_worse(_check_output(workload, out, truth, where))
    return reached


def _check_output(workload: JudgedWorkload, out: torch.Tensor, truth: Truth, where: str) -> Reached:
    found = truth.deviation(out)
    precision, asked = truth.classify(found), workload.runs.precision
    if precision is None or precision not in up_to(asked):
        reason = _out_of_bounds(truth, found, asked)
        raise Stop(_wrong(workload, out, truth, where, reason, found))
    own = truth.from_problem
    if own:
        for tolerance in workload.tolerances:
            share = share_within(out, truth, tolerance)
            if share < tolerance.matched:
                reason = _out_of_tolerance(truth, tolerance, share)
                raise Stop(_wrong(workload, out, truth, where, reason, found))
        for likeness in workload.problem.checks.likenesses:
            if reason := unlikeness(out, truth, likeness):
                raise Stop(_wrong(workload, out, truth, where, reason, found))
    return Reached(precision, found.norm, found.absolute) if own else Reached(precision)


def _out_of_bounds(truth: Truth, found: Deviation, asked: Precision) -> str:
    loosest = max(truth.bounds, key=PRECISIONS.index)  # of those up to the class asked for
    bound = truth.bounds[loosest]
    reason = (
        f"{truth.path} is off by {found.norm:.2g} (relative, against float64); "
        f"{loosest} allows {bound.norm:.2g}"
    )
    if found.norm <= bound.norm:
        reason = (
            f"{truth.path} is right on average, but one element is off by "
            f"{found.element:.2g} of the output's scale; "
            f"{loosest} allows {bound.element:.2g}"
        )
    if loosest != asked:
        reason += f" (here {asked} would pass outputs without the work)"
    return reason


def _out_of_tolerance(truth: Truth, tolerance: Tolerance, share: float) -> str:
    return (
        f"{truth.path} misses the tolerance of {tolerance.source}: {share:.2%} of its elements are "
        f"within atol {tolerance.atol:g} and rtol {tolerance.rtol:g}; "
        f"it asks for {tolerance.matched:.2%}"
    )


def _wrong(
    workload: JudgedWorkload,
    out: torch.Tensor,
    truth: Truth,
    where: str,
    reason: str,
    found: Deviation,
) -> Failed:
    mismatch = _mismatch(workload, out, truth, where)
    reason += f"; {mismatch.pattern}" if mismatch.pattern else ""
    return Failed(
        "wrong_output",
        reason,
        error=found.norm,
        feedback=mismatch,
        absolute_error=found.absolute,
    )


def _mismatch(workload: JudgedWorkload, out: torch.Tensor, truth: Truth, where: str) -> Mismatch:
    others = {
        checked.name: other.value
        for checked in workload.sets
        for other in checked.truths
        if other.path == truth.path and other is not truth
    }
    ties = truth.excused(out)
    return find_mismatch(
        out, truth.value, output=truth.path, inputs=where, others=others, ties=ties
    )
