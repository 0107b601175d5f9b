"""Judges candidates of recorded runs again: verdicts and times beside those recorded.

    python lab/benchmarks/rejudge.py tests/replay/h200_*.xz --problems KernelBench/KernelBench \\
        --each 2 --device cuda:0 --out rejudged.json

Of every run, the best candidate, every one that failed, and others spread over the steps, up to
`--each`. An exported run has no source of its problem: the file of the same name below `--problems`
is the problem. A time is within the noise where the two 95 % intervals, widened by `--noise`,
overlap.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lanes import Lane

from adaexplore.core import Evaluation, Node, Passed, Problem
from adaexplore.store import read_run

_TIMEOUT_S = 180.0


@dataclass(frozen=True, slots=True)
class Rejudged:
    """One candidate: what was recorded of it, and what is measured now; times in microseconds."""

    problem: str
    step: int
    recorded: str
    now: str
    recorded_us: float | None
    now_us: float | None
    recorded_speedup: float | None
    now_speedup: float | None
    reason: str

    @property
    def ratio(self) -> float | None:
        """The time now over the time recorded."""
        return self.now_us / self.recorded_us if self.now_us and self.recorded_us else None


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--problems", type=Path, required=True)
    parser.add_argument("--each", type=int, default=2)
    parser.add_argument("--device", default="cuda:0", help="several by commas")
    parser.add_argument("--noise", type=float, default=0.05)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    devices = options.device.split(",")
    shares = [options.runs[i :: len(devices)] for i in range(len(devices))]
    with ThreadPoolExecutor(len(devices)) as pool:
        jobs = [
            pool.submit(lambda d, s: list(_judge_all(s, d, options)), device, share)
            for device, share in zip(devices, shares, strict=True)
        ]
    rows = [row for job in jobs for row in job.result()]
    options.out.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    same = sum(row.recorded == row.now for row in rows)
    ratios = sorted(row.ratio for row in rows if row.ratio)
    near = sum(abs(ratio - 1) <= options.noise for ratio in ratios)
    print(f"{same} of {len(rows)} verdicts are the same")
    if ratios:
        middle = ratios[len(ratios) // 2]
        print(
            f"time now / time recorded: median {middle:.3f}, {ratios[0]:.3f} to {ratios[-1]:.3f}; "
            f"{near} of {len(ratios)} within {options.noise:.0%}"
        )


def _judge_all(
    runs: Sequence[Path], device: str, options: argparse.Namespace
) -> Iterator[Rejudged]:
    lane = Lane()
    try:
        for path in runs:
            with read_run(path) as run:
                problem, nodes = run.store.run().problem, run.store.nodes()
            (file,) = options.problems.glob(f"*/{problem.name}.py")
            source = file.read_text(encoding="utf-8")
            now = replace(problem, source=source, device=device)
            yield from _judge(lane, now, _chosen(nodes, options.each))
    finally:
        lane.close()


def _judge(lane: Lane, problem: Problem, nodes: Sequence[Node]) -> Iterator[Rejudged]:
    with lane.evaluator(problem, _TIMEOUT_S) as evaluator:
        evaluator.prepare()
        for node in nodes:
            row = _row(problem.name, node, evaluator.evaluate(node.candidate))
            print(json.dumps(asdict(row)), flush=True)
            yield row


def _chosen(nodes: Sequence[Node], count: int) -> list[Node]:
    """The best, those that failed, and others from the first steps on; `count` at most."""
    seen: dict[str, Node] = {}
    for node in nodes:
        seen.setdefault(node.candidate.digest, node)
    nodes = list(seen.values())
    best = max(nodes, key=lambda node: _speedup(node.evaluation) or 0.0)
    failed = [node for node in nodes if not isinstance(node.evaluation, Passed)]
    others = [node for node in nodes if node is not best and node not in failed]
    return [best, *failed, *others][:count]


def _row(name: str, node: Node, now: Evaluation) -> Rejudged:
    return Rejudged(
        problem=name,
        step=node.id,
        recorded=node.evaluation.status,
        now=now.status,
        recorded_us=_time_us(node.evaluation),
        now_us=_time_us(now),
        recorded_speedup=_speedup(node.evaluation),
        now_speedup=_speedup(now),
        reason="" if isinstance(now, Passed) else now.reason,
    )


def _time_us(evaluation: Evaluation) -> float | None:
    timing = evaluation.measured
    return timing.time_us if timing else None


def _speedup(evaluation: Evaluation) -> float | None:
    timing = evaluation.measured
    return timing.speedup if timing else None


if __name__ == "__main__":
    _main()
