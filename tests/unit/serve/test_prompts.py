"""Searches answered by hand at a service: their prompts wait, for their user alone."""

import json
import re
import sys
from dataclasses import replace

import httpx
import pytest
from live_runs import MANUAL_CONFIG, make_run
from services import EVERYTHING, PROBLEM, RIGHT, running

from adaexplore.cli import main
from adaexplore.core.errors import BadInputError
from adaexplore.serve import worker
from adaexplore.serve.client import Client, ServiceError, problem_of
from adaexplore.serve.jobs import Jobs, NewJob
from adaexplore.serve.messages import JobPrompt, JobResult, PromptReply
from adaexplore.serve.page.shelf import entry_of
from adaexplore.serve.prompts import WaitingPrompts
from adaexplore.serve.quotas import QuotaError
from adaexplore.serve.tables import open_folder
from adaexplore.serve.worker import JobWorker
from adaexplore.store import read_run

FIRST = JobPrompt(ask=1, turn=0, purpose="large step, kernel", text="Write a kernel.")
SECOND = JobPrompt(ask=2, turn=0, purpose="small step, kernel", text="Change one thing.")
ANSWER = PromptReply(ask=1, turn=0, reply="mine\0\n")
NOTHING = {"files": [], "result": JobResult()}
BY_HAND = {"proposer": "manual", "steps": 2}


def run_now(jobs: Jobs, job_id: str) -> None:
    """Mark a job as running, and those before it."""
    while jobs.take_next().id != job_id:
        continue


def waiting_job(jobs: Jobs, account=EVERYTHING, opened=(FIRST,)) -> str:
    """A search that has run until its prompts wait."""
    job = jobs.submit(account, NewJob("search", "search", False, "relu", 2, {"config": {}}))
    run_now(jobs, job.id)
    WaitingPrompts(jobs.engine).wait(job.id, opened, [], **NOTHING)
    return job.id


@pytest.fixture
def jobs(tmp_path, new_store):
    engine = open_folder(tmp_path, new_store())
    yield Jobs(engine, tmp_path / "jobs")
    engine.dispose()


@pytest.fixture
def prompts(jobs):
    return WaitingPrompts(jobs.engine)


def test_a_job_that_waits_takes_no_worker_and_no_quota_until_an_answer_queues_it(jobs, prompts):
    account = replace(EVERYTHING, most_jobs=1)
    job = waiting_job(jobs, account)
    jobs.requeue()  # a server that was killed begins again
    assert (jobs.find("alice", job).state, jobs.take_next()) == ("waiting", None)
    jobs.submit(account, NewJob("search", "search", False, "gelu", 1, {}))
    with pytest.raises(QuotaError):
        jobs.submit(account, NewJob("search", "search", False, "silu", 1, {}))
    prompts.answer(job, ANSWER)
    assert jobs.find("alice", job).state == "queued"
    assert [event.text for event in jobs.events(job)][-2:] == ["waiting", "queued"]
    assert (prompts.waiting(job), prompts.replies(job)) == ([], [ANSWER])


def test_an_answer_is_given_to_the_worker_until_its_records_have_it(jobs, prompts):
    job = waiting_job(jobs)
    prompts.answer(job, ANSWER)
    for _ in range(2):  # the first worker is lost
        assert jobs.take_next().id == job
        assert prompts.replies(job) == [ANSWER]
        jobs.requeue()
    jobs.take_next()
    prompts.wait(job, [SECOND], [ANSWER], **NOTHING)
    assert (prompts.waiting(job), prompts.replies(job)) == ([SECOND], [])
    prompts.answer(job, ANSWER)  # its first response was lost
    assert jobs.find("alice", job).state == "waiting"


def test_an_answer_that_comes_meanwhile_queues_the_job_once_more(jobs, prompts):
    job = waiting_job(jobs, opened=(FIRST, SECOND))
    prompts.answer(job, ANSWER)
    jobs.take_next()
    late = PromptReply(ask=2, turn=0, reply="late")
    prompts.answer(job, late)
    assert jobs.find("alice", job).state == "running"
    prompts.wait(job, [SECOND], [ANSWER], **NOTHING)
    assert (jobs.find("alice", job).state, prompts.replies(job)) == ("queued", [late])


