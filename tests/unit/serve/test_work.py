"""Jobs that run: code by strangers in confined processes, lost workers, and cancellation."""

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from services import PROBLEM, RIGHT, running

from adaexplore.core.verdict.evaluation_json import evaluation_from_json
from adaexplore.sandbox.walls.limits import STRANGERS
from adaexplore.serve import runner, worker
from adaexplore.serve.client import problem_of
from adaexplore.serve.jobs import POSTPONED
from adaexplore.serve.warm import WarmLimits

EAGER = Path(__file__).parents[2] / "eager"
ATTACKS = """
import socket
import urllib.request
from pathlib import Path

def worked(call):
    try:
        call()
    except OSError:
        return False
    return True

def get_inputs():
    for name, attack in {
        "http": lambda: urllib.request.urlopen("http://127.0.0.1:PORT/meta-data", timeout=3),
        "connection": lambda: socket.create_connection(("127.0.0.1", PORT), timeout=3),
        "database": lambda: Path("FOLDER/server.db").read_bytes(),
        "jobs of others": lambda: list(Path("FOLDER/jobs").iterdir()),
        "file": lambda: Path("FOLDER/left").write_text("x"),
        "keys": lambda: Path("/proc/SERVER/environ").read_bytes(),
    }.items():
        if worked(attack):
            raise ValueError(f"{name} worked")
    return [torch.randn(64, 64)]
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{EAGER}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
        patch.setenv("PRIVATE_KEY", "sk-of-the-server")
        with running(tmp_path_factory.mktemp("serve"), at_once=2, warm=WarmLimits(2)) as service:
            yield service


@pytest.fixture
def listener():
    """A port on loopback, and the connections that it got."""
    got = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        over = threading.Event()

        def accept() -> None:
            while not over.is_set():
                try:
                    got.append(server.accept())
                except TimeoutError:
                    continue

        thread = threading.Thread(target=accept)
        thread.start()
        yield server.getsockname()[1], got
        over.set()
        thread.join()


def worker_of(job_id: str) -> int:
    """Wait for the worker of a job that runs."""
    while True:
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = entry.read_bytes().split(b"\0")
            except OSError:
                continue
            if b"adaexplore.serve.worker" in words and words[-3].endswith(job_id.encode()):
                return int(entry.parent.name)
        time.sleep(0.01)


@pytest.mark.slow
def test_a_job_waits_where_the_machine_has_no_process_for_it(tmp_path, monkeypatch, eventually):
    start, refused = subprocess.Popen, []

    def fail_once(*words, **options):
        if refused:
            return start(*words, **options)
        refused.append(words)
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(runner, "_PAUSE_S", 0.5)
    monkeypatch.setattr(runner.subprocess, "Popen", fail_once)
    with running(tmp_path, at_once=1) as service, service.client() as client:
        job = client.submit_evaluation(problem_of("p", "x = 1"), ["x"], {})
        assert eventually(lambda: client.job(job.id).state == "failed")
        assert "defines no Model" in client.job(job.id).error  # it ran
        told = [event.text for event in client.events(job.id) if event.type == "notice"]
        assert told[0] == "cannot begin now: Resource temporarily unavailable"
        assert service.ask("GET", "/health").status_code == 200


CANDIDATES = [RIGHT, RIGHT.replace("+ 1", "+ 2"), "def"]
STATUSES = ["passed", "wrong_output", "compile_error"]


@pytest.fixture
def attacking(service, listener):
    """A problem whose reference tries to reach the network and files of the service."""
    port, _ = listener
    attacks = ATTACKS.replace("PORT", str(port)).replace("FOLDER", str(service.folder))
    attacks = attacks.replace("SERVER", str(os.getpid()))
    return problem_of("p", PROBLEM.partition("def get_inputs")[0] + attacks)


def statuses_of(client, job):
    assert client.job(job.id).error == ""
    return [evaluation_from_json(one).status for one in client.result(job.id).verdicts]


def test_a_batch_by_a_stranger(service, listener, attacking):
    """Its worker waits, with its reference, for the next batch of that user."""
    with service.client() as client:
        for candidates, statuses in ((CANDIDATES, STATUSES), (CANDIDATES[1:2], STATUSES[1:2])):
            job = client.submit_evaluation(attacking, candidates, {"language": "cpp"})
            events = {event.type: event for event in client.events(job.id)}
            assert ("working" in events) == (candidates is CANDIDATES)
            assert events["prepared"].data["device"] == "cpu"
            assert statuses_of(client, job) == statuses
    assert listener[1] == []


@pytest.mark.slow
def test_a_batch_by_a_stranger_whose_worker_is_lost(service, listener, attacking):
    """Another worker judges it, and waits for the next batch of that user alone."""
    killed = 0
    with service.client() as client:
        job = client.submit_evaluation(attacking, CANDIDATES, {"language": "cpp"})
        for event in client.events(job.id):
            if event.type == "state" and event.text == "running" and not killed:
                killed = worker_of(job.id)
                os.kill(killed, signal.SIGKILL)
        assert statuses_of(client, job) == STATUSES
    assert killed
    assert listener[1] == []
    with service.client(service.new_token("bob")) as client:
        job = client.submit_evaluation(attacking, CANDIDATES[2:], {"language": "cpp"})
        for event in client.events(job.id):
            if event.type == "working":
                client.cancel(job.id)
        assert client.job(job.id).state == "cancelled"


def test_a_running_job_is_cancelled_with_all_its_processes(service, eventually, is_running):
    with service.client() as client:
        job = client.submit_search(problem_of("p", PROBLEM), {"steps": 50})
        for event in client.events(job.id):
            if event.type == "working":
                worker = worker_of(job.id)
                began = time.monotonic()
                client.cancel(job.id)
        assert client.job(job.id).state == "cancelled"
    assert time.monotonic() - began < 20
    assert eventually(lambda: not is_running(worker))


def test_a_job_waits_for_space_on_the_disk(tmp_path, monkeypatch):
    def fill(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    ours, theirs = os.pipe()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(STRANGERS, "")
    monkeypatch.setattr(sys, "argv", ["worker", str(tmp_path), str(theirs)])
    monkeypatch.setattr(worker, "JobWorker", fill)
    for name in ("hide", "die_with_parent"):
        monkeypatch.setattr(worker, name, lambda *_: None)
    with pytest.raises(SystemExit) as end:
        worker.main()
    os.close(theirs)
    with os.fdopen(ours) as said:
        assert "the service's disk is full; the job goes on once there is space" in said.read()
    assert end.value.code == POSTPONED
