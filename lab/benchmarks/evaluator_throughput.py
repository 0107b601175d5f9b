"""Throughput of this evaluator beside AdaExplore's own evaluation path, on the same candidates.

    python lab/benchmarks/evaluator_throughput.py \\
        --kernels AdaExplore/results/saved_kernels/kernelbench \\
        --problems KernelBench/KernelBench --runner AdaExplore/src/eval_subprocess_runner.py \\
        --device cuda:0 --count 30 --parallel 6 --out throughput.json

Its path is run as it runs it: one process per candidate, with the arguments of its search (5
correctness trials, 100 timed calls), one at a time, since nothing there keeps two from disturbing
each other's timing. What it imports and this Python lacks (`requests`, `pydantic`, NumPy) is
replaced by stubs in a temporary folder, which do what it uses of them; the result names them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from statistics import median
from typing import Any

from lanes import Lane

import adaexplore
from adaexplore.core import AdaExploreError, Candidate, Evaluator, Problem, evaluation_to_json

STUBS = {
    "requests": "",
    "pydantic": """
import copy

class BaseModel:
    def __init__(self, **values):
        for name in type(self).__annotations__:
            default = getattr(type(self), name, None)
            setattr(self, name, values.get(name, copy.deepcopy(default)))
""",
    "numpy": """
import sys
from builtins import max, min
from statistics import fmean as mean, pstdev as std

frame = sys._getframe(1)
while "importlib" in frame.f_globals["__name__"]:
    frame = frame.f_back
if frame.f_globals["__name__"] != "src.eval":
    raise ModuleNotFoundError("NumPy for src.eval only: torch does without")
""",
}
"""What its evaluation uses of each package."""


def main() -> None:
    """Run the candidates through one or both; print and write the figures."""
    options = _options()
    kernels = released(options.kernels, options.problems, options.levels)
    kernels = kernels[options.skip : options.skip + options.count]
    found: dict[str, Any] = {"device": options.device, "candidates": [k.name for k in kernels]}
    for side, measure in (("ours", ours), ("theirs", theirs)):
        if side in options.sides:
            for found[side] in measure(kernels, options):  # whole after every one, if cut short
                options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            print(side, json.dumps({k: v for k, v in found[side].items() if k != "each"}))
    if "ours" in found and "theirs" in found:
        for figure in ("candidates_per_minute", "candidates_per_minute_prepared"):
            ratio = found["ours"][figure] / found["theirs"]["candidates_per_minute"]
            print(f"{figure}: {ratio:.1f} times as many")


@dataclass(frozen=True, slots=True)
class Released:
    """A released kernel and its problem's file."""

    level: int
    id: int
    kernel: Path
    problem: Path

    @property
    def name(self) -> str:
        """Level and the problem's name."""
        return f"{self.level}/{self.problem.stem}"


def released(kernels: Path, problems: Path, levels: list[int]) -> list[Released]:
    """Return the kernels of these levels whose problem is there, in a random order."""
    found = []
    for level in levels:
        for kernel in sorted((kernels / f"level{level}").glob("[0-9]*.py")):
            number = int(kernel.stem.partition("_")[0])
            files = list((problems / f"level{level}").glob(f"{number}_*.py"))
            if len(files) == 1:
                found.append(Released(level, number, kernel, files[0]))
    random.Random(0).shuffle(found)
    return found


def ours(kernels: list[Released], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Every candidate by this evaluator, `parallel` at a time; each brings a reference of its own.

    Yields the figures so far after every candidate.

    `candidates_per_minute` includes preparing the references, which a search does once for all its
    candidates; `candidates_per_minute_prepared` is what lanes that do nothing but evaluate would
    make. `device_s` is the time an evaluation holds the device, alone or with others.
    """
    lanes: Queue[Lane] = Queue()
    for _ in range(options.parallel):
        lane = Lane()
        lane.start()
        lanes.put(lane)

    def judge(kernel: Released) -> dict[str, Any]:
        lane = lanes.get()
        try:
            with lane.evaluator(_problem(kernel, options), options.timeout_s) as evaluator:
                return _evaluate(evaluator, kernel, _prepare(evaluator, kernel))
        finally:
            lanes.put(lane)

    each: list[dict[str, Any]] = []
    began = time.monotonic()
    with ThreadPoolExecutor(options.parallel) as threads:
        for done in as_completed([threads.submit(judge, kernel) for kernel in kernels]):
            each.append(done.result())
            wall_s = time.monotonic() - began
            evaluated = [row["evaluate_s"] for row in each if "evaluate_s" in row]
            rate = 60 * options.parallel / _mean(evaluated) if evaluated else 0.0
            yield {
                "candidates_per_minute": 60 * len(each) / wall_s,
                "candidates_per_minute_prepared": rate,
                "device_s_per_candidate": _mean([r["device_s"] for r in each if "device_s" in r]),
                "median_evaluate_s": _median(evaluated),
                "parallel": options.parallel,
                "wall_s": wall_s,
                "each": list(each),
            }
    while not lanes.empty():
        lanes.get().close()


def theirs(kernels: list[Released], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Every candidate by AdaExplore's runner; it has the device for as long as its process runs.

    Yields the figures so far after every candidate.
    """
    each: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        stubbed = [name for name in STUBS if importlib.util.find_spec(name) is None]
        for name in stubbed:
            (Path(folder) / f"{name}.py").write_text(STUBS[name], encoding="utf-8")
        paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), folder]))
        environment = os.environ | {"PYTHONPATH": paths}
        for kernel in kernels:
            each.append(_theirs(kernel, options, environment))
            wall_s = sum(row["wall_s"] for row in each)
            yield {
                "candidates_per_minute": 60 * len(each) / wall_s,
                "device_s_per_candidate": wall_s / len(each),
                "median_wall_s": median(row["wall_s"] for row in each),
                "stubbed": stubbed,
                "wall_s": wall_s,
                "each": each,
            }


