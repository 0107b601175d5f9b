"""Share of the grammar's tasks that are kept, and their operations.

    python lab/benchmarks/synthesis.py -n 500 --seed 0 -o docs/results/synthesis.jsonl

Validates the tasks of so many seeds in a row, writes a row for each and prints the tables of
docs/synthesis.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from adaexplore.evaluate import EXAMINE_JOB
from adaexplore.problems import STRUCTURE_PRELOAD, benchmark_structures
from adaexplore.sandbox import ForkServer
from adaexplore_lab.synthesize.grammar import grow
from adaexplore_lab.synthesize.productions.base import CATALOGUE
from adaexplore_lab.synthesize.sizes import is_prime
from adaexplore_lab.synthesize.validate import Validator

LAYOUTS = {
    "transposed": ".transpose(",
    "strided": "::2]",
    "narrowed": "[..., ",
    "expanded": ".expand(",
    "channels-last": "channels_last",
}


def main() -> None:
    """Validates, writes and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    server = ForkServer.start([*STRUCTURE_PRELOAD, EXAMINE_JOB.partition(":")[0]])
    try:
        validator = Validator(server, EXAMINE_JOB, benchmarks=benchmark_structures())
        rows = [row(validator, seed) for seed in range(asked.seed, asked.seed + asked.n)]
    finally:
        server.close()
    asked.output.write_text("".join(f"{json.dumps(r)}\n" for r in rows), encoding="utf-8")
    tables(rows)


def row(validator: Validator, seed: int) -> dict[str, Any]:
    """Return the row of one seed's task."""
    started = time.perf_counter()
    task = grow(seed)
    grown_ms = 1000 * (time.perf_counter() - started)
    found = validator.check(task)
    setup = task.source.partition("def get_inputs")[2].partition("def get_init_inputs")[0]
    return {
        "seed": seed,
        "ops": task.ops,
        "outputs": task.outputs,
        "dtype": next(
            (d for d in ("bfloat16", "float16") if f"torch.{d}" in task.source), "float32"
        ),
        "layouts": [name for name, mark in LAYOUTS.items() if mark in setup],
        "inputs": setup.count("torch.r"),
        "why": found.why,
        "labels": sorted(found.labels),
        "grown_ms": round(grown_ms, 2),
        "wall_s": round(found.wall_s, 3),
    }


def tables(rows: list[dict[str, Any]]) -> None:
    """Print a summary of the rows."""
    kept = [r for r in rows if not r["why"]]
    print(f"{len(kept)} of {len(rows)} kept ({len(kept) / len(rows):.1%})")
    show("refused", (reason(r["why"]) for r in rows if r["why"]), len(rows))
    show("label of a kept task", (label for r in kept for label in r["labels"]), len(kept))
    print(f"grown in {median(r['grown_ms'] for r in rows):.1f} ms (median)")
    seconds = sorted(r["wall_s"] for r in rows)
    late = seconds[int(0.95 * len(rows))]
    print(f"validated in {median(seconds):.2f} s (median), {late:.2f} s (95 %)")
    ops = Counter(op for r in kept for op in r["ops"])
    rules = sum(map(len, CATALOGUE.values()))
    rare = sum(n < 3 for n in ops.values())
    print(f"{len(ops)} operations occur (of {rules} productions), {rare} of them once or twice")
    print("most frequent:", ", ".join(f"{op} {n}" for op, n in ops.most_common(12)))
    difficulty = Counter(bucket(len(r["ops"])) for r in kept)
    print("operations a task:", dict(sorted(difficulty.items())))
    show("dtype", (r["dtype"] for r in kept), len(kept))
    show("layout among the inputs", (name for r in kept for name in r["layouts"]), len(kept))
    show("inputs", (str(r["inputs"]) for r in kept), len(kept))
    sizes = [n for r in kept for shape, _ in r["outputs"] for n in shape]
    show("size in an output", (kind(n) for n in sizes), len(sizes))
    show("rank of an output", (str(len(s)) for r in kept for s, _ in r["outputs"]), len(kept))


def reason(why: str) -> str:
    """A refusal without what is particular to the task."""
    for known in ("structure of a benchmark", "structure of", "does not depend", "from its own"):
        if known in why:
            return known
    return why.partition(":")[0]


def bucket(ops: int) -> str:
    """Such as "04-06"."""
    low = (ops - 1) // 3 * 3 + 1
    return f"{low:02}-{low + 2:02}"


def kind(size: int) -> str:
    """Return the kind of a size."""
    if size == 1:
        return "1"
    if size & (size - 1) == 0:
        return "power of two"
    return "prime" if is_prime(size) else "other"


def show(what: str, names: Iterable[str], of: int) -> None:
    """A line of counts and shares."""
    counts = Counter(names).most_common()
    print(f"{what}:", ", ".join(f"{name} {n} ({n / of:.0%})" for name, n in counts))


if __name__ == "__main__":
    main()
