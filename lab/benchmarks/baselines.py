"""Times every baseline of some problems: what `torch.compile`'s defaults hide.

    python lab/benchmarks/baselines.py problem.py ... --precision tf32 --compile-s 120

Each baseline is tried in a process of its own, as when a search prepares a problem; what earlier
trials found on the same GPU, with the same versions, is read from their file.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import adaexplore
from adaexplore.core import Problem
from adaexplore.evaluate import OFFERED, BaselineTrial, try_baselines
from adaexplore.run import PRELOAD
from adaexplore.sandbox import ForkServer


def main() -> None:
    """Try all baselines of all problems; print a line and write the JSON after each problem."""
    options = _options()
    problems = [
        adaexplore.load_problem(
            path,
            device=options.device,
            language="cpp" if options.device == "cpu" else "triton",
            precision=options.precision,
        )
        for path in options.problem
    ]
    server = ForkServer.start(PRELOAD)

    def tried(problem: Problem) -> dict[str, Any]:
        started = time.monotonic()
        names = [baseline.name for baseline in OFFERED]
        trials = try_baselines(server, problem, names, options.compile_s)
        return summary(problem.name, trials) | {"seconds": round(time.monotonic() - started, 1)}

    found: list[dict[str, Any]] = []
    try:
        with ThreadPoolExecutor(options.parallel) as threads:
            for done in as_completed([threads.submit(tried, problem) for problem in problems]):
                found.append(done.result())
                print(json.dumps(found[-1]), flush=True)
                if options.out:
                    table = {"precision": options.precision, "problems": found}
                    options.out.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    finally:
        server.close()


def summary(name: str, trials: Sequence[BaselineTrial]) -> dict[str, Any]:
    """The times in milliseconds (geometric means over workloads), and why others have none."""
    times_ms = {
        trial.baseline: round(geometric_mean(trial.times_us.values()) / 1000, 5)
        for trial in trials
        if not trial.why
    }
    return {
        "problem": name,
        "strongest": min(times_ms, key=times_ms.__getitem__, default=None),
        "ms": times_ms,
        "left_out": {trial.baseline: trial.why for trial in trials if trial.why},
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problem", type=Path, nargs="+")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--precision", default="tf32")
    parser.add_argument("--compile-s", type=float, default=300.0, help="limit of one baseline")
    parser.add_argument("--parallel", type=int, default=2, help="problems at once")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
