"""A campaign killed at random moments and resumed as a whole loses no recorded step."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from test_kill_resume import Run, kill_at_some_moment

from adaexplore.core.errors import BadInputError
from adaexplore.store import read_run
from adaexplore.store.campaign import is_campaign

PROBLEMS = Path(__file__).parents[2] / "examples" / "problems"
NAMES = ("softmax", "topk_router")
STEPS = 4
KILLS = 6


class Campaign(Run):
    """A campaign's folder and the command line that works on it."""

    def nodes(self):
        """The recorded steps of all its problems."""
        return [node for name in NAMES for node in self.nodes_of(name)]

    def nodes_of(self, name):
        try:
            run = read_run(self.path / name)
        except BadInputError:
            return []
        with run:
            return run.store.nodes()

    def start(self):
        words = [str(self.path)]
        if not is_campaign(self.path):
            words = [*(str(PROBLEMS / f"{name}.py") for name in NAMES), "--run", str(self.path)]
            words += ["--device", "cpu", "--steps", str(STEPS), "--parallel", "2"]
            words += ["--set", "stop_near=0"]
        return subprocess.Popen(
            [sys.executable, "-m", "adaexplore", "campaign", *words],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_killed_at_random_moments_and_resumed_as_a_whole(tmp_path, eventually, is_running):
    rng = random.Random(1)
    campaign = Campaign(tmp_path, 1, STEPS)
    before = {name: [] for name in NAMES}
    for _ in range(KILLS):
        pids = kill_at_some_moment(campaign, campaign.start(), rng)
        assert eventually(lambda pids=pids: not any(map(is_running, pids)))
        for name in NAMES:
            after = campaign.nodes_of(name)
            assert after[: len(before[name])] == before[name]
            before[name] = after

    ending = campaign.start()
    output, _ = ending.communicate(timeout=900)
    assert ending.returncode == 0, output
    assert "2 of 2 correct" in output
    for name in NAMES:
        nodes = campaign.nodes_of(name)
        assert nodes[: len(before[name])] == before[name]
        assert [node.id for node in nodes] == list(range(1, STEPS + 1))
        with read_run(campaign.path / name) as run:
            assert run.store.confirmations()
            assert [ask.state for ask in run.store.asks()] == ["done"] * STEPS
    assert not any(entry.name.startswith(".") for entry in os.scandir(campaign.path))
    assert (campaign.path / "index.html").exists()
