"""Searches on a real Ray cluster of this machine, whose processes and nodes are killed."""

import os
import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial

import pytest

import adaexplore
from adaexplore import Candidate, Proposal
from adaexplore.core.errors import BadProblemError, InfrastructureError
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.listener import Evaluating, Notice
from adaexplore.core.settings.config import Config
from adaexplore.run.cluster.connection import Cluster, order_of
from adaexplore.run.cluster.evaluator import ClusterEvaluator
from adaexplore.run.cluster.fleet import Fleet
from adaexplore.run.job import Servers
from adaexplore.store import read_run

REFERENCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2

def get_inputs():
    return [torch.randn(64, 128)]
"""
RIGHT = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(8):
            out = torch.relu(x) * 2
        return out
"""
PROBLEM = Problem("example", REFERENCE, "cpp", "cpu")


def right(number):
    return Candidate(RIGHT.replace("range(8)", f"range({number})"), "cpp")


@contextmanager
def judging(cluster, problem=PROBLEM, strangers=False, **settings):
    """An evaluator of one problem on one device of a fleet of its own."""
    config = Config(ray=cluster.address, device="cpu", timeout_s=60.0, memory_gb=2.0, **settings)
    order = replace(order_of(problem, config), brief=True, strangers=strangers)
    with closing(Fleet(Cluster(config, order), config.ray_patience_s)) as fleet:
        fleet.want(1)
        yield fleet, ClusterEvaluator(fleet, order)


@pytest.fixture(scope="module")
def node(ray_cluster):
    """A node with one device."""
    return ray_cluster.add()


@pytest.fixture(scope="module")
def judged(ray_cluster, node):
    """A fleet with the device of the node, and an evaluator there."""
    with judging(ray_cluster) as both:
        yield both


class Fixed:
    """A proposer of a new right source at every step."""

    def __init__(self):
        self.made = 0

    def begin(self, context):
        self.made += 1
        return Proposal(right(self.made), origin="fixed", note="")
        yield

    def close(self):
        pass


REACHING = """
import glob, os, socket, torch
from torch import nn

def reached():
    found = []
    for place in ({folder!r}, "/dev/shm", "/tmp/ray"):
        try:
            found += [f"{{place}}: {{name}}" for name in os.listdir(place)]
        except OSError:
            pass
    try:
        found.append(open({token!r}).read())
    except OSError:
        pass
    for kind, address in [
        (socket.AF_INET, ("127.0.0.1", {port})),
        *((socket.AF_UNIX, path) for path in {sockets!r}),
    ]:
        try:
            with socket.socket(kind) as link:
                link.settimeout(2.0)
                link.connect(address)
            found.append(str(address))
        except OSError:
            pass
    found += [name for name in os.environ if "RAY" in name]
    for pid in glob.glob("/proc/[0-9]*"):
        try:
            if b"RAY_" in open(f"{{pid}}/environ", "rb").read():
                found.append(pid)
        except OSError:
            pass
    for fd in os.listdir("/proc/self/fd"):
        try:
            link = os.readlink(f"/proc/self/fd/{{fd}}")
        except OSError:
            continue
        if {folder!r} in link or "plasma" in link:
            found.append(link)
    return found

class ModelNew(nn.Module):
    def forward(self, x):
        if found := reached():
            raise RuntimeError("reached " + "; ".join(found)[:500])
        return torch.relu(x) * 2
"""


@pytest.mark.slow
def test_a_candidate_reaches_nothing_of_ray(ray_cluster, judged):
    sockets = [str(path) for path in ray_cluster.folder.glob("session_2*/sockets/*")]
    assert len(sockets) >= 2
    source = REACHING.format(
        folder=str(ray_cluster.folder),
        token=ray_cluster.environment["RAY_AUTH_TOKEN_PATH"],
        port=ray_cluster.port,
        sockets=sockets,
    )
    reached = {}
    exec(source.replace("nn.Module", "object"), reached)
    assert len(reached["reached"]()) > len(sockets)  # what is not confined reaches all of it
    verdict = judged[1].evaluate(Candidate(source, "cpp"))
    assert (verdict.status, verdict.detail) == ("passed", "")


