"""Run the reference of every definition of a FlashInfer-Bench dataset once, on the CPU.

    python lab/benchmarks/flashinfer_references.py flashinfer_trace -o references.jsonl

Each is loaded as `adaexplore explore DATASET --definition NAME --workloads 1` loads it, on its
smallest workload. A line for each says whether the reference runs on the inputs drawn for it, and
what it returns; inputs of more than --most-gb are not drawn. A line that is there is kept.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections import Counter
from pathlib import Path

import torch

from adaexplore.core import AdaExploreError
from adaexplore.problems import DatasetEntry, dataset_entries, load_entry, load_problem
from adaexplore.sandbox import Instance

_BYTES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "bfloat16": 2, "float16": 2}


def main() -> None:
    """Run the references that have no line yet; print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--most-gb", type=float, default=2.0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    done = [json.loads(line) for line in _lines(given.output)]
    names = {row["definition"] for row in done}
    every = dataset_entries(given.dataset)
    with given.output.open("a", encoding="utf-8") as output:
        for entry in every:
            if entry.name not in names:
                row = {"definition": entry.name, "op_type": entry.category} | _run(
                    entry, given.most_gb
                )
                done.append(row)
                output.write(json.dumps(row) + "\n")
                output.flush()
    counts = Counter(row["found"] for row in done)
    print(f"{len(every)} definitions: " + ", ".join(f"{n} {what}" for what, n in counts.items()))


def _run(entry: DatasetEntry, most_gb: float) -> dict[str, object]:
    try:
        made = load_entry(entry, "1")
    except AdaExploreError as error:
        return {"found": "left out", "why": str(error)}
    [workload] = made.workloads
    size = _gb(entry, dict(workload.axes))
    about = {"workload": workload.name, "gb": round(size, 3)}
    if size > most_gb:
        return {**about, "found": "too large"}
    try:
        with tempfile.TemporaryDirectory() as folder:
            problem = load_problem(entry.file, device="cpu", language="cpp", workloads="1")
            instance = Instance.of(problem, Path(folder))
            started = time.monotonic()
            outputs = instance(instance.inputs(0, problem.workloads[0]))
    except AdaExploreError as error:
        return {**about, "found": "failed", "why": str(error)}
    return {
        **about,
        "found": "ran",
        "seconds": round(time.monotonic() - started, 2),
        "labels": dict(problem.labels),
        "outputs": [
            [list(t.shape), str(t.dtype), int((~torch.isfinite(t.float())).sum())]
            for _, t in outputs
        ],
    }


def _gb(entry: DatasetEntry, axes: dict[str, int]) -> float:
    definition = entry.definition()
    sizes = definition.sizes(axes)
    if "num_kv_indices" in sizes and "num_pages" in sizes:  # no more than is read is drawn
        sizes["num_pages"] = min(sizes["num_pages"], 2 * sizes["num_kv_indices"])
    return (
        sum(
            _BYTES.get(spec.dtype, 1)
            * math.prod(sizes.get(axis) or int(axis) for axis in spec.shape)
            for spec in definition.inputs.values()
            if spec.shape is not None
        )
        / 1e9
    )


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


if __name__ == "__main__":
    main()
