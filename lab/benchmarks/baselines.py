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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import adaexplore
from adaexplore.core import Problem
from adaexplore.evaluate import OFFERED, Trial, try_baselines
from adaexplore.run import PRELOAD
from adaexplore.sandbox import ForkServer


def main() -> None:
    """Try all baselines of all problems, and print their times as JSON."""
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

    try:
        with ThreadPoolExecutor(options.parallel) as threads:
            found = list(threads.map(tried, problems))
    finally:
        server.close()
    text = json.dumps({"precision": options.precision, "problems": found}, indent=1)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    print(text)


def summary(name: str, trials: Sequence[Trial]) -> dict[str, Any]:
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
