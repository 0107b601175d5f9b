"""Jobs in the database: quotas, order, ends, and what a lost server leaves."""

import errno
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from services import EVERYTHING
from sqlalchemy import event

from adaexplore.core.errors import BadInputError, InfrastructureError
from adaexplore.serve.jobs import Jobs, NewJob
from adaexplore.serve.messages import JobResult
from adaexplore.serve.quotas import QuotaError
from adaexplore.serve.tables import open_folder


@pytest.fixture
def engine(tmp_path, new_store):
    engine = open_folder(tmp_path, new_store())
    yield engine
    engine.dispose()


@pytest.fixture
def jobs(engine, tmp_path):
    return Jobs(engine, tmp_path / "jobs")


def new(candidates: int = 1) -> NewJob:
    return NewJob("evaluation", "evaluate", False, "p", candidates, {"kind": "evaluation"})


def test_a_user_has_at_most_so_many_jobs_until_one_ends(jobs):
    account = replace(EVERYTHING, most_jobs=2)
    first, _ = jobs.submit(account, new()), jobs.submit(account, new())
    with pytest.raises(QuotaError, match="2 jobs are queued or running, your most"):
        jobs.submit(account, new())
    jobs.submit(replace(account, user="bob"), new())
    jobs.take_next()
    with pytest.raises(QuotaError):
        jobs.submit(account, new())
    jobs.end(first.id, "done", files=[], result=JobResult())
    jobs.submit(account, new())


def test_a_user_judges_at_most_so_many_candidates_a_day(jobs, monkeypatch):
    account = replace(EVERYTHING, most_jobs=99, most_candidates=10)
    jobs.submit(account, new(4))
    jobs.submit(account, new(6))
    with pytest.raises(QuotaError, match="10 of your 10 candidates of a day are taken, and this"):
        jobs.submit(account, new(1))
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 86_401)
    jobs.submit(account, new(10))


def test_a_request_that_is_sent_again_makes_no_second_job(jobs):
    account = replace(EVERYTHING, most_jobs=1)
    first = jobs.submit(account, new(), "key")
    assert jobs.submit(account, new(), "key") == first
    assert len(jobs.of_user(account.user)) == 1
    assert len(list(jobs.folder.iterdir())) == 1


def test_an_order_that_cannot_be_kept_is_no_job(jobs, monkeypatch):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(Path, "write_text", fail)
        with pytest.raises(InfrastructureError, match="cannot keep the order: No space left on"):
            jobs.submit(EVERYTHING, new(), "key")
    assert jobs.of_user(EVERYTHING.user) == []
    assert list(jobs.folder.iterdir()) == []
    jobs.submit(EVERYTHING, new(), "key")


def test_users_take_turns(jobs):
    for user in ("alice", "alice", "alice", "bob"):
        jobs.submit(replace(EVERYTHING, user=user), new())
    order = [jobs.take_next() for _ in range(4)]
    alices = {job.id for job in jobs.of_user("alice")}
    assert ["alice" if job.id in alices else "bob" for job in order] == [
        *("alice", "bob", "alice", "alice")
    ]
    assert jobs.take_next() is None


def test_what_ran_when_the_server_was_lost_is_queued_again_but_not_for_ever(jobs):
    job = jobs.submit(EVERYTHING, new())
    for _ in range(3):
        assert jobs.take_next().id == job.id
        jobs.requeue()
    assert jobs.take_next() is None
    failed = jobs.find("alice", job.id)
    assert (failed.state, failed.error) == ("failed", "its worker was lost 3 times")


def test_verdicts_that_were_there_before_are_no_progress(jobs):
    """Of a batch that begins again, and loses its worker at the same candidate."""
    job = jobs.submit(EVERYTHING, new())
    for _ in range(3):
        assert jobs.take_next().id == job.id
        for index in range(2):
            jobs.add_event(job.id, "verdict", "passed", "", {"index": index})
        jobs.requeue(job.id)
    if attempt := jobs.take_next():  # the first time, these verdicts were progress
        jobs.requeue(attempt.id)
    assert jobs.take_next() is None
    assert jobs.find("alice", job.id).state == "failed"


