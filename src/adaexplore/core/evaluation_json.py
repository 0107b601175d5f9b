"""An evaluation as JSON, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from adaexplore.core.descriptor import Descriptor
from adaexplore.core.evaluation import (
    QUOTED,
    Autotuning,
    Conditions,
    Cost,
    Estimate,
    Evaluation,
    Failed,
    Fault,
    KernelUse,
    Launch,
    Mismatch,
    Paired,
    Passed,
    Profile,
    PublishedVerdict,
    Roofline,
    TakenOver,
    Timing,
    TriedConfiguration,
    WorkloadTiming,
)
from adaexplore.core.uses import uses_from_json, uses_to_json


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
    cost = Cost(**data["cost"])
    error = None if data["error"] is None else float(data["error"])
    absolute = data.get("absolute_error")
    absolute = None if absolute is None else float(absolute)
    if data["status"] != "passed":
        feedback = _fault(data.get("fault")) or _mismatch(data.get("mismatch"))
        return Failed(
            status=data["status"],
            reason=data["reason"],
            detail=data["detail"],
            error=error,
            cost=cost,
            feedback=feedback,
            absolute_error=absolute,
            loaded=data.get("loaded", False),
            published=_published(data.get("published")),
            taken_over=_taken_over(data.get("taken_over")),
        )
    estimate, roofline = data.get("estimate"), data.get("roofline")
    descriptor = data.get("descriptor")
    return Passed(
        precision=data["precision"],
        error=float(data["error"]),
        timing=Estimate(**estimate) if estimate else _timing(data),
        cost=cost,
        detail=data["detail"],
        labels=tuple(data.get("labels", ())),
        profile=_profile(data.get("profile")),
        roofline=Roofline(**roofline) if roofline else None,
        descriptor=Descriptor.from_json(descriptor) if descriptor else None,
        workloads=tuple(map(_workload, data.get("workloads", ()))),
        uses=uses_from_json(data.get("uses", ())),
        absolute_error=absolute,
        published=_published(data.get("published")),
        taken_over=_taken_over(data.get("taken_over")),
    )


def _published(data: Mapping[str, Any] | None) -> PublishedVerdict | None:
    return PublishedVerdict(**data) if data else None


def _taken_over(data: Mapping[str, Any] | None) -> TakenOver | None:
    return TakenOver(**data) if data else None


def _workload_json(workload: WorkloadTiming) -> dict[str, Any]:
    timing = workload.timing
    return {
        "name": workload.name,
        "timing": _plain(timing) if isinstance(timing, Timing) else None,
        "estimate": _plain(timing) if isinstance(timing, Estimate) else None,
        "roofline": _plain(workload.roofline),
    }


def _workload(data: Mapping[str, Any]) -> WorkloadTiming:
    timing = _timing(data["timing"]) if data["timing"] else Estimate(**data["estimate"])
    roofline = Roofline(**data["roofline"]) if data["roofline"] else None
    return WorkloadTiming(data["name"], timing, roofline)


def _timing(data: Mapping[str, Any]) -> Timing:
    return Timing(
        time_us=data["time_us"],
        time_ci_us=_pair(data["time_ci_us"]),
        baselines_us={k: v for k, v in data["baselines_us"].items() if v is not None},
        speedup=data["speedup"],
        speedup_ci=_pair(data["speedup_ci"]),
        speedup_eager=data["speedup_eager"],
        samples=data["samples"],
        parent=_paired(data.get("parent")),
        conditions=_conditions(data.get("conditions")),
        speedup_compile=data.get("speedup_compile"),
        waited=data.get("waited") or 0.0,
        allowance=_pair(data.get("allowance") or [1.0, 1.0]),
        strongest=data.get("strongest") or "",
    )


def _paired(data: dict[str, Any] | None) -> Paired | None:
    return Paired(**data | {"speedup_ci": _pair(data["speedup_ci"])}) if data else None


def _conditions(data: dict[str, Any] | None) -> Conditions | None:
    return Conditions(**data | {"throttled": tuple(data["throttled"])}) if data else None


def _profile(data: Mapping[str, Any] | None) -> Profile | None:
    if data is None:
        return None
    kernels = tuple(KernelUse(**k | {"launch": _launch(k["launch"])}) for k in data["kernels"])
    autotunings = tuple(map(_autotuning, data.get("autotunings", ())))
    return Profile(kernels, data["device_us"], data["custom_share"], autotunings)


def _autotuning(data: dict[str, Any]) -> Autotuning:
    configurations = tuple(
        TriedConfiguration(tuple(each["values"]), each["time_us"])
        for each in data["configurations"]
    )
    parameters = tuple(data["parameters"])
    return Autotuning(**data | {"parameters": parameters, "configurations": configurations})


def _launch(data: dict[str, Any] | None) -> Launch | None:
    if data is None:
        return None
    return Launch(**data | {"grid": tuple(data["grid"]), "block": tuple(data["block"])})


def _fault(data: Mapping[str, Any] | None) -> Fault | None:
    return Fault(**data) if data else None


def _mismatch(data: dict[str, Any] | None) -> Mismatch | None:
    if data is None:
        return None
    index, got, expected = tuple(data["first_index"]), float(data["got"]), float(data["expected"])
    return Mismatch(**data | {"first_index": index, "got": got, "expected": expected})


def _plain(value: Any) -> Any:
    """A noun as JSON knows it; None stays None."""
    return None if value is None else asdict(value, dict_factory=_numbers)


def _numbers(items: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    return {key: _number(value) for key, value in items}


def _number(value: Any) -> Any:
    """The value, or the name of a number that JSON has none for."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _pair(values: list[float]) -> tuple[float, float]:
    low, high = values
    return (low, high)
