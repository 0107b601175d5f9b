"""Verdicts as traces: one line of JSON a workload, in the schema of FlashInfer-Bench.

SOL-ExecBench has the same schema and more statuses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from adaexplore.core.problem import Workload
from adaexplore.core.verdict.evaluation import (
    Evaluation,
    Failed,
    FailureStatus,
    Mismatch,
    Passed,
    Timing,
    WorkloadTiming,
)
from adaexplore.core.verdict.evaluation_json import evaluation_to_json
from adaexplore.core.version import __version__
from adaexplore.problems.flashinfer.schema import SAFETENSORS
from adaexplore.problems.solutions.delivery import Delivery, LeftOut

_STATUSES: Mapping[FailureStatus, str] = {
    "compile_error": "COMPILE_ERROR",
    "runtime_error": "RUNTIME_ERROR",
    "timeout": "TIMEOUT",
    "out_of_memory": "RUNTIME_ERROR",
    "wrong_output": "INCORRECT_NUMERICAL",
    "rejected": "RUNTIME_ERROR",
}


@dataclass(frozen=True, slots=True)
class TraceForm:
    """The parts of a trace in which benchmarks differ.

    `statuses` has theirs for each of ours; trouble of the machine says nothing of a kernel and has
    none. With `flags`, an error that is no number is 0 with a flag beside it.
    """

    statuses: Mapping[FailureStatus, str]
    flags: bool = False


FLASHINFER = TraceForm(_STATUSES)
SOL = TraceForm({**_STATUSES, "rejected": "REWARD_HACK"}, flags=True)

_ERROR_IS = (
    "the largest |out - reference| / |reference| in the Euclidean norm, against float64, over all "
    "workloads"
)


@dataclass(frozen=True, slots=True)
class Traces:
    """Traces as plain data, and the workloads that have none."""

    entries: tuple[dict[str, Any], ...]
    left_out: tuple[LeftOut, ...]


def traces_of(delivery: Delivery, form: TraceForm) -> Traces:
    """Return a trace for each workload that the verdict speaks of.

    A correct kernel has one for each workload that was timed: the format demands a time.
    """
    entries: list[dict[str, Any]] = []
    left_out: list[LeftOut] = []
    for name, workload in delivery.specification.workloads.items():
        found = _evaluation(delivery, name, form)
        if isinstance(found, str):
            left_out.append(LeftOut(name, found))
        else:
            entries.append(
                {
                    "definition": delivery.specification.name,
                    "workload": dict(workload),
                    "solution": delivery.name,
                    "evaluation": _placed(delivery) | found,
                }
            )
    return Traces(tuple(entries), tuple(left_out))


def _evaluation(delivery: Delivery, name: str, form: TraceForm) -> dict[str, Any] | str:
    """Return status, correctness and performance of one workload, or the reason for none."""
    verdict = delivery.verdict
    if verdict is None:
        return "nobody judged the kernel"
    judged = next((each for each in delivery.judged if each.name == name), None)
    if judged is None:
        return "the run left it out"
    if lacking := _not_read(delivery.specification.workloads[name], judged):
        return f"the run drew inputs in place of its file {lacking}, which was not there"
    if isinstance(verdict, Passed):
        return _passed(verdict, delivery, name, form)
    return _failed(verdict, delivery, name, form)


def _not_read(workload: Mapping[str, Any], judged: Workload) -> str:
    """Return a file of a workload that its inputs were not read from; empty for none."""
    inputs: Mapping[str, Mapping[str, Any]] = workload["inputs"]
    files = [given["path"] for given in inputs.values() if given.get("type") == SAFETENSORS]
    return next((file for file in files if PurePath(file).name not in judged.draw), "")


def _passed(passed: Passed, delivery: Delivery, name: str, form: TraceForm) -> dict[str, Any] | str:
    known = {each.name: each for each in _by_workload(passed, delivery)}
    found = known.get(name)
    if found is None:
        return "the kernel is right on it, and was not timed: a trace needs a time"
    timing = found.timing
    if not isinstance(timing, Timing):
        return "the kernel's time was estimated, not measured: a trace needs a time"
    one = replace(passed, timing=timing, roofline=found.roofline, workloads=())
    return {
        "status": "PASSED",
        "log": "",
        "correctness": _correctness(replace(one, profile=None, descriptor=None), delivery, form),
        "performance": {
            "latency_ms": timing.time_us / 1e3,
            "reference_latency_ms": timing.speedup_eager * timing.time_us / 1e3,
            "speedup_factor": timing.speedup_eager,
        },
    }


def _by_workload(passed: Passed, delivery: Delivery) -> Sequence[WorkloadTiming]:
    """Return the timing of each timed workload; where there is one, it is the summary."""
    if passed.workloads:
        return passed.workloads
    timed = [each for each in delivery.judged if each.timed] or delivery.judged[:1]
    return [WorkloadTiming(timed[0].name, passed.timing, passed.roofline)]


def _failed(failed: Failed, delivery: Delivery, name: str, form: TraceForm) -> dict[str, Any] | str:
    """Return the failure; a wrong output is that of one workload, any other the kernel's."""
    if failed.status == "infra_error":
        return f"the machine failed, not the kernel: {failed.reason}"
    mismatch = failed.feedback if isinstance(failed.feedback, Mismatch) else None
    if mismatch and "/" in mismatch.inputs and not mismatch.inputs.startswith(f"{name}/"):
        return f"the judge stopped at another: {mismatch.inputs}"
    status = _status(failed, form)
    wrong = status == "INCORRECT_NUMERICAL"
    return {
        "status": status,
        "log": "\n".join(filter(None, (failed.reason, failed.detail))),
        "correctness": _correctness(failed, delivery, form) if wrong else None,
        "performance": None,
    }


