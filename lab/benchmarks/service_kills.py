"""Kills of a service, its workers, Ray nodes and PostgreSQL at random moments: what became of it.

    python lab/benchmarks/service_kills.py --kills 20 --seed 19 --out service-kills.json

A real `adaexplore serve` over a real PostgreSQL server and a Ray cluster of two nodes with a device
each runs searches and batches of evaluations for a client that follows all of them. Every few
seconds one of the four is ended by SIGKILL, each as often as the others, and started again:

- server: the process of the service
- worker: the process of a job that runs
- node: all processes of a Ray node with a device
- database: all processes of PostgreSQL

Pauses and `torch.compile` cost nothing here (`tests/eager`), so that there are many steps to lose.
Afterwards all jobs run to their end. `lost` and `doubled` have to be empty, and `failed` too: no
user did anything wrong. Needs PostgreSQL and Ray; no GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from service_load import CANDIDATE, PROBLEM

from adaexplore.core import AdaExploreError
from adaexplore.serve import Account, Client, JobEvent, JobInfo, add_token, open_folder, problem_of
from adaexplore.store import read_run

_ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(_ROOT / "tests"))
import postgres_server  # type: ignore[import-not-found]  # noqa: E402
import ray_cluster  # type: ignore[import-not-found]  # noqa: E402

STEPS, BATCH, AT_ONCE = 8, 4, 4
KINDS = ("server", "worker", "node", "database")
_OPTIONS = {"language": "cpp", "steps": STEPS, "confirm": False, "stop_near": 0.0}
_PAUSE_S = (12.0, 36.0)
_GIVEN_UP = "its worker was lost 3 times"
_DOWN_S = (0.0, 5.0)
_START_S = 180.0
_PATIENCE_S = 600.0
_END_S = 1200.0


@dataclass
class Followed:
    """A job that was accepted, and the events that its client saw.

    A search that the service gives up, since three kills in a row came before its next step, is
    `continued`.
    """

    info: JobInfo
    events: list[JobEvent] = field(default_factory=list)
    continued: int = 0


class Load:
    """A client that keeps some jobs under way and follows all of them, over every kill."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token
        self.jobs: list[Followed] = []
        self.trouble: list[str] = []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._submit, daemon=True)]
        self._followers: list[threading.Thread] = []
        self._threads[0].start()

    def finish(self) -> None:
        """Submit no more, and wait for the ends of all jobs."""
        self._over.set()
        until = time.monotonic() + _END_S
        for thread in [*self._threads, *self._followers]:
            thread.join(max(until - time.monotonic(), 0.0))

    def client(self) -> Client:
        """Return a client that waits for a service that is away."""
        return Client(self._url, self._token, patience_s=_PATIENCE_S)

    def _submit(self) -> None:
        with self.client() as client:
            problem = problem_of("relu", PROBLEM)
            while not self._over.is_set():
                if sum(thread.is_alive() for thread in self._followers) >= AT_ONCE:
                    self._over.wait(0.2)
                    continue
                number = len(self.jobs)
                if number % 2:
                    batch = [f"{CANDIDATE}# {number}.{index}\n" for index in range(BATCH)]
                    job = client.submit_evaluation(problem, batch, {"language": "cpp"})
                else:
                    job = client.submit_search(problem, _OPTIONS)
                self.jobs.append(Followed(job))
                follower = threading.Thread(target=self._follow, args=(self.jobs[-1],), daemon=True)
                self._followers.append(follower)
                follower.start()

    def _follow(self, job: Followed) -> None:
        try:
            with self.client() as client:
                while True:
                    after = len(job.events)
                    job.events.extend(client.events(job.info.id, after))
                    ended = client.job(job.info.id)
                    if (ended.kind, ended.error) != ("search", _GIVEN_UP):
                        return
                    client.go_on(job.info.id)
                    job.continued += 1
        except (AdaExploreError, httpx.HTTPError) as error:
            self.trouble.append(f"{job.info.id}: {error!r}")


