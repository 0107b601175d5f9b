"""Digests of the structures of benchmark problems, so that no synthesized task repeats one.

    python lab/benchmarks/benchmark_structures.py KernelBench/level{1,2,3}

Writes src/adaexplore/problems/overlap/benchmarks.txt: digests alone, nothing of the problems.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from adaexplore.problems import (
    STRUCTURE_PRELOAD,
    STRUCTURES_FILE,
    structures_in,
    structures_text,
)
from adaexplore.sandbox import ForkServer

OUTPUT = Path(__file__).parents[2] / "src/adaexplore/problems/overlap" / STRUCTURES_FILE


def main() -> None:
    """Trace every problem and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, help="problems in KernelBench form")
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT)
    asked = parser.parse_args()
    untraced: list[str] = []
    told: list[str] = []

    def tell(name: str, why: str) -> None:
        told.append(name)
        if why:
            untraced.append(name)
            print(f"{name}: {why}", flush=True)

    structures: set[str] = set()
    server = ForkServer.start(STRUCTURE_PRELOAD)
    try:
        for folder in asked.folders:
            structures.update(structures_in(folder, server, tell))
    finally:
        server.close()
    head = (
        "Structures of KernelBench's problems (levels 1 to 3), made by\n"
        "python lab/benchmarks/benchmark_structures.py KernelBench/level{1,2,3}\n"
        f"{len(told)} problems, of which {len(told) - len(untraced)} can be traced; "
        f"{len(structures)} structures"
    )
    asked.output.write_text(structures_text(structures, head), encoding="utf-8")
    print(f"{asked.output}: {len(structures)} structures of {len(told)} problems")


if __name__ == "__main__":
    main()
