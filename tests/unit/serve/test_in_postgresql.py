"""A service whose tables are in PostgreSQL: moved there, held there, and lost for a while."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from services import EVERYTHING, running
from test_service_jobs import new

from adaexplore.core.errors import BadInputError, RunInUseError
from adaexplore.serve.accounts import Account, accounts, add_token, find_account
from adaexplore.serve.client import problem_of
from adaexplore.serve.jobs import Jobs
from adaexplore.serve.messages import JobResult
from adaexplore.serve.tables import open_folder


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


def test_texts_that_postgresql_has_not_are_kept(tmp_path, store):
    engine = open_folder(tmp_path, store)
    jobs = Jobs(engine, tmp_path / "jobs")
    job = jobs.submit(Account("bob", ()), new())
    jobs.add_event(job.id, "working", "a\0b", "", {"nan": float("inf"), "nul": "\0"})
    [_, event] = jobs.events(job.id)
    assert (event.text, event.data) == ("a\0b", {"nan": float("inf"), "nul": "\0"})
    assert jobs.find("bob", "\0") is None
    engine.dispose()
