"""A search killed at random moments and resumed loses no recorded step and leaves no process."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.core.node import ROOT_ID, Node
from adaexplore.store import read_run

EXAMPLE = (Path(__file__).parents[2] / "examples" / "problems" / "softmax.py").read_text()
SMALL = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1

def get_inputs():
    return [torch.randn(64, 64)]
"""
EAGER = Path(__file__).parents[1] / "eager"


def eager_path() -> str:
    """Return the PYTHONPATH of a process in which compiling and pauses cost nothing."""
    return os.pathsep.join(filter(None, [str(EAGER), os.environ.get("PYTHONPATH", "")]))


LONGEST_S = 180.0


class Run:
    """A run directory and the command line that works on it, with `parallel` steps at once."""

    def __init__(self, folder: Path, parallel: int, steps: int, source: str = EXAMPLE) -> None:
        self.path = folder / "run"
        self._problem = folder / "problem.py"
        self._problem.write_text(source)
        self._parallel = str(parallel)
        self._steps = str(steps)
        self._environment = os.environ | {"TMPDIR": str(folder)}
        if source == SMALL:
            self._environment["PYTHONPATH"] = eager_path()

    @property
    def exists(self) -> bool:
        """False also where a kill came between making the directory and the first transaction."""
        try:
            read_run(self.path).close()
        except BadInputError:
            return False
        return True

    def nodes(self) -> list[Node]:
        """The recorded steps."""
        if not self.exists:
            return []
        with read_run(self.path) as run:
            return run.store.nodes()

    def start(self) -> subprocess.Popen[str]:
        """Begins the search, or goes on with it."""
        if self.exists:
            words = ["resume", str(self.path)]
        else:
            shutil.rmtree(self.path, ignore_errors=True)
            words = ["explore", str(self._problem), "--device", "cpu", "--run", str(self.path)]
            words += ["--steps", self._steps, "--seed", "3", "--set", "confirm_top=1"]
        words += ["--parallel", self._parallel]
        return subprocess.Popen(
            [sys.executable, "-m", "adaexplore", *words],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def family(pid: int) -> set[int]:
    """A process and all its descendants, as they are now."""
    found = [pid]
    for parent in found:
        for listed in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += [int(child) for child in listed.read_text().split()]
            except OSError:
                continue
    return set(found)


def kill_at_some_moment(run: Run, search: subprocess.Popen[str], rng: random.Random) -> set[int]:
    """Lets the search work for a while and kills its whole tree; all processes it ever had."""
    known, seen = len(run.nodes()), set()
    waiting = rng.random() < 0.7  # for a step first: starting up is most of so short a search
    end = time.monotonic() + (LONGEST_S if waiting else rng.uniform(1.0, 20.0))
    while time.monotonic() < end and search.poll() is None:
        seen |= family(search.pid)
        if waiting and len(run.nodes()) > known:
            waiting, end = False, time.monotonic() + rng.uniform(0.0, 2.0)
        time.sleep(0.05)
    now = family(search.pid)
    for pid in now:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    search.communicate()
    return seen | now


@pytest.mark.timeout(1800)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "parallel", "steps", "kills"),
    [
        pytest.param(SMALL, 1, 2, 1, id="once"),
        pytest.param(EXAMPLE, 1, 6, 10, id="often"),
        pytest.param(EXAMPLE, 4, 6, 10, id="often in parallel"),
    ],
)
def test_killed_at_random_moments_and_resumed(
    tmp_path, eventually, is_running, source, parallel, steps, kills
):
    rng = random.Random(1)  # which kills after a step first
    run = Run(tmp_path, parallel, steps, source)
    before: list[Node] = []
    for _ in range(kills):
        pids = kill_at_some_moment(run, run.start(), rng)
        assert eventually(lambda pids=pids: not any(map(is_running, pids)))
        after = run.nodes()
        assert after[: len(before)] == before
        before = after

    search = run.start()
    output, _ = search.communicate(timeout=900)
    assert search.returncode == 0, output
    nodes = run.nodes()
    assert nodes[: len(before)] == before
    assert [node.id for node in nodes] == list(range(1, steps + 1))
    assert all(ROOT_ID <= node.parent_id < node.id for node in nodes)
    assert any(node.evaluation.status == "passed" for node in nodes)
    with read_run(run.path) as directory:
        assert directory.store.confirmations()
        assert [ask.state for ask in directory.store.asks()] == ["done"] * steps
    assert {"best.py", "report.html"} <= {entry.name for entry in run.path.iterdir()}