@pytest.mark.slow
def test_a_search_goes_on_when_a_device_and_a_node_are_killed(ray_cluster, tmp_path):
    node, other, killers, lines = ray_cluster.add(), ray_cluster.add(), [], []
    with judging(ray_cluster) as (fleet, evaluator):
        fleet.want(2)
        events = adaexplore.explore(
            PROBLEM,
            evaluator=evaluator,
            proposer=Fixed(),
            steps=4,
            parallel=2,
            recheck=False,
            confirm=False,
            run=tmp_path / "run",
        )
        for event in events:
            if isinstance(event, Evaluating) and event.step in (1, 3):
                work = partial(kill_device, node) if event.step == 1 else other.crash
                killers.append(threading.Timer(0.3, work))  # the evaluation is under way
                killers[-1].start()
            if isinstance(event, Notice):
                lines.append(event.text)
        for each in killers:
            each.join()
    node.stop()
    other.stop()
    with read_run(tmp_path / "run") as directory:
        found = directory.store.nodes()
    assert [node.evaluation.status for node in found] == ["passed"] * 4
    assert len({node.candidate.digest for node in found}) == 4
    lost = [line for line in lines if "its work begins again on another device" in line]
    assert len(lost) >= 2


def kill_device(node):
    for pid in node.devices():
        os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_problems_of_strangers_are_confined_on_the_node(ray_cluster):
    node = ray_cluster.add()  # other tests keep the device of theirs
    token = ray_cluster.environment["RAY_AUTH_TOKEN_PATH"]
    reading = PROBLEM.source.replace("return [", f"open({token!r}).read(); return [")
    problem = replace(PROBLEM, source=reading)
    with judging(ray_cluster, problem) as (_, evaluator):
        assert evaluator.prepare().outputs  # it is the user's own
    with (
        judging(ray_cluster, problem, strangers=True) as (_, evaluator),
        pytest.raises(BadProblemError, match="PermissionError"),
    ):
        evaluator.prepare()
    node.stop()


@pytest.mark.slow
def test_the_problems_of_a_campaign_share_its_devices(ray_cluster, eventually):
    node = ray_cluster.add(cpus=3)
    config = Config(ray=ray_cluster.address, device="cpu")
    other = replace(PROBLEM, name="other")
    with (
        closing(Servers(2)) as servers,
        servers.session(PROBLEM, config),
        servers.session(other, config),
    ):
        assert eventually(lambda: len(node.devices()) == 2)
    assert eventually(lambda: not node.devices())
    node.stop()


@pytest.mark.slow
def test_a_device_that_is_slower_than_its_kind_times_nothing(judged, eventually):
    """The last on these devices: the cluster does not forget the times."""
    fleet, evaluator = judged
    found = evaluator.environment()
    lines = []
    evaluator.listen(lines.append)
    for name in ("fast-1", "fast-2"):
        fleet._cluster.longest_us(f"{found.cpu}, {found.threads} threads", name, 1.0)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(evaluator.evaluate, right(20))
        assert eventually(lambda: lines)
        fleet.close()
        assert isinstance(waiting.exception(), InfrastructureError)
    [line] = lines
    assert re.match("the cpu of .* is too slow and times nothing until that ends", line)


def test_without_a_node_it_is_one_clear_line(ray_cluster, node):
    node.stop()
    with (
        judging(ray_cluster, ray_patience_s=1.0) as (_, evaluator),
        pytest.raises(InfrastructureError) as caught,
    ):
        evaluator.prepare()
    assert re.fullmatch(
        rf"no device of the Ray cluster at {ray_cluster.address} came within 1 s \(.*\); look at "
        r"`ray status`, or wait longer with --set ray_patience_s",
        str(caught.value),
    )
