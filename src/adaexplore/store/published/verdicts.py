"""Verdicts of the published search, as evaluations that claim nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.core.text.units import duration_us, speedup
from adaexplore.core.verdict.evaluation import Failed, FailureStatus, Fault, PublishedVerdict
from adaexplore.store.published.layout import read_json

_PRINTED = re.compile(
    r"compiled=(?P<compiled>True|False) correctness=(?P<correctness>True|False)"
    r" metadata=(?P<metadata>\{.*\}) runtime=(?P<runtime>\S+)"
    r" runtime_stats=(?P<runtime_stats>\{.*\})",
    re.DOTALL,
)
_COMPILE = frozenset(
    {
        "CompilationError",
        "CompileTimeAssertionFailure",
        "MLIRCompilationError",
        "OutOfResources",
        "PTXASError",
        "SyntaxError",
        "UnsupportedLanguageConstruct",
    }
)
_US_OF_MS = 1000.0


def metrics_of(place: Path | Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the metrics of a step: JSON, or the text that older runs have.

    Raises `BadInputError` for a file that is neither.
    """
    if not isinstance(place, Path):
        return place
    if place.suffix == ".json":
        data = read_json(place)
        if isinstance(data, dict):
            return data
    else:
        found = _PRINTED.search(place.read_text(encoding="utf-8", errors="replace"))
        try:
            if found:
                return {name: ast.literal_eval(text) for name, text in found.groupdict().items()}
        except (ValueError, SyntaxError):
            pass
    raise BadInputError(f"{place}: no metrics of a kernel: compiled, correctness, metadata, ...")


def hardware_of(metrics: Mapping[str, Any]) -> str:
    """Return the name of the GPU that measured, empty where it is not there."""
    for name in ("runtime_stats", "metadata"):
        hardware = _mapping(metrics, name).get("hardware")
        if isinstance(hardware, str):
            return hardware
    return ""


def evaluation_of(metrics: Mapping[str, Any] | None) -> Failed:
    """Return a step's verdict as it was reported; a kernel reported correct is "reported"."""
    if metrics is None:
        return Failed("infra_error", "its measurements are not there")
    if metrics.get("compiled") and metrics.get("correctness"):
        return _correct(metrics)
    return _wrong(metrics)


def _correct(metrics: Mapping[str, Any]) -> Failed:
    stats = _mapping(metrics, "runtime_stats")
    ratio, time_ms = _number(stats.get("fast_p")), _number(metrics.get("runtime"))
    verdict = PublishedVerdict("")
    reason = "reported correct"
    if ratio and time_ms:
        time_us = time_ms * _US_OF_MS
        verdict = PublishedVerdict("", time_us, ratio * time_us)
        reason = f"reported {speedup(ratio)} over eager ({duration_us(time_us)})"
    hardware = hardware_of(metrics)
    place = f" on {hardware}" if hardware else ""
    return Failed("reported", f"{reason}{place}; not judged here", loaded=True, published=verdict)


def _wrong(metrics: Mapping[str, Any]) -> Failed:
    metadata = _mapping(metrics, "metadata")
    for stage in ("compilation_error", "runtime_error", "error"):
        if text := str(metadata.get(stage) or "").strip():
            name = str(metadata.get(f"{stage}_name") or "").rpartition(".")[2]
            return _raised(name, text, loaded=bool(metrics.get("compiled")))
    if not metrics.get("compiled"):
        return _failed("compile_error", "it did not compile", loaded=False)
    largest = metadata.get("max_difference")
    difference = f": largest difference {largest}" if largest else ""
    issue = str(metadata.get("correctness_issue") or "its output is wrong").strip()
    return _failed("wrong_output", f"{issue}{difference}")


def _raised(name: str, text: str, *, loaded: bool) -> Failed:
    lines = [line.strip() for line in text.splitlines() if line.strip(" ^\t")]
    last = lines[-1] if lines else text
    message = re.sub(rf"^(?:[\w.]+\.)?{re.escape(name)}: ", "", last) if name else last
    status: FailureStatus = "runtime_error"
    if "timeout" in text.lower():
        status = "timeout"
    elif name == "OutOfMemoryError" or "out of memory" in text:
        status = "out_of_memory"
    elif name in _COMPILE or not loaded:
        status = "compile_error"
    reason = f"{name}: {message}" if name else message
    fault = Fault(name, message)
    return _failed(status, reason, detail=text, feedback=fault, loaded=loaded)


def _failed(status: FailureStatus, reason: str, *, loaded: bool = True, **more: Any) -> Failed:
    return Failed(status, reason, loaded=loaded, published=PublishedVerdict(reason), **more)


def _mapping(metrics: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a part of the metrics, empty where it is missing or no mapping."""
    part = metrics.get(name)
    return part if isinstance(part, Mapping) else {}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and value > 0 else 0.0
