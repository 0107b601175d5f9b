"""Several processes on one campaign, with its records in PostgreSQL."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_kill_resume import SMALL, eager_path, family

from adaexplore.core.errors import BadInputError
from adaexplore.store import is_run, read_run

NAMES = ("one", "two", "three")
STEPS = 2


def start(path: Path, what: list[str], database: str) -> "subprocess.Popen[str]":
    options = [] if path.exists() else ["--run", str(path), "--store", database, "--device", "cpu"]
    options += ["--steps", str(STEPS), "--set", "stop_near=0", "--set", "turn_steps=1"]
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "adaexplore",
            "campaign",
            *what,
            *([] if path.exists() else options),
        ],
        env=os.environ | {"PYTHONPATH": eager_path()},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def nodes_of(path: Path):
    try:
        with read_run(path) as run:
            return run.store.nodes()
    except BadInputError:
        return []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_work_of_a_killed_process_is_finished_by_the_others(tmp_path, postgresql):
    for number, name in enumerate(NAMES):
        (tmp_path / f"{name}.py").write_text(SMALL.replace("+ 1", f"+ {number}.5"))
    path, url = tmp_path / "all", postgresql.new_database("shared")
    first = start(path, [str(tmp_path / f"{name}.py") for name in NAMES], url)
    while not path.exists():
        time.sleep(0.1)
    second = start(path, [str(path)], url)
    while not any(nodes_of(path / name) for name in NAMES):
        time.sleep(0.2)
    both_at_work = sum(is_run(path / name) for name in NAMES)
    for pid in family(first.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    first.communicate()
    before = {name: nodes_of(path / name) for name in NAMES}
    output, _ = second.communicate(timeout=600)
    assert second.returncode == 0, output
    last = start(path, [str(path)], url)  # what only the first had, if its lock outlived the second
    output, _ = last.communicate(timeout=600)
    assert last.returncode == 0, output
    assert both_at_work
    for name in NAMES:
        nodes = nodes_of(path / name)
        assert nodes[: len(before[name])] == before[name]
        assert [node.id for node in nodes] == list(range(1, STEPS + 1))
    assert not list(path.glob("*/run.db"))