class Parts:
    """The four parts of a service, each of which is killed and started again."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        programs = postgres_server.binaries()
        assert programs, "PostgreSQL is not installed"
        eager = os.pathsep.join((str(_ROOT / "tests" / "eager"), str(_ROOT / "src")))
        self._environment = {"PYTHONPATH": eager}
        self._database = stack.enter_context(closing(postgres_server.PostgresServer(programs)))
        self._cluster = stack.enter_context(closing(ray_cluster.RayCluster()))
        self._nodes = [self._new_node() for _ in range(2)]
        self._folder, self._store = folder, self._database.new_database("served")
        engine = open_folder(folder, self._store)
        account = Account("alice", ("evaluate", "search"), 1000, 10**6, 10**6)
        self.token = add_token(engine, account)
        engine.dispose()
        self._port = ray_cluster.free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.restarts = -1
        self._start_server()
        stack.callback(self._kill_server)

    def kill(self, kind: str, down_s: float, rng: random.Random) -> float:
        """Kill a part, and start it again after a while; return the seconds until it was back."""
        began = time.monotonic()
        match kind:
            case "server":
                self._kill_server()
                time.sleep(down_s)
                self._start_server()
            case "worker":
                os.kill(self._some_worker(rng), signal.SIGKILL)
            case "node":
                number = rng.randrange(len(self._nodes))
                self._nodes[number].stop()
                time.sleep(down_s)
                self._nodes[number] = self._new_node()
            case "database":
                self._database.kill()
                time.sleep(down_s)
                self._database.start()
        return time.monotonic() - began

    def _new_node(self) -> Any:
        return self._cluster.add(**self._environment)

    def _some_worker(self, rng: random.Random) -> int:
        until = time.monotonic() + _START_S
        while time.monotonic() < until:
            found: list[int] = [
                pid
                for pid in ray_cluster.children(self._server.pid)
                if "serve.worker" in ray_cluster.command(pid)
            ]
            if found:
                return rng.choice(found)
            time.sleep(0.05)
        raise TimeoutError("no job runs")

    def _kill_server(self) -> None:
        self._server.kill()
        self._server.wait()

    def _start_server(self) -> None:
        """Start the service as a supervisor does: until it answers."""
        until = time.monotonic() + _START_S
        while time.monotonic() < until:
            self.restarts += 1
            if self._server_answers():
                return
        raise TimeoutError("the service did not start")

    def _server_answers(self) -> bool:
        words = ["--folder", self._folder, "--port", self._port, "--store", self._store]
        words += ["--ray", self._cluster.address, "--jobs", 2]
        with (self._folder / "server.log").open("ab") as log:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "adaexplore", "serve", *map(str, words)],
                env=os.environ | self._cluster.environment | self._environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._server.stdout is not None
        return any(" at http" in line for line in self._server.stdout)


def measured(kills: int, seed: int) -> dict[str, Any]:
    """Kill the parts of a service, and return what became of its jobs."""
    rng, done = random.Random(seed), list[dict[str, Any]]()
    order = [KINDS[number % len(KINDS)] for number in range(kills)]
    rng.shuffle(order)
    with tempfile.TemporaryDirectory(prefix="service-kills-") as scratch, ExitStack() as stack:
        parts = Parts(Path(scratch) / "serve", stack)
        load, began = Load(parts.url, parts.token), time.monotonic()
        for kind in order:
            time.sleep(rng.uniform(*_PAUSE_S))
            at_s, down_s = time.monotonic() - began, rng.uniform(*_DOWN_S)
            back_s = parts.kill(kind, down_s, rng)
            done.append({"at_s": round(at_s, 1), "killed": kind, "back_s": round(back_s, 1)})
            print(done[-1], len(load.jobs), "jobs", flush=True)
        load.finish()
        wall_s = time.monotonic() - began
        with load.client() as client:
            found = compared(client, load, Path(scratch))
    return {
        "seed": seed,
        "cores": os.cpu_count(),
        "wall_s": round(wall_s, 1),
        "kills": done,
        "starts_that_failed": parts.restarts - order.count("server"),
        **found,
    }


def compared(client: Client, load: Load, scratch: Path) -> dict[str, Any]:
    """Return what is lost, doubled or failed of all jobs, with the trouble of their followers."""
    lost, doubled, failed = list[str](), list[str](), list[str]()
    counts: Counter[str] = Counter()
    there = Counter(job.id for job in client.jobs(1000))
    accepted = {job.info.id for job in load.jobs}
    lost += [f"job {job}" for job in accepted - set(there)]
    doubled += [f"job {job}" for job in set(there) - accepted]
    for job in load.jobs:
        ended = client.job(job.info.id)
        counts[f"{ended.kind} {ended.state}"] += 1
        counts["given up and continued"] += job.continued
        if ended.state != "done":
            failed.append(f"{ended.kind} {ended.id}: {ended.state} {ended.error}")
            continue
        numbers = [event.number for event in job.events]
        if numbers != list(range(1, len(numbers) + 1)):
            lost.append(f"{ended.id}: events {numbers}")
        if ended.kind == "search":
            client.save_files(ended, scratch / ended.id)
            _compare_search(job, scratch / ended.id / "run.json.xz", lost, doubled, counts)
        else:
            _compare_batch(client, job, lost, doubled, counts)
    return {
        "jobs": dict(counts),
        "lost": lost,
        "doubled": doubled,
        "failed": failed,
        "trouble": load.trouble,
    }


def _compare_search(
    job: Followed, file: Path, lost: list[str], doubled: list[str], counts: Counter[str]
) -> None:
    with read_run(file) as run:
        nodes, asks = run.store.nodes(), run.store.asks()
    name = job.info.id
    if [node.id for node in nodes] != list(range(1, STEPS + 1)):
        lost.append(f"{name}: steps {[node.id for node in nodes]}")
    if len({node.ask_id for node in nodes}) < len(nodes):
        doubled.append(f"{name}: asks {[node.ask_id for node in nodes]}")
    lost += [f"{name}: ask {one.ask.id} {one.state}" for one in asks if one.state != "done"]
    told = [event.data for event in job.events if event.type == "recorded"]
    seen = Counter(data["step"] for data in told)
    doubled += [f"{name}: event of step {step} twice" for step, n in seen.items() if n > 1]
    kept = {node.id: (node.proposal.note, node.evaluation.status) for node in nodes}
    for data in told:
        if kept.get(data["step"]) != (data["note"], data["evaluation"]["status"]):
            lost.append(f"{name}: step {data['step']} is not the one that was told")
    counts["steps"] += len(nodes)
    counts["steps whose event a kill took"] += len(nodes) - len(seen)


def _compare_batch(
    client: Client, job: Followed, lost: list[str], doubled: list[str], counts: Counter[str]
) -> None:
    verdicts = client.result(job.info.id).verdicts
    if len(verdicts) != BATCH or any(each["status"] != "passed" for each in verdicts):
        lost.append(f"{job.info.id}: verdicts {[each['status'] for each in verdicts]}")
    ends = sum(event.type == "state" and event.text == "done" for event in job.events)
    if ends > 1:
        doubled.append(f"{job.info.id}: {ends} ends")
    counts["verdicts"] += len(verdicts)


def main() -> None:
    """Measure, and print or write the result."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = measured(options.kills, options.seed)
    text = json.dumps(found, indent=1) + "\n"
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    print(text)
    sys.exit(any(found[name] for name in ("lost", "doubled", "failed", "trouble")))


if __name__ == "__main__":
    main()
