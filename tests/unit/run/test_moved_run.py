"""A run that goes on where its GPU is not."""

from dataclasses import replace

import pytest
from tests.contract.test_store import RUN

from adaexplore.core.protocols.listener import Notice
from adaexplore.core.settings.config import Config
from adaexplore.run import explore
from adaexplore.run.campaign.file import CampaignEntry
from adaexplore.run.campaign.job import CampaignJob, ProgressRow, SharedLimits
from adaexplore.run.job import Servers
from adaexplore.run.session import present
from adaexplore.store import create_run, read_run

GPU = "adaexplore.run.session._gpu_count"


@pytest.fixture
def run(tmp_path):
    """A run that the second GPU of another machine judged; its prompts are answered by hand."""
    problem = replace(RUN.problem, device="cuda:1")
    with create_run(tmp_path / "run", replace(RUN, problem=problem, proposers=("manual",))):
        return tmp_path / "run"


@pytest.mark.parametrize(("count", "device"), [(0, "cuda:1"), (1, "cuda:0"), (2, "cuda:1")])
def test_a_run_goes_on_with_the_first_gpu_where_its_own_is_missing(run, monkeypatch, count, device):
    monkeypatch.setattr(GPU, lambda: count)
    lines = [event.text for event in explore.resume(run, Config()) if isinstance(event, Notice)]
    with read_run(run) as directory:
        assert directory.store.run().problem.device == device
    told = "cuda:1 is not on this machine: cuda:0 judges from here on" in lines
    assert told == (device == "cuda:0")


@pytest.mark.parametrize(
    ("device", "ray", "judged_on"),
    [
        ("cuda:3", "", "cuda:0"),
        ("cuda:1", "", "cuda:1"),
        ("cpu", "", "cpu"),
        ("cuda:3", "127.0.0.1:6379", "cuda:3"),
        ("cuda", "", "cuda"),
        ("cuda:x", "", "cuda:x"),
    ],
)
def test_another_gpu_stands_in_for_a_missing_one_alone(monkeypatch, device, ray, judged_on):
    monkeypatch.setattr(GPU, lambda: 2)
    assert present(device, ray) == judged_on


@pytest.mark.parametrize(
    ("name", "device", "devices"),
    [
        ("run", None, ["cuda:0"]),
        ("new", "cuda:0,cuda:1", ["cuda:0"]),
        ("new", "cuda:0", ["cuda:0"]),
    ],
)
def test_a_campaign_uses_the_gpus_that_are_there(run, monkeypatch, name, device, devices):
    monkeypatch.setattr(GPU, lambda: 1)
    entry = CampaignEntry(name, "softmax.py", Config(device=device))
    job = CampaignJob(entry, run.parent, SharedLimits(Servers()), ProgressRow(), 1)
    assert job.devices == devices
