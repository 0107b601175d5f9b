"""Candidates a minute over Ray, on one, two and more devices of this machine.

    python lab/benchmarks/cluster_throughput.py --devices 1 2 4 --count 40 --out cluster.json
    python lab/benchmarks/cluster_throughput.py --cpu --devices 1 2 --count 6 --out cluster.json

A cluster is started for each number of devices. For each GPU, four candidates are under way at
once. They are right, and differ in their compiled code, so that none takes its time over from
another. `first_s` is the time until all judges have prepared the reference and three candidates
each are judged; the rate is that of the others. `canary` has, for each device, the median time of
its canary beside that work and afterwards, with nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from adaexplore.core import Candidate, Config, Problem
from adaexplore.run import RayDevice, open_session

_IDLE_CANARIES = 20
_STEPS_EACH = 4  # for each GPU: candidates are compiled while another is timed

REFERENCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.sigmoid(x) * x.relu()


def get_inputs():
    return [torch.randn(SIZE, 4096)]
"""
ON_GPU = """
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def gated(x_ptr, out_ptr, n, BLOCK: tl.constexpr, UNIQUE: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    result = tl.where(n < 0, UNIQUE, tl.sigmoid(x) * tl.maximum(x, 0.0))
    tl.store(out_ptr + at, result, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out, n = torch.empty_like(x), x.numel()
        gated[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024, UNIQUE={number}.0)
        return out
"""
ON_CPU = """
import torch
from torch import nn


class ModelNew(nn.Module):
    number = {number}

    def forward(self, x):
        return torch.sigmoid(x) * x.clamp(min=0)
"""


def main() -> None:
    """Measure each number of devices; print and write the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--count", type=int, default=40, help="candidates for each device")
    parser.add_argument("--cpu", action="store_true", help="processors in the place of GPUs")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    for devices in options.devices:
        words = [sys.executable, __file__, "--devices", str(devices), "--out", str(options.out)]
        words += ["--count", str(options.count), *(["--cpu"] if options.cpu else [])]
        if len(options.devices) == 1:
            found.append(measured(devices, devices * options.count, on_gpu=not options.cpu))
        else:  # a process joins one cluster
            subprocess.run(words, check=True)
            found += json.loads(options.out.read_text(encoding="utf-8"))
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if len(options.devices) > 1:
        for row in found:
            ratio = row["candidates_per_minute"] / found[0]["candidates_per_minute"]
            print(f"{row['devices']}: {row['candidates_per_minute']:.1f} a minute, {ratio:.2f}x")
            for device, took in row["canary"].items():
                part = took["busy_us"] / took["idle_us"] - 1
                print(
                    f"  the canary of {device}: {took['idle_us']:.1f} us, {part:+.2%} beside work"
                )


def measured(devices: int, count: int, *, on_gpu: bool) -> dict[str, Any]:
    """Return the figures of a cluster with so many devices, started for this."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        token = Path(folder) / "token"
        token.write_text("a" * 64, encoding="utf-8")
        token.chmod(0o600)
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
        if on_gpu:
            given = os.environ.get("CUDA_VISIBLE_DEVICES") or "0,1,2,3,4,5,6,7"
            visible = {"CUDA_VISIBLE_DEVICES": ",".join(given.split(",")[:devices])}
        else:
            visible = {"CUDA_VISIBLE_DEVICES": ""}
        ray = [sys.executable, "-m", "ray.scripts.scripts"]
        start = ["start", "--head", f"--port={port}", "--include-dashboard=false"]
        start += [f"--num-cpus={max(devices, 8) if on_gpu else devices}"]
        start += [f"--num-gpus={devices if on_gpu else 0}"]
        quiet: dict[str, Any] = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
        subprocess.run([*ray, *start], env=os.environ | visible, check=True, **quiet)
        try:
            return judged(f"127.0.0.1:{port}", devices, count, on_gpu=on_gpu)
        finally:
            import_module("ray").shutdown()  # imported once there is a token
            subprocess.run([*ray, "stop", "--force"], check=False, **quiet)


def judged(address: str, devices: int, count: int, *, on_gpu: bool) -> dict[str, Any]:
    """Judge the candidates on all devices of a cluster; return the figures."""
    source = REFERENCE.replace("SIZE", "4096" if on_gpu else "64")
    problem = Problem("gated", source, "triton" if on_gpu else "cpp", "cuda:0" if on_gpu else "cpu")
    template = ON_GPU if on_gpu else ON_CPU
    with (
        canaries_noted() as noted,
        open_session(problem, Config(ray=address), parallel=devices) as session,
    ):
        steps = devices if problem.device == "cpu" else _STEPS_EACH * devices

        def judge(number: int) -> str:
            candidate = Candidate(template.format(number=number), problem.language)
            return session.evaluator.evaluate(candidate).status

        began = time.monotonic()
        session.evaluator.prepare()
        with ThreadPoolExecutor(steps) as threads:
            first = Counter(threads.map(judge, range(begins := 3 * steps)))
            first_s = time.monotonic() - began
            began = time.monotonic()
            statuses = Counter(threads.map(judge, range(begins, begins + count)))
            wall_s = time.monotonic() - began
        busy_us = {device: median(times) for device, times in noted.items()}
        idle_us = {
            device: median(device.canary_us() for _ in range(_IDLE_CANARIES)) for device in busy_us
        }
    return {
        "devices": devices,
        "at_once": steps,
        "first_s": first_s,
        "first": dict(first),
        "candidates": count,
        "statuses": dict(statuses),
        "wall_s": wall_s,
        "candidates_per_minute": 60 * count / wall_s,
        "canary": {d.id: {"busy_us": busy_us[d], "idle_us": idle_us[d]} for d in busy_us},
    }


@contextmanager
def canaries_noted() -> Iterator[dict[RayDevice, list[float]]]:
    """Note the times of the canaries of all devices in the body."""
    noted: dict[RayDevice, list[float]] = defaultdict(list)
    canary_us = RayDevice.canary_us

    def timed(device: RayDevice) -> float:
        time_us = canary_us(device)
        noted[device].append(time_us)
        return time_us

    RayDevice.canary_us = timed  # type: ignore[method-assign, assignment]
    try:
        yield noted
    finally:
        RayDevice.canary_us = canary_us  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
