"""A service whose tables are in PostgreSQL: moved there, held there, and lost for a while."""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import psycopg
import pytest
from live_runs import make_run
from services import EVERYTHING, running
from sqlalchemy.exc import OperationalError
from test_service_jobs import new
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from adaexplore.core.errors import BadInputError, RunInUseError
from adaexplore.core.settings.config import Config
from adaexplore.sandbox.walls.limits import STRANGERS
from adaexplore.serve import runner as runner_module
from adaexplore.serve import worker
from adaexplore.serve.accounts import Account, accounts, add_token, find_account
from adaexplore.serve.client import problem_of
from adaexplore.serve.jobs import POSTPONED, Jobs
from adaexplore.serve.messages import JobResult
from adaexplore.serve.runner import Runner
from adaexplore.serve.tables import open_folder
from adaexplore.serve.warm import WarmLimits
from adaexplore.serve.worker import JobWorker
from adaexplore.store import open_run


@pytest.fixture
def store(postgresql):
    return postgresql.new_database(f"serve{time.monotonic_ns()}")


def test_what_a_file_holds_is_moved_once_and_found_without_the_option(tmp_path, store):
    file = open_folder(tmp_path)
    token = add_token(file, EVERYTHING)
    jobs = Jobs(file, tmp_path / "jobs")
    ended, waiting = jobs.submit(EVERYTHING, new()), jobs.submit(EVERYTHING, new(), "key")
    jobs.take_next()
    jobs.end(ended.id, "done", files=["best.py"], result=JobResult(headline="2x\0"))
    before = jobs.of_user("alice"), jobs.events(ended.id), jobs.result(ended.id)
    file.dispose()
    for given in (store, ""):
        engine = open_folder(tmp_path, given)
        there = Jobs(engine, tmp_path / "jobs")
        assert (there.of_user("alice"), there.events(ended.id), there.result(ended.id)) == before
        assert find_account(engine, token).user == "alice"
        engine.dispose()
        (tmp_path / "server.db.moved").replace(tmp_path / "server.db")  # a kill came before
    engine = open_folder(tmp_path)
    there = Jobs(engine, tmp_path / "jobs")
    assert there.submit(EVERYTHING, new(), "key") == waiting
    assert there.take_next() is not None
    there.sweep()
    assert len(list((tmp_path / "jobs").iterdir())) == 2
    engine.dispose()


def test_one_service_uses_a_database_and_a_folder_has_one(tmp_path, store, postgresql):
    with running(tmp_path / "one", store=store):
        with pytest.raises(RunInUseError, match="another service uses this database"):
            open_folder(tmp_path / "two", store, serving=True)
        engine = open_folder(tmp_path / "one")  # as `adaexplore serve token` does
        assert len(accounts(engine)) == 1
        engine.dispose()
    with pytest.raises(BadInputError, match=r"the jobs of .* are in postgresql"):
        open_folder(tmp_path / "one", postgresql.url)
    with running(tmp_path / "one", store=store):
        pass


def test_several_make_the_tables_at_once(tmp_path, store):
    def open_there(name: str) -> int:
        engine = open_folder(tmp_path / name, store)
        add_token(engine, EVERYTHING)
        engine.dispose()
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(open_there, "abcdefgh")) == 8


def test_a_database_that_cannot_be_reached_is_refused_in_one_line(tmp_path):
    with pytest.raises(BadInputError, match="the database cannot be reached; start it") as refused:
        open_folder(tmp_path, "postgresql://me@/runs?host=/nowhere")
    assert "\n" not in str(refused.value)


def test_a_job_without_its_files_fails_and_the_next_one_begins(tmp_path, store, eventually):
    engine = open_folder(tmp_path / "old", store)
    job = Jobs(engine, tmp_path / "old" / "jobs").submit(EVERYTHING, new())
    engine.dispose()
    with running(tmp_path / "new", store=store, at_once=1) as service, service.client() as client:
        assert eventually(lambda: client.job(job.id).state == "failed")
        assert client.job(job.id).error == "its files are gone: the service has another folder"
        assert service.ask("GET", "/health").status_code == 200


def test_a_service_outlives_its_database(tmp_path, store, postgresql, eventually):
    with running(tmp_path, store=store, at_once=1) as service, service.client() as client:
        postgresql.kill()
        try:
            assert service.ask("GET", "/v1/jobs").status_code == 503
        finally:
            postgresql.start()
        job = client.submit_evaluation(problem_of("p", "x = 1"), ["x"], {})
        assert eventually(lambda: client.job(job.id).state == "failed")
        assert service.ask("GET", "/health").status_code == 200


