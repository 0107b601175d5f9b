"""The part of the compiler proposer that needs torch; it runs in its own process."""

from __future__ import annotations

import inspect
import tempfile
from pathlib import Path
from typing import Any

import torch

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Precision, Problem
from adaexplore.core.text.units import plural
from adaexplore.propose.compiler import cpp_text
from adaexplore.propose.compiler.autotuned import (
    lock_benchmarks,
    run_and_autotune,
    skip_grouped_convolution_templates,
)
from adaexplore.propose.compiler.families import OWN, effective
from adaexplore.propose.compiler.forward import condition
from adaexplore.propose.compiler.graph import Traced, UnsupportedError, trace
from adaexplore.propose.compiler.identity import fingerprint
from adaexplore.propose.compiler.inductor import LoweringOptions, lower
from adaexplore.propose.compiler.reference import ReferenceFile
from adaexplore.propose.compiler.standalone import SizedGraph, write
from adaexplore.sandbox.compile_threads import compile_in_parallel
from adaexplore.sandbox.lock import device_lock
from adaexplore.sandbox.user.user_code import Instance


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Turn the first usable of several knob choices into a candidate.

    `request` has `problem` (see `Problem.to_json`), `tries` (each with `family`, `knobs`, the
    features it `needs` and optionally the `change` from its parent's knobs) and `known`,
    fingerprints of candidates to avoid. The reply has `source`, `family`, `knobs`, `note`,
    `features` of the graph and `passed_over` (reasons why other tries were not used, by family); or
    `failure`, one line. A known candidate is returned only if no try gives another.
    """
    problem = Problem.from_json(request["problem"])
    compile_in_parallel()
    if problem.device == "cpu":  # compilation there disturbs measurements of others
        with device_lock("cpu", exclusive=False):
            return _run(request, problem)
    return _run(request, problem)


def _run(request: dict[str, Any], problem: Problem) -> dict[str, Any]:
    if problem.device.startswith("cuda"):
        _set_precision(problem.precision)
        lock_benchmarks(problem.device)
        skip_grouped_convolution_templates()
    with tempfile.TemporaryDirectory() as folder:
        try:
            instance = Instance.of(problem, Path(folder))
            reference = ReferenceFile(problem.source, _forward_of(instance.model))
            traced = _traced_sizes(problem, instance, reference.forward_parameters())
        except (BadProblemError, UnsupportedError) as error:
            return {"failure": f"{problem.name}: {error}"}
        return _first_usable(request, problem, reference, traced)


def _traced_sizes(problem: Problem, instance: Instance, parameters: list[str]) -> list[Traced]:
    """Trace every size that is timed, once; other sizes are left to the reference's forward."""
    found: dict[str, Traced] = {}
    for workload in problem.timed_workloads:
        inputs = instance.inputs(problem.seed, workload)
        traced = trace(instance.model, tuple(inputs.args), inputs.kwargs, parameters)
        found.setdefault(condition(traced), traced)
    return list(found.values())


def _forward_of(model: torch.nn.Module) -> str:
    """Return the source of a model's `forward`, empty where there is none."""
    try:
        return inspect.getsource(inspect.unwrap(type(model).forward))
    except (OSError, TypeError):
        return ""


def _first_usable(
    request: dict[str, Any], problem: Problem, reference: ReferenceFile, sizes: list[Traced]
) -> dict[str, Any]:
    known = set(request["known"])
    passed_over: dict[str, str] = {}
    repeated: dict[str, Any] | None = None
    features = {feature for traced in sizes for feature in traced.features}
    for attempt in request["tries"]:
        family = attempt["family"]
        missing = set(attempt["needs"]) - features
        if missing:
            passed_over[family] = f"needs {', '.join(sorted(missing))}"
            continue
        try:
            source, note = _candidate(problem, reference, sizes, attempt)
        except UnsupportedError as error:
            passed_over[family] = str(error)
            continue
        found = {
            "source": source,
            "family": family,
            "knobs": attempt["knobs"],
            "note": note,
            "features": sorted(features),
            "passed_over": passed_over,
        }
        if fingerprint(source) not in known:
            return found
        passed_over[family] = "gives a candidate that is known"
        repeated = repeated or found
    if repeated is not None:
        return repeated
    reasons = "; ".join(f"{family}: {reason}" for family, reason in passed_over.items())
    return {"failure": f"nothing to propose ({reasons})", "passed_over": passed_over}


def _candidate(
    problem: Problem, reference: ReferenceFile, sizes: list[Traced], attempt: dict[str, Any]
) -> tuple[str, str]:
    """A candidate's source and a note in one line."""
    family, knobs = attempt["family"], effective(attempt["knobs"])
    options = LoweringOptions(
        config={key: value for key, value in knobs.items() if key not in OWN},
        fold=knobs.get("fold", False),
        pack=knobs.get("pack", "none"),
        autocast=knobs.get("autocast", False),
        dot_precision=knobs.get("dot_precision", ""),
    )
    on_gpu = problem.device.startswith("cuda")
    works = []
    for traced in sizes:
        lowered = lower(traced, options)
        launches = run_and_autotune(lowered, traced) if on_gpu else {}
        works.append(SizedGraph(traced, lowered, launches))
    chosen = ", ".join(f"{key}={value}" for key, value in knobs.items()) or "Inductor's defaults"
    title = (
        f"ModelNew for {problem.name!r}.\n\n"
        f"Generated by TorchInductor (torch {torch.__version__}),\n"
        "proposed by adaexplore's compiler proposer.\n"
        f"Family {family}: {chosen}.\n"
        "Calls of other sizes than those in `forward` are PyTorch's own work.\n"
    )
    written = write(title, reference, works, workspace=knobs.get("workspace", False))
    source = written.source
    for name, change in (("fast_exp", cpp_text.fast_exp), ("reciprocal", cpp_text.reciprocal)):
        source = change(source) if knobs.get(name) else source
    folded = f"; {written.folded} constants folded" if written.folded else ""
    done = attempt.get("change") or chosen
    kernels = plural(written.kernels, "kernel")
    return source, f"{family}: {done}; {kernels}{folded}"


def _set_precision(precision: Precision) -> None:
    """Set the precision of this process, which belongs to the proposal alone."""
    allowed = precision != "fp32"
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed
