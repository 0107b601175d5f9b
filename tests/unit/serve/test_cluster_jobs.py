"""Jobs whose Ray cluster is not there, or ends under them."""

from contextlib import closing
from importlib.util import find_spec

import pytest
from services import PROBLEM, RIGHT, running

from adaexplore.serve import runner
from adaexplore.serve.client import problem_of
from ray_cluster import RayCluster

OPTIONS = {"language": "cpp"}
WAITS = "the service's Ray cluster cannot be reached; the job goes on once it can be"

pytestmark = pytest.mark.skipif(
    find_spec("ray") is None, reason="Ray is not installed (pip install 'adaexplore[ray]')"
)


@pytest.fixture(autouse=True)
def short_pause(monkeypatch):
    monkeypatch.setattr(runner, "_PAUSE_S", 2.0)


def test_without_a_cluster_a_job_waits_and_can_be_cancelled(tmp_path, free_port, eventually):
    with (
        running(tmp_path, at_once=1, ray=f"127.0.0.1:{free_port}") as service,
        service.client() as client,
    ):
        job = client.submit_evaluation(problem_of("relu", PROBLEM), [RIGHT], OPTIONS)
        assert next(e.text for e in client.events(job.id) if e.type == "notice") == WAITS
        assert eventually(lambda: client.job(job.id).state == "queued")
        assert client.job(job.id).error == ""
        client.cancel(job.id)
        assert eventually(lambda: client.job(job.id).state == "cancelled")


@pytest.mark.slow
def test_a_search_whose_head_is_killed_goes_on_when_a_head_is_back(tmp_path, monkeypatch):
    with closing(RayCluster()) as cluster:
        cluster.add()
        for name, value in cluster.environment.items():
            monkeypatch.setenv(name, value)
        with (
            running(tmp_path, at_once=1, ray=cluster.address) as service,
            service.client() as client,
        ):
            options = OPTIONS | {"steps": 1000, "confirm": False}
            job = client.submit_search(problem_of("relu", PROBLEM), options)
            seen = iter(client.events(job.id))
            next(e for e in seen if e.type == "recorded")
            cluster.kill_head()
            next(e for e in seen if (e.type, e.text) == ("notice", WAITS))
            cluster.start_head()
            cluster.add()
            next(e for e in seen if e.type == "recorded")
            client.cancel(job.id)
            steps = [e.data["step"] for e in client.events(job.id) if e.type == "recorded"]
            assert steps == list(range(1, len(steps) + 1))
