"""Many clients of one service on loopback: what each asked for, what came back, and how fast.

    python lab/benchmarks/service_load.py --clients 300 --each 6 --out service-load.json

Each client is a connection with a token of its own. In every turn it submits an evaluation, reads
the job, asks for the list of its jobs, and cancels the job, as clients that are impatient do; every
tenth client reads the events of its first job to their end. No job runs, so the time is that of the
service alone. A request that the service refuses with 429 or 503 is made again, as the package's
own client does, and counted.

`lost` are jobs that were accepted and are not there afterwards, `doubled` those that are there
twice, `foreign` those that another user's list shows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx

from adaexplore.serve import Account, add_token, open_folder

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1

def get_inputs():
    return [torch.randn(64, 64)]
"""
CANDIDATE = PROBLEM.partition("def get_inputs")[0].replace("Model", "ModelNew")
ORDER = {"problem": {"name": "p", "source": PROBLEM}, "candidates": [CANDIDATE]}
_AGAIN = (429, 503)
_START_S = 60.0
_MOST_S = 900.0


@dataclass
class Seen:
    """What all clients saw: seconds by kind of request, and answers by status."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)
    again: int = 0
    broken: int = 0
    accepted: list[str] = field(default_factory=list)
    foreign: int = 0
    streams: int = 0


class LoadClient:
    """One user with a connection."""

    def __init__(self, url: str, token: str, seen: Seen) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.AsyncClient(base_url=url, headers=headers, timeout=120.0)
        self._seen = seen
        self._own: set[str] = set()

    async def run(self, turns: int, streams: bool) -> None:
        """Make all requests, one after the other."""
        async with self._http:
            for turn in range(turns):
                answer = await self._ask("submit", "POST", "/v1/evaluations", json=ORDER)
                job = str(answer.json()["id"])
                self._own.add(job)
                self._seen.accepted.append(job)
                await self._ask("job", "GET", f"/v1/jobs/{job}")
                listed = await self._ask("list", "GET", "/v1/jobs")
                self._seen.foreign += len({each["id"] for each in listed.json()} - self._own)
                await self._ask("cancel", "POST", f"/v1/jobs/{job}/cancel")
                if streams and turn == 0:
                    events = await self._ask("events", "GET", f"/v1/jobs/{job}/events")
                    self._seen.streams += "cancelled" in events.text

    async def _ask(self, kind: str, method: str, path: str, **given: Any) -> httpx.Response:
        while True:
            began = time.perf_counter()
            try:
                answer = await self._http.request(method, path, **given)
            except httpx.TransportError:
                self._seen.broken += 1
                await asyncio.sleep(0.5)
                continue
            self._seen.statuses[answer.status_code] += 1
            if answer.status_code not in _AGAIN:
                self._seen.seconds.setdefault(kind, []).append(time.perf_counter() - began)
                answer.raise_for_status()
                return answer
            self._seen.again += 1
            await asyncio.sleep(0.5)


def measured(clients: int, each: int, store: str) -> dict[str, Any]:
    """Start a service, let clients at it, and return what came of it."""
    with tempfile.TemporaryDirectory(prefix="service-load-") as scratch:
        folder = Path(scratch) / "serve"
        engine = open_folder(folder, store)
        made = [add_token(engine, Account(f"user{i}", ("evaluate",))) for i in range(clients)]
        engine.dispose()
        words = ["serve", "--folder", str(folder), "--jobs", "0", "--port", "0"]
        command = [
            sys.executable,
            "-m",
            "adaexplore",
            *words,
            *(["--store", store] if store else []),
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            url = _address(process)
            seen, began = Seen(), time.monotonic()
            asyncio.run(asyncio.wait_for(_load(url, made, each, seen), _MOST_S))
            wall_s = time.monotonic() - began
            health = httpx.get(f"{url}/health", timeout=30).json()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        there = [entry.name for entry in (folder / "jobs").iterdir()]
    requests = sum(seen.statuses.values())
    return {
        "clients": clients,
        "turns": each,
        "store": "postgresql" if store else "sqlite",
        "cores": os.cpu_count(),
        "requests": requests,
        "wall_s": wall_s,
        "requests_per_s": requests / wall_s,
        "statuses": {str(status): count for status, count in sorted(seen.statuses.items())},
        "made_again": seen.again,
        "broken_connections": seen.broken,
        "accepted": len(seen.accepted),
        "lost": len(set(seen.accepted) - set(there)),
        "doubled": len(there) - len(set(seen.accepted)),
        "foreign": seen.foreign,
        "streams_that_ended": seen.streams,
        "health_afterwards": health,
        "seconds": {kind: _percentiles(taken) for kind, taken in seen.seconds.items()},
    }


async def _load(url: str, tokens: list[str], each: int, seen: Seen) -> None:
    clients = [LoadClient(url, token, seen) for token in tokens]
    await asyncio.gather(*(c.run(each, number % 10 == 0) for number, c in enumerate(clients)))


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    until = time.monotonic() + _START_S
    while time.monotonic() < until:
        if " at http" in (line := process.stdout.readline()):
            return line.rpartition(" at ")[2].strip()
    raise TimeoutError("the service did not start")


def _percentiles(taken: list[float]) -> dict[str, float]:
    cuts = quantiles(taken, n=100, method="inclusive")
    return {"median": cuts[49], "95 %": cuts[94], "99 %": cuts[98], "most": max(taken)}


def main() -> None:
    """Measure, and print or write the result."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--clients", type=int, default=300)
    parser.add_argument("--each", type=int, default=6, help="turns of a client")
    parser.add_argument("--store", default="", help="URL of a PostgreSQL database")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    text = json.dumps(measured(options.clients, options.each, options.store), indent=1) + "\n"
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