def _status(failed: Failed, form: TraceForm) -> str:
    """Return the benchmark's status; the form of an output has statuses of its own there."""
    if failed.status == "wrong_output" and failed.feedback is None:
        if " has dtype " in failed.reason:
            return "INCORRECT_DTYPE"
        if " has shape " in failed.reason or " output tensors; " in failed.reason:
            return "INCORRECT_SHAPE"
    return form.statuses[failed.status]


def _correctness(verdict: Evaluation, delivery: Delivery, form: TraceForm) -> dict[str, Any]:
    errors = {
        "max_relative_error": verdict.error,
        "max_absolute_error": verdict.absolute_error,
    }
    return {
        **(_flagged(verdict, errors) if form.flags else _named(errors)),
        "extra": {
            "adaexplore": {
                "version": __version__,
                "max_relative_error": _ERROR_IS,
                "verdict": evaluation_to_json(verdict),
                "problem_labels": dict(delivery.labels),
            }
        },
    }


_Errors = Mapping[str, float | None]


def _named(errors: _Errors) -> dict[str, float | str]:
    """Return the errors, with a name for what is no number: "NaN" for one that is not known."""
    numbers = {name: math.nan if error is None else error for name, error in errors.items()}
    names = {math.inf: "Infinity"}
    return {
        name: error if math.isfinite(error) else names.get(error, "NaN")
        for name, error in numbers.items()
    }


def _flagged(verdict: Evaluation, errors: _Errors) -> dict[str, float | bool]:
    """Return the errors that are known, with 0 and a flag for what is no number."""
    known = {name: error for name, error in errors.items() if error is not None}
    mismatch = verdict.feedback if isinstance(verdict, Failed) else None
    has_nan = isinstance(mismatch, Mismatch) and mismatch.nans > 0
    finite = all(map(math.isfinite, known.values()))
    return {
        **{name: error if math.isfinite(error) else 0.0 for name, error in known.items()},
        "has_nan": has_nan,
        "has_inf": not finite and not has_nan,
    }


def _placed(delivery: Delivery) -> dict[str, Any]:
    """Return the place and the time of the verdict."""
    machine = delivery.environment
    versions = {"torch": machine.torch, "triton": machine.triton, "cuda": machine.cuda}
    return {
        "environment": {
            "hardware": machine.gpu or machine.cpu or machine.device,
            "libs": {"adaexplore": __version__} | {k: v for k, v in versions.items() if v},
        },
        "timestamp": datetime.fromtimestamp(delivery.at, UTC).isoformat(),
    }