def test_a_stream_of_events_ends_in_one_line_and_its_reader_goes_on(
    tmp_path, store, postgresql, capfd
):
    with running(tmp_path, store=store) as service, service.client() as client:
        job = client.submit_search(problem_of("p", "x = 1"), {})
        path, headers = f"/v1/jobs/{job.id}/events", {"Authorization": f"Bearer {service.token}"}
        events = client.events(job.id)
        assert next(events).text == "queued"
        with httpx.stream("GET", service.url + path, headers=headers, timeout=20) as stream:
            lines = stream.iter_lines()
            assert next(lines)
            postgresql.kill()
            try:
                for _ in lines:  # to an end that is none of the connection
                    pass
            finally:
                postgresql.start()
        client.cancel(job.id)
        assert [event.text for event in events] == ["cancelled"]
    told = capfd.readouterr().err
    assert "a stream of events has ended: the database cannot be reached now" in told
    assert "Traceback" not in told


def test_a_socket_of_openenv_outlives_the_database(tmp_path, store, postgresql):
    with running(tmp_path, store=store) as service:
        address = f"ws://x:{service.token}@127.0.0.1:{service.port}/openenv/ws"
        with connect(address) as socket:
            postgresql.kill()
            try:
                socket.send('{"type": "state"}')
                assert "the database cannot be reached now; try again" in socket.recv(timeout=20)
                with pytest.raises(InvalidStatus, match="503"):
                    connect(address).close()
            finally:
                postgresql.start()
            socket.send('{"type": "state"}')
            assert '"state"' in socket.recv(timeout=20)


def test_texts_that_postgresql_has_not_are_kept(tmp_path, store):
    engine = open_folder(tmp_path, store)
    jobs = Jobs(engine, tmp_path / "jobs")
    job = jobs.submit(Account("bob", ()), new())
    jobs.add_event(job.id, "working", "a\0b", "", {"nan": float("inf"), "nul": "\0"})
    [_, event] = jobs.events(job.id)
    assert (event.text, event.data) == ("a\0b", {"nan": float("inf"), "nul": "\0"})
    assert jobs.find("bob", "\0") is None
    engine.dispose()


def unanswered(call):
    """Return a call whose first answer is lost, with the database, after its transaction."""
    lost = []

    def call_once(*words, **options):
        found = call(*words, **options)
        if lost:
            return found
        lost.append(found)
        raise OperationalError("COMMIT", {}, psycopg.OperationalError("the connection is lost"))

    return call_once


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """A runner over a file, which begins no process, and the jobs that it has begun."""
    engine = open_folder(tmp_path)
    jobs, began = Jobs(engine, tmp_path / "jobs"), []
    monkeypatch.setattr(runner_module, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(Runner, "_start", lambda _, job: began.append(job.id))
    runner = Runner(jobs, 1, WarmLimits(0))
    yield runner, jobs, began
    runner.close()
    engine.dispose()


def test_a_job_that_was_taken_without_an_answer_begins(runner, eventually, monkeypatch):
    runner, jobs, began = runner
    job = jobs.submit(EVERYTHING, new())
    monkeypatch.setattr(jobs, "take_next", unanswered(jobs.take_next))
    runner.start()
    assert eventually(lambda: began == [job.id])


def test_what_is_recorded_without_an_answer_is_there_once(runner, monkeypatch):
    runner, jobs, _ = runner
    runner.start()
    job = jobs.submit(EVERYTHING, new())
    monkeypatch.setattr(jobs, "add_event", unanswered(jobs.add_event))
    for _ in range(2):  # the second is an event of its own
        runner._record(job.id, "recorded", "step 1", "", {"step": 1})
    for _ in range(2):
        jobs.end(job.id, "done", files=[], result=JobResult())
    texts = [event.text for event in jobs.events(job.id) if event.text != "running"]
    assert texts == ["queued", "step 1", "step 1", "done"]


def test_a_search_waits_for_its_database(tmp_path, store, postgresql, monkeypatch):
    (tmp_path / "order.json").write_text('{"kind": "search", "config": {}}')
    make_run(tmp_path / "run", config=Config(store=store))
    ours, theirs = os.pipe()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(STRANGERS, "")
    monkeypatch.setattr(sys, "argv", ["worker", str(tmp_path), str(theirs)])
    for name in ("hide", "die_with_parent"):
        monkeypatch.setattr(worker, name, lambda *_: None)
    monkeypatch.setattr(JobWorker, "work", lambda _: open_run(tmp_path / "run"))
    postgresql.kill()
    try:
        with pytest.raises(SystemExit) as end:
            worker.main()
    finally:
        postgresql.start()
    os.close(theirs)
    with os.fdopen(ours) as said:
        assert "the service's database cannot be reached; the job goes on" in said.read()
    assert end.value.code == POSTPONED