def _problem(kernel: Released, options: argparse.Namespace) -> Problem:
    return adaexplore.load_problem(
        kernel.problem, device=options.device, language="triton", precision="tf32"
    )


def _prepare(evaluator: Evaluator, kernel: Released) -> dict[str, Any]:
    row: dict[str, Any] = {"name": kernel.name}
    started = time.monotonic()
    try:
        evaluator.prepare()
    except AdaExploreError as error:
        row["status"] = f"unjudged: {error}"
    return row | {"prepare_s": time.monotonic() - started}


def _evaluate(evaluator: Evaluator, kernel: Released, row: dict[str, Any]) -> dict[str, Any]:
    if "status" in row:
        return row
    candidate = Candidate(kernel.kernel.read_text(encoding="utf-8"), "triton")
    data = evaluation_to_json(evaluator.evaluate(candidate))
    return row | {
        "status": data["status"],
        "reason": data["reason"],
        "evaluate_s": data["cost"]["wall_s"],
        "device_s": data["cost"]["device_s"],
    }


def _theirs(
    kernel: Released, options: argparse.Namespace, environment: dict[str, str]
) -> dict[str, Any]:
    request = {
        "original_model_src": kernel.problem.read_text(encoding="utf-8"),
        "custom_model_src": kernel.kernel.read_text(encoding="utf-8"),
        "seed_num": 42,
        "num_correct_trials": 5,
        "num_perf_trials": 100,
        "verbose": False,
        "measure_performance": True,
        "build_dir": None,
        "device": int(options.device.partition(":")[2] or 0),
        "backend": "triton",
        "dtype_str": "fp32",
        "gpu_name": None,  # it has no recorded baselines of this GPU: it times eager itself
        "level": str(kernel.level),
        "problem_id": str(kernel.id),
    }
    started = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, options.runner.resolve(), json.dumps(request)],
            cwd=options.runner.resolve().parents[1],
            env=environment,
            capture_output=True,
            text=True,
            timeout=options.their_timeout_s,
        )
    except subprocess.TimeoutExpired:
        return {"name": kernel.name, "wall_s": time.monotonic() - started, "result": "timeout"}
    row: dict[str, Any] = {"name": kernel.name, "wall_s": time.monotonic() - started}
    try:
        result = json.loads(done.stdout)
    except json.JSONDecodeError:
        return row | {"result": "no answer", "stderr": done.stderr[-2000:]}
    if "error" in result:
        return row | {"result": result["error"]}
    speedup = (result["runtime_stats"] or {}).get("fast_p")
    return row | {"result": "correct" if result["correctness"] else "wrong", "speedup": speedup}


def _median(values: list[float]) -> float:
    return median(values) if values else 0.0


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=Path, required=True)
    parser.add_argument("--problems", type=Path, required=True)
    parser.add_argument("--levels", nargs="+", type=int, default=[2])
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--skip", type=int, default=0, help="so many first, another GPU's share")
    parser.add_argument("--runner", type=Path, help="AdaExplore's src/eval_subprocess_runner.py")
    parser.add_argument(
        "--sides", nargs="+", choices=("ours", "theirs"), default=["ours", "theirs"]
    )
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--parallel", type=int, default=6, help="of ours")
    parser.add_argument("--timeout-s", type=float, default=60.0)
    parser.add_argument("--their-timeout-s", type=float, default=300.0)
    parser.add_argument("--out", type=Path, default=Path("runs/throughput.json"))
    options = parser.parse_args()
    if "theirs" in options.sides and options.runner is None:
        parser.error("--sides theirs needs --runner")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    return options


if __name__ == "__main__":
    main()