def test_any_number_of_answers_is_no_loss_of_a_worker(jobs, prompts):
    job = waiting_job(jobs)
    for turn in range(5):
        prompts.answer(job, PromptReply(ask=1, turn=turn, reply="x"))
        jobs.take_next()
        after = JobPrompt(ask=1, turn=turn + 1, purpose="", text="")
        prompts.wait(job, [after], prompts.replies(job), **NOTHING)
    jobs.take_next()
    jobs.requeue()
    assert jobs.find("alice", job).state == "waiting"


def test_the_first_answer_counts_and_none_after_the_end(jobs, prompts):
    job = waiting_job(jobs)
    with pytest.raises(BadInputError, match="ask 7, turn 1: no such prompt waits"):
        prompts.answer(job, PromptReply(ask=7, turn=0, reply="x"))
    prompts.answer(job, ANSWER)
    with pytest.raises(BadInputError, match="the first answer counts"):
        prompts.answer(job, PromptReply(ask=1, turn=0, reply="other"))
    jobs.cancel(job)
    with pytest.raises(BadInputError, match="the job is cancelled; continue it first"):
        prompts.answer(job, ANSWER)
    jobs.go_on(EVERYTHING, job)
    jobs.take_next()
    jobs.end(job, "done", **NOTHING)
    with pytest.raises(BadInputError, match=r"the job is done\Z"):
        prompts.answer(job, ANSWER)


def test_a_waiting_job_is_cancelled_with_what_it_has(jobs, prompts):
    job = waiting_job(jobs)
    prompts.answer(job, ANSWER)
    jobs.take_next()
    result = JobResult(headline="2x")
    prompts.wait(job, [SECOND], [ANSWER], files=["best.py"], result=result)
    assert jobs.cancel(job) == "cancelled"
    assert (jobs.find("alice", job).files, jobs.result(job)) == (["best.py"], result)
    assert prompts.waiting(job) == []
    assert jobs.go_on(EVERYTHING, job).state == "queued"
    jobs.take_next()
    jobs.cancel(job)
    prompts.wait(job, [SECOND], [], **NOTHING)  # it came to its prompts before it was stopped
    assert jobs.find("alice", job).state == "cancelled"


def test_prompts_go_with_their_job(jobs, prompts):
    job = waiting_job(jobs)
    prompts.answer(job, ANSWER)
    jobs.cancel(job)
    assert jobs.forget(-1) == 1
    assert prompts.replies(job) == []


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("serve")) as service:
        yield service


@pytest.fixture
def waiting(service):
    """A job of alice whose prompt waits."""
    jobs = Jobs(service.engine, service.folder / "jobs")
    job = waiting_job(jobs)
    make_run(jobs.folder / job / "run", config=MANUAL_CONFIG)
    return job


def test_prompts_are_answered_by_their_user_alone(service, waiting):
    with service.client(service.new_token("mallory")) as mallory:
        for ask in (
            lambda: mallory.prompts(waiting),
            lambda: mallory.reply(waiting, FIRST, "x"),
        ):
            with pytest.raises(ServiceError, match="no such job"):
                ask()
    with (
        service.client(service.new_token(scopes=("evaluate",))) as weak,
        pytest.raises(ServiceError, match="lacks the scope 'search'"),
    ):
        weak.reply(waiting, FIRST, "x")
    with service.client() as client:
        assert client.prompts(waiting) == [FIRST]
        with pytest.raises(BadInputError, match="reply: reply: String should have at least 1"):
            client.reply(waiting, FIRST, "")
        with pytest.raises(ServiceError, match="no such prompt waits"):
            client.reply(waiting, SECOND, "x")
        assert client.reply(waiting, FIRST, "mine").state == "queued"
        assert client.prompts(waiting) == []


def log_in(service, token):
    client = httpx.Client(base_url=service.url, timeout=20, headers={"Origin": service.url})
    csrf = re.search(r'name="csrf" value="(\w+)"', client.get("/login").text)[1]
    client.post("/login", data={"csrf": csrf, "token": token})
    return client


def test_prompts_are_answered_in_the_pages_by_their_user_alone(service, waiting):
    alice = log_in(service, service.token)
    run = service.folder / "jobs" / waiting / "run"
    path = f"/runs/{entry_of(run.resolve(), run.name, 'run').key}"
    page = alice.get(path).text
    assert "Write a kernel." in page
    assert "New prompt" not in page
    assert ">Stop<" in page
    assert str(service.folder) not in page
    csrf = re.search(r'name="csrf" value="(\w+)"', page)[1]
    reply = {"csrf": csrf, "ask": "1", "turn": "0", "reply": "mine\r\n", "then": "evaluate"}
    mallory = log_in(service, service.new_token("mallory"))
    theirs = re.search(r'name="csrf" value="(\w+)"', mallory.get("/").text)[1]
    assert mallory.post(f"{path}/tell", data=reply | {"csrf": theirs}).status_code == 404
    assert alice.post(f"{path}/tell", data=reply | {"reply": ""}).status_code == 409
    assert alice.post(f"{path}/tell", data=reply).status_code == 303
    assert WaitingPrompts(service.engine).replies(waiting)[0].reply == "mine\n"
    assert service.client().job(waiting).state == "queued"
    assert "Write a kernel." not in alice.get(path).text
    assert alice.post(f"{path}/stop", data=reply).status_code == 303
    assert ">Continue<" in alice.get(path).text


def test_a_campaign_is_not_answered_by_hand(service):
    with service.client() as client, pytest.raises(ServiceError, match="submit searches"):
        client.submit_campaign([problem_of("relu", PROBLEM)], BY_HAND)


def test_the_command_ends_where_prompts_wait(service, tmp_path, monkeypatch, capsys):
    submit = Client.submit_search

    def submit_and_run(self, problem, options):
        job = submit(self, problem, options)
        run_now(Jobs(service.engine, service.folder / "jobs"), job.id)
        WaitingPrompts(service.engine).wait(job.id, [FIRST], [], **NOTHING)
        return job

    (tmp_path / "relu.py").write_text(PROBLEM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADAEXPLORE_TOKEN", service.new_token("carol"))
    monkeypatch.setattr(Client, "submit_search", submit_and_run)
    words = ["explore", "relu.py", "--proposer", "manual", "--server", service.url]
    monkeypatch.setattr(sys, "argv", ["adaexplore", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    assert f"its prompts wait for your answers at {service.url}" in capsys.readouterr().out


@pytest.fixture
def by_hand(tmp_path, monkeypatch):
    """Make a function that lets a worker go on with a search, and returns what it ends with.

    Nothing is evaluated.
    """
    make_run(tmp_path / "run", config=MANUAL_CONFIG)
    order = {
        "kind": "search",
        "config": {"proposer": "manual", "parallel": 2},
        "problems": [{"name": "relu", "source": PROBLEM}],
    }
    (tmp_path / "order.json").write_text(json.dumps(order))
    monkeypatch.setattr(worker.application, "resume", lambda *_: (event for event in ()))

    def work(*replies: PromptReply) -> tuple[dict, list[str]]:
        given = [reply.model_dump() for reply in replies]
        (tmp_path / "replies.json").write_text(json.dumps(given))
        said: list = []
        JobWorker(tmp_path, said.append).work()
        notices = [message["text"] for message in said if message["type"] == "notice"]
        return said[-1]["data"], notices

    return work


def test_a_worker_takes_answers_once_and_keeps_as_many_prompts_open_as_the_search_has_steps(
    by_hand, tmp_path
):
    first, _ = by_hand()
    assert [(prompt["ask"], prompt["turn"]) for prompt in first["prompts"]] == [(1, 0), (2, 0)]
    assert "torch.relu(x) + 1" in first["prompts"][0]["text"]
    reply = PromptReply(ask=1, turn=0, reply=f"```python\n{RIGHT}\n```")
    for _ in range(2):  # a kill has the answer come twice
        after, notices = by_hand(reply)
        assert [prompt["ask"] for prompt in after["prompts"]] == [2, 3]
        assert notices == []
    _, notices = by_hand(reply.model_copy(update={"reply": "other"}), ANSWER)
    assert len(notices) == 2
    last, _ = by_hand(*(PromptReply(ask=ask, turn=0, reply=reply.reply) for ask in (2, 3)))
    assert last["prompts"] == []  # all planned steps are asked for
    with read_run(tmp_path / "run") as directory:
        assert [record.state for record in directory.store.asks()] == ["queued"] * 3
        assert len(directory.store.calls()) == 3
