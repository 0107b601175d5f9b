"""An evaluation as JSON, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from adaexplore.core import codec
from adaexplore.core.verdict.evaluation import (
    QUOTED,
    Estimate,
    Evaluation,
    Failed,
    Fault,
    Mismatch,
    Passed,
    Timing,
    WorkloadTiming,
)
from adaexplore.core.verdict.uses import uses_to_json


def evaluation_to_json(evaluation: Evaluation) -> dict[str, Any]:
    """One flat object, the public form that `adaexplore evaluate --json` prints.

    Every key is always there; what does not apply is null. An infinity or NaN is a string.
    """
    passed = evaluation if isinstance(evaluation, Passed) else None
    failed = evaluation if isinstance(evaluation, Failed) else None
    timing = passed.measured if passed else None
    estimate = passed.timing if passed and isinstance(passed.timing, Estimate) else None
    feedback = failed.feedback if failed else None
    return {
        "status": evaluation.status,
        "precision": passed.precision if passed else None,
        "error": _number(evaluation.error),
        "absolute_error": _number(evaluation.absolute_error),
        "time_us": timing.time_us if timing else None,
        "time_ci_us": list(timing.time_ci_us) if timing else None,
        "baselines_us": dict.fromkeys(QUOTED) | dict(timing.baselines_us) if timing else None,
        "strongest": timing.strongest if timing else None,
        "speedup": timing.speedup if timing else None,
        "speedup_ci": list(timing.speedup_ci) if timing else None,
        "allowance": list(timing.allowance) if timing else None,
        "claim": timing.claim if timing and not timing.is_under_load else None,
        "too_noisy": timing.is_too_noisy if timing else None,
        "speedup_eager": timing.speedup_eager if timing else None,
        "speedup_compile": timing.speedup_compile if timing else None,
        "samples": timing.samples if timing else None,
        "waited": timing.waited if timing else None,
        "parent": _plain(timing.parent) if timing else None,
        "conditions": _plain(timing.conditions) if timing else None,
        "estimate": _plain(estimate),
        "labels": list(passed.labels) if passed else [],
        "profile": _plain(passed.profile) if passed else None,
        "roofline": _plain(passed.roofline) if passed else None,
        "descriptor": _plain(passed.descriptor) if passed else None,
        "workloads": [_workload_json(each) for each in passed.workloads] if passed else [],
        "uses": uses_to_json(passed.uses) if passed else [],
        "reason": failed.reason if failed else "",
        "loaded": failed.loaded if failed else None,
        "fault": _plain(feedback) if isinstance(feedback, Fault) else None,
        "mismatch": _plain(feedback) if isinstance(feedback, Mismatch) else None,
        "published": _plain(evaluation.published),
        "taken_over": _plain(evaluation.taken_over),
        "detail": evaluation.detail,
        "cost": asdict(evaluation.cost),
    }


def evaluation_from_json(data: Mapping[str, Any]) -> Evaluation:
    """Inverse of `evaluation_to_json`; what an older release did not write has its default."""
    if data["status"] == "passed":
        timings = {
            "timing": _timing(data),
            "workloads": list(map(_workload, data.get("workloads", ()))),
        }
        return codec.read(Passed, _fields(Passed, data) | timings)
    feedback = data.get("fault") or data.get("mismatch")
    return codec.read(Failed, _fields(Failed, data) | {"feedback": feedback})


def _fields(kind: type[Passed | Failed | Timing], data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `kind` that are there: null stands for the default."""
    return {f.name: data[f.name] for f in fields(kind) if data.get(f.name) is not None}


def _workload_json(workload: WorkloadTiming) -> dict[str, Any]:
    timing = workload.timing
    return {
        "name": workload.name,
        "timing": _plain(timing) if isinstance(timing, Timing) else None,
        "estimate": _plain(timing) if isinstance(timing, Estimate) else None,
        "roofline": _plain(workload.roofline),
    }


def _workload(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": data["name"], "timing": _timing(data), "roofline": data["roofline"]}


def _timing(data: Mapping[str, Any]) -> dict[str, Any]:
    if data.get("estimate"):
        return dict(data["estimate"])
    found = _fields(Timing, data.get("timing") or data)
    baselines_us = {name: us for name, us in found["baselines_us"].items() if us is not None}
    return found | {"baselines_us": baselines_us}


def _plain(value: Any) -> Any:
    """A noun as JSON knows it; None stays None."""
    return None if value is None else asdict(value, dict_factory=_numbers)


def _numbers(items: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    return {key: _number(value) for key, value in items}


def _number(value: Any) -> Any:
    """The value, or the name of a number that JSON has none for."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
