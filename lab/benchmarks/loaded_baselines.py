"""Times the baselines of a host-bound problem alone, and beside searches that compile.

    python lab/benchmarks/loaded_baselines.py --device cuda:0 --searches 9 --times 3

Each preparation has another seed, so nothing is read from earlier trials. The searches go on in
the background, each on one module after the other, so that they compile something new throughout.
The default problem launches 90 small kernels.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from lanes import Lane

import adaexplore
from adaexplore.core import Problem, ReferenceFacts

_LAYERS = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [self.layer() for _ in range({depth})]
        self.layers = nn.Sequential(*layers)

    def layer(self):
        return nn.Sequential(nn.Linear({width}, {width}), nn.LayerNorm({width}), nn.GELU())

    def forward(self, x):
        return self.layers(x)


def get_inputs():
    return [torch.randn(16, {width})]
"""
_WIDTH, _DEPTH = 64, 30
_END_S = 60.0


def main() -> None:
    """Prepare the problem alone and beside searches; print a line for each baseline."""
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        path = options.problem or _written(Path(folder) / "layers.py", _WIDTH, _DEPTH)
        problem = adaexplore.load_problem(
            path,
            device=options.device,
            language="cpp" if options.device == "cpu" else "triton",
            precision=options.precision,
        )
        lane = Lane()
        try:
            lane.start()
            alone = [_prepared(lane, problem, number) for number in range(options.times)]
            with searches(Path(folder), options.searches, options.device):
                time.sleep(options.settle_s)
                numbers = range(options.times, 2 * options.times)
                beside = [_prepared(lane, problem, number) for number in numbers]
        finally:
            lane.close()
    found = summary(alone, beside)
    print("\n".join(lines(found)))
    if options.out:
        asked = {"device": options.device, "problem": problem.name, "searches": options.searches}
        asked |= {"precision": options.precision, "host": _host()}
        text = json.dumps(asked | found, indent=1)
        options.out.write_text(text + "\n", encoding="utf-8")


Prepared = tuple[ReferenceFacts, float]
"""The facts about a prepared problem, and the share of the processors that worked meanwhile."""


def summary(alone: list[Prepared], beside: list[Prepared]) -> dict[str, Any]:
    """The times of each baseline in microseconds, and the ratio of their medians."""
    names = set.intersection(*(set(facts.baselines_us) for facts, _ in (*alone, *beside)))
    baselines = {}
    for name in sorted(names):
        alone_us = [round(facts.baselines_us[name], 2) for facts, _ in alone]
        beside_us = [round(facts.baselines_us[name], 2) for facts, _ in beside]
        ratio = round(median(beside_us) / median(alone_us), 4)
        baselines[name] = {"alone_us": alone_us, "beside_us": beside_us, "ratio": ratio}
    return {
        "baselines": baselines,
        "host_at_work": {
            "alone": [round(share, 3) for _, share in alone],
            "beside": [round(share, 3) for _, share in beside],
        },
        "notes": sorted({note for facts, _ in (*alone, *beside) for note in facts.notes}),
    }


def lines(found: dict[str, Any]) -> Iterator[str]:
    """The summary as text."""
    for name, times in found["baselines"].items():
        alone_us, beside_us = times["alone_us"], times["beside_us"]
        yield (
            f"{name:24} alone {median(alone_us):9.1f} us ({min(alone_us):.1f} to "
            f"{max(alone_us):.1f}), beside {median(beside_us):9.1f} us ({min(beside_us):.1f} to "
            f"{max(beside_us):.1f}), ratio {times['ratio']:.3f}"
        )
    at_work = found["host_at_work"]
    yield (
        f"processors at work: {median(at_work['alone']):.0%} alone, "
        f"{median(at_work['beside']):.0%} beside"
    )
    yield from found["notes"]


@contextmanager
def searches(folder: Path, count: int, device: str) -> Iterator[None]:
    """Keep `count` searches without a model going in the body."""
    ending, variants = threading.Event(), itertools.count()
    running: list[subprocess.Popen[bytes]] = []

    def search(number: int) -> None:
        while not ending.is_set():
            variant = next(variants)
            name = f"{number}-{variant}"
            problem = _written(folder / f"{name}.py", 32 + 8 * variant, 4 + number)
            with subprocess.Popen(
                [
                    *(sys.executable, "-m", "adaexplore", "explore", str(problem)),
                    *("--device", device, "--steps", "40", "--run", str(folder / f"run-{name}")),
                ],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ) as process:
                running.append(process)
                process.wait()
            running.remove(process)

    threads = [threading.Thread(target=search, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ending.set()
        _end(running, signal.SIGINT)
        for thread in threads:
            thread.join(_END_S)
        _end(running, signal.SIGKILL)


def _end(running: list[subprocess.Popen[bytes]], number: signal.Signals) -> None:
    for process in tuple(running):
        process.send_signal(number)


def _prepared(lane: Lane, problem: Problem, number: int) -> Prepared:
    with lane.evaluator(replace(problem, seed=number), 600.0) as evaluator:
        at_work = _share_at_work()
        facts, share = evaluator.prepare(), at_work()
    times = ", ".join(f"{name} {us:.1f}" for name, us in facts.baselines_us.items())
    print(f"preparation {number}, processors at work {share:.0%}, in us: {times}", flush=True)
    return facts, share


def _share_at_work() -> Callable[[], float]:
    """Return a function that tells the share of processor time that was used since this call."""
    used_before, all_before = _jiffies()

    def share() -> float:
        used, total = _jiffies()
        return (used - used_before) / max(total - all_before, 1)

    return share


def _jiffies() -> tuple[int, int]:
    """Return the processor time used and passed, of all processors (proc_stat(5))."""
    user, nice, system, idle, waiting, *others = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    )
    used = user + nice + system + sum(others)
    return used, used + idle + waiting


def _host() -> dict[str, Any]:
    """Return the number of processors, and the limit on their time that a container has."""
    limit = Path("/sys/fs/cgroup/cpu.max")
    return {
        "processors": len(os.sched_getaffinity(0)),
        "cpu_max": limit.read_text().strip() if limit.is_file() else "",
    }


def _written(path: Path, width: int, depth: int) -> Path:
    path.write_text(_LAYERS.format(width=width, depth=depth), encoding="utf-8")
    return path


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problem", type=Path, nargs="?", help="default: 30 small layers")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--precision", default="tf32")
    parser.add_argument("--searches", type=int, default=9)
    parser.add_argument("--times", type=int, default=3, help="preparations alone, and beside")
    parser.add_argument("--settle-s", type=float, default=30.0, help="before it begins beside")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
