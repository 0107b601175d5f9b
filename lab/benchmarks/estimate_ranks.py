"""How well estimates without a GPU rank the candidates of one problem, as a run measured them.

    python benchmarks/estimate_ranks.py runs/* --target sm_90 --out ranks.jsonl

Only the part of the GPU-free judge that estimates is asked: a call on tensors without data at full
size, and a compilation of what it launches. For each run: Spearman's rank correlation of estimated
with measured times over its candidates that passed. `--out` is added to as rows come.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from released_tables import spearman

from adaexplore.core.evaluation import Failed, Passed
from adaexplore.evaluate.offline.judge import OfflineBench
from adaexplore.evaluate.offline.verify import Limit
from adaexplore.run.session import PRELOAD_OFFLINE
from adaexplore.sandbox.process import ForkServer
from adaexplore.store import read_run


def main() -> None:
    """Estimates every candidate that passed and prints a line for each run."""
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


def _estimate(path: Path, server: ForkServer, options: argparse.Namespace) -> None:
    with read_run(path) as directory:
        run, nodes = directory.store.run(), directory.store.nodes()
    problem = replace(run.problem, device="cpu", target=options.target)
    with tempfile.TemporaryDirectory() as folder, options.out.open("a", encoding="utf-8") as out:
        bench = OfflineBench(problem, server, Path(folder), options.memory_bytes)
        for node in nodes:
            if not isinstance(node.evaluation, Passed) or node.evaluation.measured is None:
                continue
            found = bench.compiled(node.candidate, Limit.of(options.timeout_s))
            row: dict[str, Any] = {
                "run": path.name,
                "step": node.id,
                "origin": node.proposal.origin,
                "measured_us": node.evaluation.measured.time_us,
                "estimated_us": None,
            }
            if isinstance(found, Failed):
                row["reason"] = found.reason
            else:
                row["estimated_us"] = found.estimate.time_us
                row["estimate"] = asdict(found.estimate)
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
