"""The side of FlashInfer-Bench in a round trip: run by an interpreter that has flashinfer-bench.

    python flashinfer_side.py load DATASET     count definitions, workloads, solutions, traces
    python flashinfer_side.py build DATASET    build every solution with its own builder
    python flashinfer_side.py call DATASET     call them on the CPU, beside the references
    python flashinfer_side.py run OPTIONS      `flashinfer-bench run OPTIONS` in one process

The first three print one JSON object. Nothing here imports AdaExplore.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module, metadata
from typing import Any

_LARGEST = 1 << 27
"""Elements of the largest tensor that is drawn on the CPU."""


def main() -> None:
    """Do what the command line asks, and print the findings."""
    if sys.argv[1] == "run":
        run_in_one_process()
        return
    action, path = sys.argv[1:]
    actions: dict[str, Callable[[Any], dict[str, Any]]] = {
        "load": load,
        "build": build,
        "call": call,
    }
    dataset = import_module("flashinfer_bench.data").TraceSet.from_path(path)
    print(json.dumps({"version": _version()} | actions[action](dataset)))


def load(dataset: Any) -> dict[str, Any]:
    """Count what the benchmark's own models took."""
    kinds = ("solutions", "workloads", "traces")
    counts = {kind: sum(map(len, getattr(dataset, kind).values())) for kind in kinds}
    passed = [each for some in dataset.traces.values() for each in some if each.is_successful()]
    return {"definitions": len(dataset.definitions), **counts, "traces_passed": len(passed)}


def build(dataset: Any) -> dict[str, Any]:
    """Build every solution."""
    failed = {}
    built = 0
    for definition, solution in _solutions(dataset):
        try:
            _registry().build(definition, solution)
            built += 1
        except Exception as error:  # noqa: BLE001 - whatever a build raises is a finding
            failed[solution.name] = _line(error)
    return {"built": built, "failed": failed}


def call(dataset: Any) -> dict[str, Any]:
    """Call each solution and its reference on the CPU, on the smallest workload of random inputs.

    What the benchmark does beyond that needs a GPU: its runners synchronise and time by CUDA.
    """
    right, wrong, left_out = 0, {}, Counter[str]()
    for definition, solution in _solutions(dataset):
        workload = _smallest(dataset, definition)
        if isinstance(workload, str):
            left_out[workload] += 1
            continue
        try:
            error = _error(definition, solution, workload)
        except Exception as problem:  # noqa: BLE001 - a reference on random integers may raise
            wrong[definition.name] = _line(problem)
            continue
        if error:
            wrong[definition.name] = error
        else:
            right += 1
    return {"right": right, "wrong": wrong, "left_out": left_out}


def run_in_one_process() -> None:
    """Run the benchmark's command with the evaluator of its worker in the process of the command.

    Its worker gets tensors by CUDA's handles between processes, which not every machine has.
    """
    runner: Any = import_module("flashinfer_bench.bench.runner.persistent_runner")
    evaluators = import_module("flashinfer_bench.bench.evaluators")
    utils = import_module("flashinfer_bench.bench.utils")
    errors = import_module("flashinfer_bench.compile").BuildError
    statuses = import_module("flashinfer_bench.data").EvaluationStatus

    class OwnProcess(runner.PersistentSubprocessWorker):  # type: ignore[misc]
        """Evaluates as the worker's main function does."""

        def _start_worker(self) -> None:
            pass

        def is_healthy(self) -> bool:
            return True

        def run_solution(self, solution: Any, baseline: Any, cfg: Any) -> Any:
            known = self._baselines[baseline]
            inputs = [
                [each.clone() if hasattr(each, "clone") else each for each in some]
                for some in known.inputs
            ]
            failed = {"device": self._device, "log_path": None}
            try:
                made = _registry().build(known.definition, solution)
                return evaluators.resolve_evaluator(known.definition).evaluate(
                    definition=known.definition,
                    sol_runnable=made,
                    inputs=inputs,
                    ref_outputs=known.outputs,
                    ref_mean_latency_ms=known.mean_latency_ms,
                    cfg=cfg,
                    log_path=None,
                    device=self._device,
                )
            except errors as error:
                return utils.make_eval(
                    status=statuses.COMPILE_ERROR, extra_msg=_line(error), **failed
                )
            except Exception as error:  # noqa: BLE001 - as the worker does
                return utils.make_eval(
                    status=statuses.RUNTIME_ERROR, extra_msg=_line(error), **failed
                )

    runner.PersistentSubprocessWorker = OwnProcess
    import_module("flashinfer_bench.cli.main").cli()


def _error(definition: Any, solution: Any, workload: Any) -> str:
    """Return the difference that the benchmark's own measure finds; empty where it passes."""
    utils = import_module("flashinfer_bench.bench.utils")
    config = import_module("flashinfer_bench.bench").BenchmarkConfig()
    if hasattr(config, "resolve_eval_config"):  # after 0.1.2, tolerances are those of definitions
        config = config.resolve_eval_config(definition)
    inputs = utils.gen_inputs(definition, workload, device="cpu")
    reference = _registry().build_reference(definition)
    runs = [
        _as_list(made(*inputs)) for made in (reference, _registry().build(definition, solution))
    ]
    for expected, got in zip(*runs, strict=True):
        largest, _, exceeds, _ = utils.compute_error_stats(got, expected, config)
        if got.shape != expected.shape or got.dtype != expected.dtype or exceeds:
            return f"off by {largest}"
    return ""


def _smallest(dataset: Any, definition: Any) -> Any:
    """Return the smallest workload of those that need no file, or the reason for none."""
    workloads = [each.workload for each in dataset.workloads.get(definition.name, [])]
    if not workloads:
        return "the dataset has no workload"
    sizes = {}
    for workload in workloads:
        if all(given.type != "safetensors" for given in workload.inputs.values()):
            shapes = definition.get_input_shapes(workload.axes)
            sizes[max(_product(shape) for shape in shapes if shape is not None)] = workload
    if not sizes:
        return "its workloads need files of tensors"
    return sizes[min(sizes)] if min(sizes) <= _LARGEST else "its workloads are too large for a CPU"


def _product(shape: Any) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _solutions(dataset: Any) -> Iterator[tuple[Any, Any]]:
    for name, solutions in dataset.solutions.items():
        for solution in solutions:
            yield dataset.definitions[name], solution


def _registry() -> Any:
    return import_module("flashinfer_bench.compile").BuilderRegistry.get_instance()


def _as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple | list) else [result]


def _version() -> str:
    try:
        return metadata.version("flashinfer-bench")
    except metadata.PackageNotFoundError:
        return "a checkout"


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"


if __name__ == "__main__":
    main()
