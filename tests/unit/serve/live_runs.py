"""Runs and campaigns made by hand, and the live pages over them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services import PROBLEM

from adaexplore.core.ask import MANUAL
from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Evaluation, Passed, Timing
from adaexplore.run.campaign.file import CampaignEntry, CampaignPlan
from adaexplore.run.proposers import make_plan
from adaexplore.serve.page.app import pages_server
from adaexplore.store import RunRecord, create_run, open_run
from adaexplore.store.campaign import create_campaign
from loopback import in_thread

HOLD = """
import signal, sys, time
from pathlib import Path
from adaexplore.store import open_run
with open_run(Path(sys.argv[1])):
    print("held", flush=True)
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        print("stopped", flush=True)
"""
"""Holds a run, and prints "stopped" on Ctrl-C."""
NINE_STEPS = Config(steps=9)
MANUAL_CONFIG = Config(proposer=MANUAL, steps=3, device="cpu", language="cpp", memory="none")


def passed(speedup: float) -> Passed:
    interval = (speedup * 0.98, speedup * 1.02)
    baselines = {"eager": 900.0, "compile": 720.0}
    timing = Timing(720 / speedup, (1.0, 2.0), baselines, speedup, interval, speedup * 1.25, 100)
    return Passed("fp32", 1e-7, timing)


def record(config: Config = NINE_STEPS, name: str = "softmax") -> RunRecord:
    plan = make_plan(config)
    return RunRecord(
        problem=Problem(name, PROBLEM, "cpp", "cpu"),
        config=config,
        proposers=plan.proposers,
        environment=Environment(),
        command="adaexplore explore softmax.py",
        created_at=1.7e9,
        plan=plan.to_json(),
    )


def step(number: int, parent: int, found: Evaluation, text: str = "") -> Node:
    source = f"import torch\n\n\ndef launch(x):\n    return x * {number}\n{text}"
    proposal = Proposal(Candidate(source, "cpp"), "compiler", f"threads={number}{text}")
    return Node(number, parent, "small" if parent else "large", proposal, found)


def make_run(path: Path, *nodes: Node, **given) -> Path:
    with create_run(path, record(**given)) as directory:
        for node in nodes:
            directory.store.record(node)
    return path


def add(path: Path, node: Node) -> None:
    """Record a step as a search does."""
    with open_run(path) as directory:
        directory.store.record(node)


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    with in_thread(pages_server([folder], 0)) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def at_work(path: Path, script: str = HOLD) -> Iterator[subprocess.Popen[str]]:
    """Start a script that holds a run."""
    words = [sys.executable, "-c", script, path]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def campaign(path: Path, *names: str) -> Path:
    """Make a campaign; problems whose names are folders get a run with one step."""
    entries = tuple(CampaignEntry(name, "x.py", Config(steps=4)) for name in names)
    order = CampaignPlan(Config(steps=4), entries).to_json()
    create_campaign(path, {"command": "adaexplore campaign", "created_at": 1.0, "order": order})
    for place, entry in enumerate(entries):
        if "/" in entry.name:
            continue
        make_run(path / entry.name, step(1, 0, passed(1.4 + place)), name=entry.name)
    return path


def study(path: Path, *arms: str) -> Path:
    """Make a study of these arms on two problems; every run has one step."""
    entries = tuple(
        CampaignEntry(f"{arm}/{name}-seed0", f"{name}.py", Config(steps=4, policy=policy), arm=arm)
        for name in ("gelu", "relu")
        for arm, policy in zip(arms, ("uct", "ps"), strict=True)
    )
    order = CampaignPlan(Config(steps=4), entries, arms=arms).to_json()
    create_campaign(path, {"command": "adaexplore study", "created_at": 1.0, "order": order})
    for entry in entries:
        (path / entry.arm).mkdir(exist_ok=True)
        speedup = 1.5 if entry.arm == arms[0] else 1.2
        name = entry.name.partition("/")[2].removesuffix("-seed0")
        make_run(path / entry.name, step(1, 0, passed(speedup)), config=entry.config, name=name)
    return path
