"""Makes the memory that comes with the package, of what `adapt --probe` found on each Triton.

    python benchmarks/bundled_memory.py m36.toml m39.toml -o src/adaexplore/memory/bundled.toml

Rules have the words of today's probes (statement, topics, matcher), and the programs that were run:
one whose programs have changed since is refused.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from adaexplore.core.rule import Rule
from adaexplore.memory.files import load, save
from adaexplore.memory.merge import merged
from adaexplore_lab.probes import PROBES


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("memories", nargs="+", type=Path, help="later ones win")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    rules = [_worded(rule) for rule in merged(*map(load, options.memories))]
    save(options.output, rules)
    print(f"{options.output}: {len(rules)} rules of {len(PROBES)} probes")


def _worded(rule: Rule) -> Rule:
    probe = next((probe for probe in PROBES if probe.name == rule.name), None)
    if probe is None:
        raise SystemExit(f"{rule.name}: no probe has this name; leave it out")
    now = probe.rule()
    if (now.reference, now.witness, now.remedy) != (rule.reference, rule.witness, rule.remedy):
        raise SystemExit(f"{rule.name}: its probe has changed since; run adapt --probe again")
    return replace(rule, statement=now.statement, topics=now.topics, matcher=now.matcher)


if __name__ == "__main__":
    _main()
