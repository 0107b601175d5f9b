"""A service killed while it searches for a client: the client's search goes on where it was."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from test_kill_resume import SMALL, eager_path

from adaexplore.serve.accounts import Account, add_token
from adaexplore.serve.client import Client, problem_of
from adaexplore.serve.tables import open_folder
from adaexplore.store import read_run

STEPS = 3


@contextmanager
def serving(folder, port: int, store: str):
    words = ["serve", "--folder", str(folder), "--port", str(port), "--store", store]
    process = subprocess.Popen(
        [sys.executable, "-m", "adaexplore", *words],
        env=os.environ | {"PYTHONPATH": eager_path()},
        stdout=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_search_and_a_campaign_go_on_after_kills_of_the_server(tmp_path, postgresql, free_port):
    folder, url = tmp_path / "serve", postgresql.new_database("served")
    engine = open_folder(folder)
    token = add_token(engine, Account("alice", ("search", "campaign")))
    engine.dispose()
    problems = [problem_of(name, SMALL) for name in ("one", "two")]
    options = {"steps": STEPS, "confirm": False, "stop_near": 0.0}
    with Client(f"http://127.0.0.1:{free_port}", token, patience_s=60.0) as client:
        with serving(folder, free_port, url):
            search = client.submit_search(problems[0], options)
            for event in client.events(search.id):
                if event.type == "recorded":
                    break  # and the server is killed
        with serving(folder, free_port, url):
            headline = client.wait(search.id).headline
            client.save_files(client.job(search.id), tmp_path / "saved")
            campaign = client.submit_campaign(problems, options)
            for event in client.events(campaign.id):
                if event.type == "recorded":
                    break
        with serving(folder, free_port, url):
            summary = client.wait(campaign.id).summary
            files = client.job(campaign.id).files
    assert headline
    with read_run(tmp_path / "saved" / "run.json.xz") as run:
        assert [node.id for node in run.store.nodes()] == list(range(1, STEPS + 1))
        assert all(ask.state in ("done", "expired") for ask in run.store.asks())
    assert not summary["unjudged"]
    assert str(tmp_path) not in str(summary)
    assert {"index.html", "one/best.py", "two/report.html"} <= set(files)
    assert not list((folder / "jobs").glob("*/run/**/run.db"))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_prompts_and_answers_outlive_kills_of_the_server(tmp_path, free_port):
    folder = tmp_path / "serve"
    engine = open_folder(folder)
    token = add_token(engine, Account("alice", ("search",)))
    engine.dispose()
    options = {"proposer": "manual", "language": "cpp", "steps": 2, "confirm": False}
    candidate = SMALL.partition("def get_")[0].replace("class Model", "class ModelNew")

    def until_it_waits(after: int) -> int:
        events = client.events(job.id, after)
        return next(e.number for e in events if (e.type, e.text) == ("state", "waiting"))

    with Client(f"http://127.0.0.1:{free_port}", token, patience_s=60.0) as client:
        with serving(folder, free_port, ""):
            job = client.submit_search(problem_of("small", SMALL), options)
            number = until_it_waits(0)
        with serving(folder, free_port, ""):
            [prompt] = client.prompts(job.id)
            client.reply(job.id, prompt, f"```python\n{candidate}\n```")
        with serving(folder, free_port, ""):  # it was killed with the answer
            until_it_waits(number)
            [prompt] = client.prompts(job.id)
            client.reply(job.id, prompt, f"```python\n{candidate}# again\n```")
            client.wait(job.id)
            client.save_files(client.job(job.id), tmp_path / "saved")
    with read_run(tmp_path / "saved" / "run.json.xz") as run:
        assert [node.id for node in run.store.nodes()] == [1, 2]
        assert [ask.state for ask in run.store.asks()] == ["done", "done"]
