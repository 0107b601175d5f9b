"""A round trip through FlashInfer-Bench: our Solutions, loaded, built and run by its own tools.

    python lab/benchmarks/flashinfer_roundtrip.py --dataset flashinfer_trace --work /tmp/trip
        --python ENV-0.1.2/bin/python --python ENV-HEAD/bin/python

Each `--python` is an interpreter that has flashinfer-bench. It loads the dataset and our solutions
and builds them. With a GPU it then runs its own benchmark (`flashinfer-bench run`) on all workloads
of the definitions. With `--without-gpu` it calls what it built on the CPU beside the references,
and the definitions are all of the dataset. A `--validator` does no more than load and build. With
`--judge`, the kernels are judged here first, and their traces go with them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from flashinfer_kernels import reference_kernel, triton_kernel

from adaexplore.core import Candidate, Config
from adaexplore.problems import (
    Delivery,
    Specification,
    dataset_entries,
    deliver_to_flashinfer,
    read_specification,
)
from adaexplore.run import delivery_of_judged, judge

_SIDE = Path(__file__).with_name("flashinfer_side.py")
_CLI = "from flashinfer_bench.cli.main import cli; cli()"


@dataclass(slots=True)
class Trip:
    """The findings of one interpreter; `statuses` counts its traces by definition and status."""

    python: str
    runs: bool
    dataset: dict[str, Any] = field(default_factory=dict)
    loaded: dict[str, Any] = field(default_factory=dict)
    built: dict[str, Any] = field(default_factory=dict)
    called: dict[str, Any] = field(default_factory=dict)
    statuses: dict[str, dict[str, int]] = field(default_factory=dict)
    ours: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def passed(self) -> list[str]:
        """The definitions whose every trace is PASSED."""
        return [name for name, counts in self.statuses.items() if set(counts) == {"PASSED"}]


def main() -> None:
    """Make the trip, print it, and write it as JSON."""
    options = _options()
    shutil.rmtree(options.work, ignore_errors=True)
    names = options.definitions or _definitions(options)
    made = [_deliver(options, name) for name in names]
    print(f"{len(made)} solutions, {sum(made)} in Triton and the others their references")
    trips = [_trip(options, python, names) for python in options.python + options.validator]
    options.work.joinpath("trip.json").write_text(json.dumps([asdict(t) for t in trips], indent=2))
    sys.exit(any(trip.runs and set(names) - set(trip.passed) for trip in trips))


def _definitions(options: argparse.Namespace) -> list[str]:
    """Return the definitions with workloads whose data is there; without a GPU, all."""
    known = [read_specification(options.dataset, e.name) for e in dataset_entries(options.dataset)]
    return [
        one.name
        for one in known
        if options.without_gpu or (one.workloads and not one.data_missing(options.dataset))
    ]


def _deliver(options: argparse.Namespace, name: str) -> bool:
    """Write one solution; return whether its kernel is in Triton."""
    specification = read_specification(options.dataset, name)
    source, own = _kernel(options, specification)
    delivery = Delivery(specification, source, "triton")
    if options.judge:
        config = Config(definition=name, workloads="all", timed="all", language="triton")
        judged = judge(options.dataset, Candidate(source, "triton"), config)
        print(f"  {name}: {judged.verdict.status}", flush=True)
        delivery = delivery_of_judged(judged, options.dataset)
    deliver_to_flashinfer(delivery, options.work)
    return own


def _kernel(options: argparse.Namespace, specification: Specification) -> tuple[str, bool]:
    given = options.kernels / f"{specification.name}.py" if options.kernels else None
    if given and given.exists():
        return given.read_text(encoding="utf-8"), True
    own = "" if options.without_gpu else triton_kernel(specification.definition)
    return own or reference_kernel(specification.definition), bool(own)


def _trip(options: argparse.Namespace, python: str, names: list[str]) -> Trip:
    """Load, build and run by one interpreter, in a copy of the folder of its own."""
    trip = Trip(python, runs=python in options.python and not options.without_gpu)
    folder = options.work / "trips" / Path(python).absolute().parents[1].name
    shutil.copytree(options.work, folder, ignore=shutil.ignore_patterns("trips"))
    trip.dataset = _ask(python, "load", options.dataset)
    trip.loaded = _ask(python, "load", folder)
    trip.built = _ask(python, "build", folder)
    if options.without_gpu:
        trip.called = _ask(python, "call", folder)
    if trip.runs:
        _run(python, folder, options.timeout_s)
    trip.statuses, trip.ours = _statuses(folder, ours=False), _statuses(folder, ours=True)
    print(python)
    for part in ("dataset", "loaded", "built", "called"):
        print(f"  {part}: {getattr(trip, part)}")
    if trip.runs:
        for name in names:
            theirs, ours = trip.statuses.get(name, "no trace"), trip.ours.get(name, "no trace")
            print(f"  {name}: {theirs}" + (f"; ours: {ours}" if options.judge else ""))
        print(f"  passed on every workload: {len(trip.passed)} of {len(names)}")
    return trip


def _ask(python: str, action: str, folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [python, _SIDE, action, folder], stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _run(python: str, folder: Path, timeout_s: int) -> None:
    """Let the benchmark run and time every solution, as its users do."""
    words = ["run", "--local", str(folder), "--save-results", "--timeout", str(timeout_s)]
    environment = {**os.environ, "FIB_CACHE_PATH": str(folder / "cache")}
    subprocess.run([python, "-c", _CLI, *words], check=True, env=environment)


def _statuses(folder: Path, *, ours: bool) -> dict[str, dict[str, int]]:
    """Count the traces in a folder by definition and status: those of our judge, or the others."""
    found: dict[str, Counter[str]] = {}
    for file in sorted((folder / "traces").rglob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            trace = json.loads(line)
            if ("adaexplore" in trace["evaluation"]["environment"]["libs"]) != ours:
                continue
            found.setdefault(trace["definition"], Counter())[trace["evaluation"]["status"]] += 1
    return {name: dict(counts) for name, counts in found.items()}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="emptied before the trip")
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--validator", action="append", default=[])
    parser.add_argument("--definitions", nargs="*")
    parser.add_argument("--kernels", type=Path, help="a folder of NAME.py with ModelNew")
    parser.add_argument("--timeout-s", type=int, default=300)
    parser.add_argument("--without-gpu", action="store_true")
    parser.add_argument("--judge", action="store_true", help="on a GPU: judge the kernels first")
    return parser.parse_args()


if __name__ == "__main__":
    main()
