"""A pool of candidates for one problem: what searches found, and variants of it in its numbers.

    python lab/benchmarks/kernel_variants.py runs/a runs/b --count 100 --out pool/
    python lab/benchmarks/parallel_search.py PROBLEM --candidates pool/ ...

Every candidate of the runs that a model proposed, right or not, and then variants of those that
were right, each with numbers drawn from what the tuner would choose among.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from adaexplore.core import Passed
from adaexplore.propose import space_of
from adaexplore.store import open_run


def main() -> None:
    """Write the pool."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()

    sources: list[str] = []
    spaces = []
    for path in options.runs:
        with open_run(path) as run:
            problem = run.store.run().problem
            for node in run.store.nodes():
                if node.proposal.origin in ("compiler", "tuner"):
                    continue
                if node.proposal.candidate.source not in sources:
                    sources.append(node.proposal.candidate.source)
                if isinstance(node.evaluation, Passed):
                    spaces.append(space_of(node.proposal.candidate, problem))
    spaces = [space for space in spaces if space.parameters]
    rng = random.Random(options.seed)
    misses = 0
    while len(sources) < options.count and misses < options.count:
        space = rng.choice(spaces)
        variant = space.variant({p.name: rng.choice(p.choices) for p in space.parameters})
        if variant in sources:
            misses += 1
        else:
            sources.append(variant)
    options.out.mkdir(parents=True, exist_ok=True)
    for number, source in enumerate(sources):
        (options.out / f"{number:03}.py").write_text(source, encoding="utf-8")
    print(f"{len(sources)} candidates in {options.out}")


if __name__ == "__main__":
    main()
