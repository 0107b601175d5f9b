"""Measures one kernel again and again: how far the figures spread, how honest the intervals are.

    python lab/benchmarks/repeat_measurement.py problem.py kernel.py --device cuda:0 --times 20

Every measurement has processes of its own, the reference's too; `--same-reference` keeps that one.
With `--neighbours 2` two other programs come and go meanwhile. A kernel that is the reference's own
code must then come out at 1.0 within its interval, every time: see `faster` and `slower`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from lanes import Lane

import adaexplore
from adaexplore.core import Candidate, Passed, Timing

_NEIGHBOUR = """
import random, time
while True:
    time.sleep(random.uniform(0.0, 6.0))
    end = time.monotonic() + random.uniform(0.1, 6.0)
    while time.monotonic() < end:
        sum(range(10000))
"""


def main() -> None:
    """Measure, write the JSON after every measurement, print one line at the end."""
    options = _options()
    timings: list[Timing] = []
    lane = Lane()
    neighbours = [
        subprocess.Popen([sys.executable, "-c", _NEIGHBOUR]) for _ in range(options.neighbours)
    ]
    try:
        for timing in _timings(lane, options):
            timings.append(timing)
            found = summary(timings)
            if options.out:
                options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    finally:
        lane.close()
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()
    print(sentence(options.kernel.name, found))


def summary(timings: list[Timing]) -> dict[str, Any]:
    """Spread and coverage of the time and of the like-for-like speedup, and every measurement."""
    return {
        "times": len(timings),
        "time_us": _spread([t.time_us for t in timings], [t.time_ci_us for t in timings]),
        "speedup": _spread([t.speedup for t in timings], [t.speedup_ci for t in timings]),
        "faster": sum(t.speedup_ci[0] > 1.0 for t in timings),
        "slower": sum(t.speedup_ci[1] < 1.0 for t in timings),
        "waited": sum(t.waited > 0.0 for t in timings),
        "measurements": [
            {
                "time_us": t.time_us,
                "time_ci_us": list(t.time_ci_us),
                "speedup": t.speedup,
                "speedup_ci": list(t.speedup_ci),
                "speedup_eager": t.speedup_eager,
                "samples": t.samples,
                "strongest": t.strongest,
                "waited": t.waited,
            }
            for t in timings
        ],
    }


def sentence(name: str, found: dict[str, Any]) -> str:
    """The summary in one line."""
    parts = []
    for what, unit in (("time_us", " us"), ("speedup", "x")):
        s = found[what]
        parts.append(
            f"{what.removesuffix('_us')} {s['median']:.4g}{unit}, all within {s['range']:.2%}, "
            f"middle half within {s['middle_half']:.2%}, median interval {s['interval']:.2%} wide, "
            f"which holds the grand median {s['holds']} times of {found['times']}"
        )
    parts.append(
        f"above 1 {found['faster']} times, below 1 {found['slower']} times, "
        f"measured under load {found['waited']} times"
    )
    return f"{name}: " + "; ".join(parts)


def _spread(values: list[float], intervals: list[tuple[float, float]]) -> dict[str, Any]:
    """Widths are relative to the grand median."""
    grand = median(values)
    low, _, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else [grand] * 3
    return {
        "median": grand,
        "range": (max(values) - min(values)) / grand,
        "middle_half": (high - low) / grand,
        "interval": median((b - a) / grand for a, b in intervals),
        "holds": sum(a <= grand <= b for a, b in intervals),
    }


def _timings(lane: Lane, options: argparse.Namespace) -> Iterator[Timing]:
    problem = adaexplore.load_problem(
        options.problem,
        device=options.device,
        language=options.language or ("cpp" if options.device == "cpu" else "triton"),
        precision=options.precision,
    )
    candidate = Candidate(options.kernel.read_text(encoding="utf-8"), problem.language)
    with ExitStack() as kept:
        evaluator = None
        for number in range(options.times):
            if evaluator is None or not options.same_reference:
                kept.close()
                evaluator = kept.enter_context(lane.evaluator(problem, options.timeout_s))
                evaluator.prepare()
            evaluation = evaluator.evaluate(candidate, again=True)
            if not isinstance(evaluation, Passed) or evaluation.measured is None:
                sys.exit(f"measurement {number + 1}: {evaluation.status}: {evaluation}")
            yield evaluation.measured


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problem", type=Path)
    parser.add_argument("kernel", type=Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--language", help="of the kernel; default: triton, on the CPU cpp")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--timeout-s", type=float, default=120.0)
    parser.add_argument("--same-reference", action="store_true")
    parser.add_argument("--neighbours", type=int, default=0)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