def test_the_verdicts_of_a_batch_are_read_once_in_each_of_its_runs(engine, jobs):
    read = []

    @event.listens_for(engine, "before_cursor_execute")
    def note(_connection, _cursor, statement, *_):
        read.append(statement.startswith("SELECT serve_events.data"))

    job = jobs.submit(EVERYTHING, new())
    for run in (1, 2):
        jobs.take_next()
        for index in range(5):
            jobs.add_event(job.id, "verdict", "passed", "", {"index": index})
        assert sum(read) == run
        jobs.requeue(job.id)


@pytest.mark.parametrize("how", ["progress", "order"])
def test_a_job_outlives_any_number_of_restarts_with_progress_or_in_order(jobs, how):
    job = jobs.submit(EVERYTHING, new())
    for _ in range(5):
        assert jobs.take_next().id == job.id
        if how == "progress":
            jobs.add_event(job.id, "recorded", "step", "", {})
        jobs.requeue(job.id, lost=how == "progress")
    assert jobs.find("alice", job.id).state == "queued"


def test_a_queued_job_is_cancelled_at_once_and_a_running_one_by_its_runner(jobs):
    waiting, running = jobs.submit(EVERYTHING, new()), jobs.submit(EVERYTHING, new())
    jobs.take_next()
    running, waiting = waiting, running  # the first submitted runs
    assert jobs.cancel(waiting.id) == "cancelled"
    assert jobs.cancel(running.id) == "running"
    assert jobs.cancelling() == [running.id]
    assert jobs.cancel(waiting.id) == "cancelled"
    jobs.requeue()  # the server was lost meanwhile: it does not begin again
    assert jobs.find("alice", running.id).state == "cancelled"


def test_events_are_numbered_and_end_with_the_state(jobs):
    job = jobs.submit(EVERYTHING, new())
    jobs.take_next()
    jobs.add_event(job.id, "working", "so", "", {"a": 1})
    jobs.end(job.id, "done", files=["best.py"], result=JobResult(headline="2x"))
    found = jobs.events(job.id)
    assert [(event.number, event.type, event.text) for event in found] == [
        (1, "state", "queued"),
        (2, "state", "running"),
        (3, "working", "so"),
        (4, "state", "done"),
    ]
    assert jobs.events(job.id, after=3) == found[3:]
    assert jobs.result(job.id).headline == "2x"


def test_a_search_that_was_stopped_goes_on_and_readers_of_its_events_do_not_end_before(jobs):
    job = jobs.submit(EVERYTHING, replace(new(), kind="search"))
    with pytest.raises(BadInputError, match="the job is queued; one that was stopped"):
        jobs.go_on(EVERYTHING, job.id)
    jobs.take_next()
    jobs.cancel(job.id)
    jobs.end(job.id, "cancelled", files=[], result=JobResult())
    with pytest.raises(QuotaError, match="0 jobs are queued or running"):
        jobs.go_on(replace(EVERYTHING, most_jobs=0), job.id)
    assert jobs.go_on(replace(EVERYTHING, most_candidates=1), job.id).state == "queued"
    texts = [event.text for event in jobs.events(job.id)]
    assert texts == ["queued", "running", "stopped", "queued"]
    assert jobs.take_next().id == job.id
    assert jobs.cancelling() == []


def test_an_evaluation_does_not_go_on(jobs):
    """It would judge all its candidates again, which count once."""
    job = jobs.submit(EVERYTHING, new())
    jobs.cancel(job.id)
    with pytest.raises(BadInputError, match="submit it again"):
        jobs.go_on(EVERYTHING, job.id)


def test_old_jobs_are_forgotten_with_their_folders(jobs, monkeypatch):
    old, recent = jobs.submit(EVERYTHING, new()), jobs.submit(EVERYTHING, new())
    jobs.cancel(old.id)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 100)
    jobs.cancel(recent.id)
    assert jobs.forget(50) == 1
    assert [job.id for job in jobs.of_user("alice")] == [recent.id]
    assert [folder.name for folder in jobs.folder.iterdir()] == [recent.id]
