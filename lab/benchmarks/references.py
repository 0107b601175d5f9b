"""Run the reference of every task of a benchmark once, on the CPU: what fails, and what it does.

    python lab/benchmarks/references.py kernelbenchx KernelBenchX -o OUT.jsonl [--small]

Draws the inputs of the first timed workload (--small: of the last one) and calls the reference,
each in a process of its own that may take --limit seconds. Writes a line for each task: the dtypes
of inputs and outputs, those of the results of all operations, and the reason of a failure. Prints
the tasks that the benchmark leaves out, the failures, and counts by category.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from adaexplore.core import BadProblemError, BenchmarkTask
from adaexplore.problems import benchmark_named, load_problem
from adaexplore.run import place_task
from adaexplore.sandbox import Instance, check_outputs, tensors_of


class Dtypes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the dtypes of the results of all operations."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: Counter[str] = Counter()

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = op(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.found[named(leaf)] += 1
        return result


def named(tensor: torch.Tensor) -> str:
    """Return the name of a tensor's dtype."""
    return str(tensor.dtype).removeprefix("torch.")


def run(task: BenchmarkTask, small: bool) -> dict[str, Any]:
    """Return the facts about one run of a reference."""
    with tempfile.TemporaryDirectory() as folder:
        files: dict[str, str] = {}
        place = place_task(task, "", files)
        for name, text in files.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_text(text)
        problem = load_problem(Path(folder) / place, device="cpu", language="cpp")
        instance = Instance.of(problem, Path(folder))
        workload = problem.workloads[-1] if small else problem.timed_workloads[0]
        inputs = instance.inputs(problem.seed, workload)
        given = tensors_of(inputs)
        kept = [tensor.clone() for tensor in given]
        with Dtypes() as operations, torch.no_grad():
            outputs = instance(inputs)
        found: dict[str, Any] = {
            "inputs": [f"{named(t)}{list(t.shape)}" for t in given],
            "outputs": [f"{named(t)}{list(t.shape)}" for _, t in outputs],
            "operations": dict(operations.found),
            "labels": [name for name, _ in problem.labels],
        }
        check_outputs(problem.name, outputs, instance.device)
        if not all(torch.equal(a, b) for a, b in zip(kept, given, strict=True)):
            found["why"] = "it changes its inputs"
        for path, tensor in outputs:
            if tensor.is_floating_point() and not tensor.isfinite().all():
                found["why"] = f"{path} is not finite in {(~tensor.isfinite()).double().mean():.0%}"
        return found


def in_process(task: BenchmarkTask, small: bool, into: Connection) -> None:
    """Send the facts about a task, or the reason of its failure."""
    torch.set_num_threads(2)
    try:
        into.send(run(task, small))
    except (BadProblemError, RuntimeError, ValueError, TypeError, MemoryError) as error:
        into.send({"why": str(error).splitlines()[0]})


def limited(task: BenchmarkTask, small: bool, limit_s: float) -> dict[str, Any]:
    """Run a task in a process of its own."""
    mine, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=in_process, args=(task, small, theirs)
    )
    process.start()
    theirs.close()
    try:
        found = mine.recv() if mine.poll(limit_s) else {"why": f"not done in {limit_s:g} s"}
    except EOFError:
        found = {"why": "its process died"}
    process.kill()
    process.join()
    return found


def main() -> None:
    """Run all tasks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("benchmark")
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--only", action="append", metavar="KEY", help="repeatable")
    asked = parser.parse_args()
    benchmark = benchmark_named(asked.benchmark)
    tasks, left_out = benchmark.tasks(asked.data), benchmark.excluded(asked.data)
    tasks = [task for task in tasks if not asked.only or task.key in asked.only]
    for one in left_out:
        print(f"left out: {one.key}: {one.reason}")
    ran: Counter[str] = Counter()
    with asked.output.open("w") as lines:
        for task in tasks:
            started = time.monotonic()
            found = limited(task, asked.small, asked.limit)
            found |= {"key": task.key, "seconds": round(time.monotonic() - started, 1)}
            lines.write(json.dumps(found) + "\n")
            lines.flush()
            if why := found.get("why"):
                print(f"fails: {task.key}: {why}", flush=True)
            ran[task.category] += "why" not in found
    total = Counter(task.category for task in tasks)
    for category in sorted(total):
        print(f"{category}: {ran[category]} of {total[category]}")
    print(f"all: {ran.total()} of {total.total()}; {len(left_out)} left out")


if __name__ == "__main__":
    main()
