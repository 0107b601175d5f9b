"""Rank correlation of estimates without a GPU with the times that a run measured.

    python lab/benchmarks/estimate_ranks.py runs/* --target sm_90 --out ranks.jsonl

For each run: Spearman's rank correlation of estimated with measured times over its candidates that
passed. Rows are appended to `--out` as they come.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from adaexplore.core import Estimate, Failed, Passed
from adaexplore.evaluate import OfflineEvaluator
from adaexplore.run import PRELOAD_OFFLINE
from adaexplore.sandbox import ForkServer
from adaexplore.store import read_run


def main() -> None:
    """Estimate every candidate that passed and print a line for each run."""
    options = _options()
    server = ForkServer.start(PRELOAD_OFFLINE)
    try:
        for path in options.runs:
            _estimate(path, server, options)
    finally:
        server.close()
    by_run = defaultdict(list)
    for line in options.out.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["estimated_us"] is not None:
            by_run[row["run"]].append((row["estimated_us"], row["measured_us"]))
    for run, pairs in by_run.items():
        print(f"{run}: {len(pairs)} candidates, Spearman {spearman(pairs):.2f}")


def spearman(pairs: Sequence[tuple[float, float]]) -> float:
    """Return Spearman's rank correlation; ties get their mean rank."""
    first, second = (_ranks(values) for values in zip(*pairs, strict=True))
    mean = (len(pairs) + 1) / 2
    a, b = ([rank - mean for rank in ranks] for ranks in (first, second))
    spread = math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / spread if spread else math.nan


def _ranks(values: Sequence[float]) -> list[float]:
    return [
        (sum(other < value for other in values) + sum(other <= value for other in values) + 1) / 2
        for value in values
    ]


def _estimate(path: Path, server: ForkServer, options: argparse.Namespace) -> None:
    with read_run(path) as directory:
        run, nodes = directory.store.run(), directory.store.nodes()
    problem = replace(run.problem, device="cpu", target=options.target)
    evaluator = OfflineEvaluator(
        server, problem, timeout_s=options.timeout_s, memory_bytes=options.memory_bytes
    )
    with closing(evaluator), options.out.open("a", encoding="utf-8") as out:
        evaluator.prepare()
        for node in nodes:
            if not isinstance(node.evaluation, Passed) or node.evaluation.measured is None:
                continue
            found = evaluator.evaluate(node.candidate)
            row: dict[str, Any] = {
                "run": path.name,
                "step": node.id,
                "origin": node.proposal.origin,
                "measured_us": node.evaluation.measured.time_us,
                "estimated_us": None,
            }
            if isinstance(found, Failed):
                row["reason"] = found.reason
            elif isinstance(found.timing, Estimate):
                row["estimated_us"] = found.timing.time_us
                row["estimate"] = asdict(found.timing)
            out.write(json.dumps(row) + "\n")
            out.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+", help="directories of runs made on a GPU")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--timeout-s", type=float, default=120.0, help="for one candidate")
    parser.add_argument("--memory-bytes", type=int, default=8 << 30)
    parser.add_argument("--out", type=Path, default=Path("runs/ranks.jsonl"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
