"""Many clients, and a server that is killed: every job that was accepted is there once."""

import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest
from services import EVERYTHING, PROBLEM, RIGHT

from adaexplore.serve.accounts import add_token
from adaexplore.serve.client import Client, problem_of
from adaexplore.serve.tables import open_folder

CLIENTS, EACH = 12, 2
STARTS = """
import sys
from pathlib import Path
from adaexplore.serve.app import ServiceSettings
from adaexplore.serve.http.listening import Listening
from adaexplore.serve.http.server import run_service
settings = ServiceSettings(Path(sys.argv[1]), at_once=0, store=sys.argv[3])
run_service(settings, Listening(port=int(sys.argv[2])))
"""


def start(folder, port: int, store: str) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", STARTS, str(folder), str(port), store])


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_no_accepted_job_is_lost_or_doubled(tmp_path, free_port, kills, new_store):
    store = new_store()
    engine = open_folder(tmp_path, store)
    account = replace(EVERYTHING, most_jobs=10**6, most_candidates=10**6, most_requests=10**6)
    token = add_token(engine, account)
    engine.dispose()
    accepted: list[str] = []
    server = start(tmp_path, free_port, store)

    def submit() -> None:
        with Client(f"http://127.0.0.1:{free_port}", token, patience_s=60.0) as client:
            for _ in range(EACH * kills):
                job = client.submit_evaluation(problem_of("p", PROBLEM), [RIGHT], {})
                accepted.append(job.id)

    threads = [threading.Thread(target=submit) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    wanted = CLIENTS * EACH * kills
    for kill in range(1, kills + 1):
        while len(accepted) < wanted * kill / (kills + 1):
            time.sleep(0.01)
        server.send_signal(signal.SIGKILL)
        server.wait()
        server = start(tmp_path, free_port, store)
    for thread in threads:
        thread.join()
    with Client(f"http://127.0.0.1:{free_port}", token) as client:
        queued = client.health().queued
    server.send_signal(signal.SIGKILL)
    server.wait()
    assert len(accepted) == len(set(accepted)) == wanted
    assert queued == wanted
    assert {folder.name for folder in (tmp_path / "jobs").iterdir()} == set(accepted)
