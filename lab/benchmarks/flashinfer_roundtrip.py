"""A round trip through FlashInfer-Bench: our Solutions, loaded, built and run by its own tools.

    python lab/benchmarks/flashinfer_roundtrip.py --dataset flashinfer_trace --work /tmp/trip
        --python ENV-0.1.2/bin/python --python ENV-HEAD/bin/python

Each `--python` is an interpreter that has flashinfer-bench. It loads the dataset and our solutions
and builds them. With a GPU it then runs its own benchmark (`flashinfer-bench run`) on all workloads
of the definitions, `--shards` of them at once. With `--without-gpu` it calls what it built on the
CPU beside the references, and the definitions are all of the dataset. A `--validator` does no more
than load and build.

With `--judge`, each kernel and three wrong variants of it are judged here first, `--parallel`
definitions at once, and the traces of right kernels go with them. The judge is brief: eager is its
only baseline, and its times are rough. What `--judge-s` cuts short has no verdict.

The benchmark hands tensors to its worker by CUDA's handles between processes. Where a machine has
none, the same evaluators run in the benchmark's own process, and the output says so.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from flashinfer_kernels import reference_kernel, triton_kernel, wrong_kernels

from adaexplore import load_problem
from adaexplore.core import Candidate, Config, Environment, Failed, Problem
from adaexplore.evaluate import LocalEvaluator
from adaexplore.problems import (
    Delivery,
    Specification,
    dataset_entries,
    deliver_to_flashinfer,
    read_specification,
)
from adaexplore.run import delivery_of_judged, judge, map_parallel, session_on, start_server
from adaexplore.sandbox import ForkServer

_SIDE = Path(__file__).with_name("flashinfer_side.py")
_CLI = "from flashinfer_bench.cli.main import cli; cli()"
_MEMORY_BYTES = 16 << 30
_GOOD = "right"


@dataclass(slots=True)
class Trip:
    """The findings of one interpreter; `statuses` counts its traces by definition and status.

    `workloads` has the number of workloads of each definition.
    """

    python: str
    runs: bool
    workloads: dict[str, int] = field(default_factory=dict)
    dataset: dict[str, Any] = field(default_factory=dict)
    loaded: dict[str, Any] = field(default_factory=dict)
    built: dict[str, Any] = field(default_factory=dict)
    called: dict[str, Any] = field(default_factory=dict)
    statuses: dict[str, dict[str, int]] = field(default_factory=dict)
    ours: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def passed(self) -> list[str]:
        """The definitions whose every workload has a trace that is PASSED, and no other."""
        return [
            name
            for name, counts in self.statuses.items()
            if counts == {"PASSED": self.workloads.get(name)}
        ]


def main() -> None:
    """Make the trip, print it, and write it as JSON."""
    options = _options()
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    names = options.definitions or _definitions(options)
    judged = _judged_all(options, names) if options.judge else {}
    made = [_deliver(options, name, judged.get(name)) for name in names]
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


def _judged_all(options: argparse.Namespace, names: Sequence[str]) -> dict[str, Delivery]:
    """Judge the kernels of all definitions and their wrong variants, until the time is over.

    Return the deliveries of the right kernels that have a verdict; every verdict is a line of
    `judged.jsonl`.
    """
    found: dict[str, Delivery] = {}
    began = time.monotonic()
    first = _problem(options, names[0])
    server = start_server(first)
    with session_on(server, first, Config()) as session:
        environment = session.environment
    over = threading.Timer(options.judge_s or threading.TIMEOUT_MAX, server.close)
    over.daemon = True
    over.start()
    recording = threading.Lock()

    def work(name: str) -> None:
        if options.judge_s and time.monotonic() - began > options.judge_s:
            raise TimeoutError
        for what, delivery, line in _judged(options, server, environment, name):
            with recording, (options.work / "judged.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
                spent = f"{time.monotonic() - began:.0f} s"
                print(f"  {name}, {what}: {line['status']} {line['reason']} ({spent})", flush=True)
                if what == _GOOD:
                    found[name] = delivery

    try:
        for landed in map_parallel(names, work, options.parallel):
            if landed.error:
                error = f"{type(landed.error).__name__}: {landed.error}"
                print(f"  {landed.key}: not judged to the end: {error[:200]}", flush=True)
    finally:
        over.cancel()
        server.close()
    return found


def _judged(
    options: argparse.Namespace, server: ForkServer, environment: Environment, name: str
) -> Iterator[tuple[str, Delivery, dict[str, Any]]]:
    """Judge the kernel of a definition and its wrong variants beside one reference."""
    problem = _problem(options, name)
    source, _ = _kernel(options, read_specification(options.dataset, name))
    evaluator = LocalEvaluator(
        server, problem, timeout_s=options.timeout_s, memory_bytes=_MEMORY_BYTES, brief=True
    )
    with closing(evaluator):
        for what, text in {_GOOD: source, **wrong_kernels(source)}.items():
            candidate = Candidate(text, problem.language)
            judged = judge(problem, candidate, Config(), evaluator=evaluator)
            verdict = judged.verdict
            line = {
                "definition": name,
                "kernel": what,
                "workloads": len(problem.workloads),
                "status": verdict.status,
                "error": verdict.error,
                "reason": verdict.reason[:200] if isinstance(verdict, Failed) else "",
            }
            delivery = delivery_of_judged(judged, options.dataset)
            yield what, replace(delivery, environment=environment), line


def _problem(options: argparse.Namespace, name: str) -> Problem:
    """Load a definition with all of its workloads."""
    return load_problem(
        options.dataset,
        definition=name,
        workloads=options.workloads,
        timed=options.workloads,
        language="cpp" if options.without_gpu else "triton",
        device="cpu" if options.without_gpu else "cuda:0",
    )


def _deliver(options: argparse.Namespace, name: str, delivery: Delivery | None) -> bool:
    """Write one solution; return whether its kernel is in Triton."""
    specification = read_specification(options.dataset, name)
    source, own = _kernel(options, specification)
    deliver_to_flashinfer(delivery or Delivery(specification, source, "triton"), options.work)
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
    for name in names:
        trip.workloads[name] = len(read_specification(options.dataset, name).workloads)
    folder = options.work / "trips" / Path(python).absolute().parents[1].name
    shutil.copytree(options.work, folder, ignore=shutil.ignore_patterns("trips"))
    trip.dataset = _ask(python, "load", options.dataset)
    trip.loaded = _ask(python, "load", folder)
    trip.built = _ask(python, "build", folder)
    if options.without_gpu:
        trip.called = _ask(python, "call", folder)
    if trip.runs:
        _run(options, python, folder, names)
    trip.statuses, trip.ours = _statuses(folder, ours=False), _statuses(folder, ours=True)
    print(python)
    for part in ("dataset", "loaded", "built", "called"):
        print(f"  {part}: {getattr(trip, part)}")
    if trip.runs:
        for name in names:
            theirs, ours = trip.statuses.get(name, "no trace"), trip.ours.get(name, "no trace")
            said = f"  {name}, {trip.workloads[name]} workloads: {theirs}"
            print(said + (f"; ours: {ours}" if options.judge else ""))
        print(f"  passed on every workload: {len(trip.passed)} of {len(names)}")
    return trip


def _ask(python: str, action: str, folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [python, _SIDE, action, folder],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=_environment(),
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _environment() -> dict[str, str]:
    """Return the variables of an interpreter that shall see its own packages alone."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def _run(options: argparse.Namespace, python: str, folder: Path, names: Sequence[str]) -> None:
    """Let the benchmark run and time every solution, as its users do, some of them at once.

    The first definition shows whether its worker gets tensors from it.
    """
    ends = time.monotonic() + options.run_s if options.run_s else None
    first = min(names, key=len)
    _shard(options, [python, "-c", _CLI, "run"], folder, [first], ends)
    if "PASSED" in _statuses(folder, ours=False).get(first, {}):
        command, left = [python, "-c", _CLI, "run"], [name for name in names if name != first]
    else:
        print(f"  {first} did not pass by the benchmark's worker: {_reason(folder, first)}")
        print("  all definitions run in the benchmark's own process instead", flush=True)
        _drop_theirs(folder, first)
        command, left = [python, str(_SIDE), "run"], list(names)
    shards = [left[i :: options.shards] for i in range(options.shards)]
    threads = [
        threading.Thread(target=_shard, args=(options, command, folder, shard, ends))
        for shard in shards
        if shard
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _shard(
    options: argparse.Namespace,
    command: Sequence[str],
    folder: Path,
    names: Sequence[str],
    ends: float | None,
) -> None:
    """Run some definitions, one after the other; end them at the end of the time."""
    began = time.monotonic()
    words = ["--local", str(folder), "--save-results", "--timeout", str(options.timeout_s)]
    words += ["--iterations", str(options.iterations), "--warmup-runs", "3"]
    environment = _environment() | {"FIB_CACHE_PATH": str(folder / "cache")}
    with (folder / f"run-{names[0]}.log").open("a") as log:
        process = subprocess.Popen(
            [*command, *words, "--definitions", *names],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            said = f"exit code {process.wait(max(ends - began, 1) if ends else None)}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            said = "cut short by the end of the time"
    statuses = _statuses(folder, ours=False)
    counts = {name: statuses.get(name, {}) for name in names}
    print(f"  {said}, {time.monotonic() - began:.0f} s: {counts}", flush=True)


def _reason(folder: Path, name: str) -> str:
    """Return what is known of a run without a passed trace."""
    for trace in _traces(folder, ours=False):
        if trace["definition"] == name and trace["evaluation"]["status"] != "PASSED":
            said = str(trace["evaluation"].get("log") or "").strip().splitlines()
            return f"{trace['evaluation']['status']}: {' | '.join(said[-3:])[:400]}"
    log = folder / f"run-{name}.log"
    return " | ".join(log.read_text(errors="replace").strip().splitlines()[-3:])[:600]


def _drop_theirs(folder: Path, name: str) -> None:
    """Remove the benchmark's traces of a definition, which is run again."""
    for file in (folder / "traces").rglob(f"{name}.jsonl"):
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        file.write_text("".join(line for line in lines if _is_ours(json.loads(line))))


def _is_ours(trace: Mapping[str, Any]) -> bool:
    return "adaexplore" in trace["evaluation"]["environment"]["libs"]


def _traces(folder: Path, *, ours: bool) -> Iterator[dict[str, Any]]:
    """Yield the whole traces in a folder: those of our judge, or the others."""
    for file in sorted((folder / "traces").rglob("*.jsonl")):
        text = file.read_text(encoding="utf-8")
        for line in text[: text.rfind("\n") + 1].splitlines():
            trace: dict[str, Any] = json.loads(line)
            if _is_ours(trace) == ours:
                yield trace


def _statuses(folder: Path, *, ours: bool) -> dict[str, dict[str, int]]:
    """Count the traces in a folder by definition and status: those of our judge, or the others."""
    found: dict[str, Counter[str]] = {}
    for trace in _traces(folder, ours=ours):
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
    parser.add_argument("--workloads", default="all", help="those that are judged")
    parser.add_argument("--iterations", type=int, default=50, help="of the benchmark's timing")
    parser.add_argument("--shards", type=int, default=1, help="runs of the benchmark at once")
    parser.add_argument("--run-s", type=float, default=0, help="time of all runs; 0: no end")
    parser.add_argument("--judge-s", type=float, default=0, help="time of the judge; 0: no end")
    parser.add_argument("--parallel", type=int, default=1, help="definitions judged at once")
    parser.add_argument("--without-gpu", action="store_true")
    parser.add_argument("--judge", action="store_true", help="on a GPU: judge the kernels first")
    return parser.parse_args()


if __name__ == "__main__":
    main()
