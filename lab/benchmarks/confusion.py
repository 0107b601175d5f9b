"""What checkers make of cheats and of honest kernels: verdicts of one, and the matrix of all.

    python lab/benchmarks/confusion.py run kernelguard --path kernelguard --out kernelguard.jsonl
    python lab/benchmarks/confusion.py run kernelbench --path KernelBench/src --device cuda:0 \\
        --parallel 6 --budget-s 90 --out kernelbench.jsonl
    python lab/benchmarks/confusion.py table *.jsonl --ours h200-adversarial.log --json out.json

The samples are the corpora of `tests/adversarial`, and with `--withdrawn`, `--kernelbench`, `--sol`
and `--released` the audited cheats of the withdrawn CUDA-L1 release, the cheats that KernelBench
and SOL-ExecBench test themselves with, and kernels of AdaExplore that were judged right (see
`samples.py`). Checkers are called from clones (`--path`), see `rivals.py`. A checker that runs
candidates runs each in a confined worker of its own. What stands in `--out` is not judged again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from confusion_table import matrix, read_bench, read_ours, render
from rivals import CHECKERS, GPU_ONLY, RUNNING, judge
from samples import Sample, samples

from adaexplore.run import PRELOAD
from adaexplore.sandbox import (
    ForkServer,
    LimitExceededError,
    WorkerDiedError,
    candidate_limits,
    run_job,
)

_MEMORY_BYTES = 4 << 30
_HERE = Path(__file__).parent
_PROBE = """
import torch


class {name}(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(256, 256)]


def get_init_inputs():
    return []
"""


@dataclass(frozen=True, slots=True)
class Found:
    """A checker's verdict on a sample; `speedup` is what the checker itself measured, if it did."""

    sample: str
    kind: str
    family: str
    aimed: bool
    checker: str
    device: str
    refused: bool
    why: str
    speedup: float | None


def main() -> None:
    """Run a checker over the samples, or print the matrix."""
    options = _options()
    if options.command == "run":
        _run(options)
        return
    found = [row for file in options.files for row in _read(file)]
    ours = [one for log in options.ours for one in read_ours(log)]
    ours += [one for file in options.bench for one in read_bench(file)]
    table = matrix(found, ours)
    print(render(table))
    if options.json:
        options.json.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def _run(options: argparse.Namespace) -> None:
    done = {row["sample"] for row in _read(options.out)}
    chosen = [one for one in _chosen(options) if one.id not in done]
    random.Random(0).shuffle(chosen)  # a run that is cut short has judged some of everything
    options.out.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + options.budget_s
    with options.out.open("a", encoding="utf-8") as out:
        for found in _judged(chosen, options, deadline):
            out.write(json.dumps(asdict(found)) + "\n")
            out.flush()
    left = len(chosen) + len(done) - len(_read(options.out))
    print(f"{options.checker}: {len(_read(options.out))} judged, {left} left", file=sys.stderr)


def _chosen(options: argparse.Namespace) -> list[Sample]:
    every = samples(
        withdrawn=options.withdrawn,
        released=options.released,
        kernelbench=options.kernelbench,
        sol=options.sol,
    )
    if options.checker not in RUNNING:
        return list(every)
    kind = options.device.partition(":")[0]
    return [one for one in every if kind in one.devices and one.language != "cuda"]


def _judged(
    chosen: Sequence[Sample], options: argparse.Namespace, deadline: float
) -> Iterator[Found]:
    if options.checker not in RUNNING:
        for sample in chosen:
            yield _found(sample, options, judge(_request(sample, options)))
        return
    os.environ["PYTHONPATH"] = os.pathsep.join([str(_HERE), os.environ.get("PYTHONPATH", "")])
    server = ForkServer.start([*PRELOAD, "rivals"])

    _probe(server, options)

    def work(sample: Sample) -> Found | None:
        if time.monotonic() > deadline:
            return None
        return _found(sample, options, _confined(server, _request(sample, options)))

    try:
        with ThreadPoolExecutor(options.parallel) as threads:
            for job in as_completed([threads.submit(work, sample) for sample in chosen]):
                found = job.result()
                if found:
                    yield found
    finally:
        server.close()


def _probe(server: ForkServer, options: argparse.Namespace) -> None:
    """End the program where the checker refuses the plainest candidate: it does not work here."""
    source, problem = (_PROBE.format(name=name) for name in ("ModelNew", "Model"))
    probe = Sample("probe", "honest", "", source, problem, ())
    verdict = _confined(server, _request(probe, options))
    if verdict["refused"]:
        server.close()
        sys.exit(f"{options.checker} does not work here: {verdict['why']}")


def _confined(server: ForkServer, request: dict[str, Any]) -> dict[str, Any]:
    """Apply a checker in a worker; a candidate that ends the checker's process is refused."""
    kind: Literal["cpu", "gpu"] = "cpu" if request["device"] == "cpu" else "gpu"
    limits = candidate_limits(_MEMORY_BYTES, gpu=kind == "gpu")
    readable = (request["path"], str(_HERE))
    try:
        return run_job(
            server,
            "rivals:judge",
            request,
            request["timeout_s"],
            limits=limits,
            confined=kind,
            readable=readable,
        )
    except TimeoutError:
        why = f"not done after {request['timeout_s']:.0f} s"
    except LimitExceededError as error:
        why = str(error)
    except WorkerDiedError as error:
        lines = error.log.strip().splitlines()
        why = f"its process ended: {lines[-1] if lines else error}"
    return {"refused": True, "why": why, "speedup": None}


def _request(sample: Sample, options: argparse.Namespace) -> dict[str, Any]:
    return {
        "checker": options.checker,
        "path": str(options.path.resolve()),
        "device": options.device,
        "source": sample.source,
        "problem": sample.problem,
        "timeout_s": options.timeout_s,
    }


def _found(sample: Sample, options: argparse.Namespace, verdict: dict[str, Any]) -> Found:
    return Found(
        sample=sample.id,
        kind=sample.kind,
        family=sample.family,
        aimed=sample.aimed,
        checker=options.checker,
        device=options.device if options.checker in RUNNING else "",
        refused=bool(verdict["refused"]),
        why=str(verdict["why"])[:200],
        speedup=verdict["speedup"],
    )


def _read(file: Path) -> list[dict[str, Any]]:
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="one checker over all samples")
    run.add_argument("checker", choices=list(CHECKERS))
    run.add_argument("--path", type=Path, required=True, help="its clone, see rivals.py")
    run.add_argument("--device", default="cpu", help=f"a GPU for {' and '.join(GPU_ONLY)}")
    run.add_argument("--withdrawn", type=Path, help="a clone of sekstini/CUDA-L1")
    run.add_argument("--kernelbench", type=Path, help="a clone of KernelBench, for its samples")
    run.add_argument("--sol", type=Path, help="a clone of SOL-ExecBench, for its samples")
    run.add_argument("--released", type=Path, help="a clone of StigLidu/AdaExplore")
    run.add_argument("--parallel", type=int, default=1)
    run.add_argument("--timeout-s", type=float, default=60.0, help="for one candidate")
    run.add_argument("--budget-s", type=float, default=1e9, help="seconds; then nothing begins")
    run.add_argument("--out", type=Path, required=True)
    table = commands.add_parser("table", help="the matrix of all")
    table.add_argument("files", type=Path, nargs="*")
    table.add_argument("--ours", type=Path, nargs="*", default=[], help="logs of tests.adversarial")
    table.add_argument(
        "--bench", type=Path, nargs="*", default=[], help="verdicts.jsonl of `adaexplore bench`"
    )
    table.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
