"""The processes of compose.yaml, started by hand: database, head, worker and service."""

import os
import subprocess
import sys
import time

import httpx
import pytest
from services import PROBLEM, RIGHT

from adaexplore.serve.client import Client, problem_of

MAIN = (sys.executable, "-c", "from adaexplore.cli import main; main()")


@pytest.fixture
def url(ray_cluster, postgresql, tmp_path, free_port):
    """The service, whose jobs are judged by a node of the cluster."""
    ray_cluster.add()
    words = ["--folder", tmp_path / "serve", "--ray", ray_cluster.address, "--port", free_port]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*MAIN, "serve", *map(str, words), "--store", postgresql.url],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=log,
            stderr=log,
        )
    url = f"http://127.0.0.1:{free_port}"
    deadline = time.monotonic() + 60.0
    while True:
        try:
            httpx.get(f"{url}/health")
            break
        except httpx.TransportError:
            assert process.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)
    yield url
    process.terminate()
    process.wait(30.0)


@pytest.mark.slow
def test_the_parts_work_together(url, tmp_path):
    words = ["serve", "token", "add", "alice", "--folder", str(tmp_path / "serve")]
    token = subprocess.run([*MAIN, *words], capture_output=True, text=True, check=True).stdout
    with Client(url, token.strip()) as client:
        problem = problem_of("relu", PROBLEM)
        [verdict] = client.evaluate(problem, [RIGHT])
        assert verdict.status == "passed"
        job = client.submit_search(problem, {"steps": 1, "confirm": False})
        done = client.wait(job.id)
    assert done.headline
