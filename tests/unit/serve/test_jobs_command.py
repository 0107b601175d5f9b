"""The commands for the jobs of a service, once the command that submitted one has ended."""

import json

import pytest
from services import PROBLEM, RIGHT

from adaexplore.serve.client import problem_of
from adaexplore.serve.jobs import Jobs
from adaexplore.serve.messages import JobResult

UNKNOWN = "0" * 24


@pytest.fixture
def search(service, fresh_user):
    """A search of that user."""
    with service.client(fresh_user) as client:
        return client.submit_search(problem_of("relu", PROBLEM), {}).id


@pytest.fixture
def records(service):
    return Jobs(service.engine, service.folder / "jobs")


def test_jobs_are_listed_the_latest_first(jobs_command, service, fresh_user, search):
    with service.client(fresh_user) as client:
        latest = client.submit_evaluation(problem_of("gelu", PROBLEM), [RIGHT], {}).id
    lines = jobs_command("list").out.splitlines()
    assert [line.split()[:4] for line in lines[1:]] == [
        [latest, "evaluation", "gelu", "queued"],
        [search, "search", "relu", "queued"],
    ]
    [shown] = json.loads(jobs_command("list", "-n", "1", "--json").out)
    assert shown["id"] == latest


def test_a_wrong_token_is_refused_in_words_for_the_command_line(jobs_command, monkeypatch):
    monkeypatch.setenv("ADAEXPLORE_TOKEN", "ada_wrong")
    refused = jobs_command("list")
    assert refused.code == 2
    assert "ADAEXPLORE_TOKEN" in refused.err
    assert "Bearer" not in refused.err


def test_a_job_is_followed_to_its_end(jobs_command, records, service, fresh_user):
    with service.client(fresh_user) as client:
        job = client.submit_evaluation(problem_of("relu", PROBLEM), [RIGHT], {}).id
    records.add_event(job, "recorded", "step 1: 2x", "gelu", {})
    records.add_event(job, "stepbegun", "step 2", "", {})
    records.add_event(job, "verdict", "passed", "", {"index": 0})
    records.end(job, "done", files=[], result=JobResult())
    done = jobs_command("follow", job)
    assert done.code == 0
    told = done.out.splitlines()
    assert told[:4] == ["queued", "gelu: step 1: 2x", "candidate 1: passed", "done"]
    assert told[4] == f"adaexplore jobs fetch {job} --server {service.url}"
    events = [json.loads(line) for line in jobs_command("follow", job, "--json").out.splitlines()]
    assert [event["number"] for event in events] == [1, 2, 3, 4, 5]


def test_a_job_that_failed_is_a_finding(jobs_command, records, search):
    records.end(search, "failed", "p.py: defines no Model", files=[], result=JobResult())
    failed = jobs_command("follow", search)
    assert failed.code == 1
    assert "p.py: defines no Model" in failed.out


def test_files_and_result_are_fetched(jobs_command, records, search, tmp_path):
    run = records.folder / search / "run"
    run.mkdir()
    (run / "best.py").write_text("fast")
    early = jobs_command("fetch", search)
    assert (early.code, early.err.count("\n")) == (2, 1)
    assert "it has a result once it has ended" in early.err
    assert not (tmp_path / "runs").exists()
    records.end(search, "done", files=["best.py"], result=JobResult(headline="2x"))
    assert jobs_command("fetch", search).out.splitlines() == [
        "2x",
        f"runs/relu-{search[:8]}/result.json",
        f"runs/relu-{search[:8]}/best.py",
    ]
    found = jobs_command("fetch", search, "-o", "there", "--json")
    assert json.loads(found.out)["headline"] == "2x"
    assert (tmp_path / "there" / "best.py").read_text() == "fast"
    assert json.loads((tmp_path / "there" / "result.json").read_text())["headline"] == "2x"
    (tmp_path / "file").touch()
    refused = jobs_command("fetch", search, "-o", "file")
    assert (refused.code, refused.err.count("\n")) == (2, 1)


def test_a_job_is_cancelled_and_continued(jobs_command, search):
    assert jobs_command("cancel", search).out == f"job {search}: cancelled\n"
    assert jobs_command("continue", search).out.startswith(f"job {search}: queued\n")
    assert json.loads(jobs_command("cancel", search, "--json").out)["state"] == "cancelled"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["follow", "../health"], "'../health' is no id of a job"),
        (["follow", UNKNOWN], "no such job"),
        (["fetch", UNKNOWN], "no such job"),
        (["cancel", UNKNOWN], "no such job"),
        (["list", "-n", "0"], "--count"),
    ],
)
def test_bad_input_is_one_line(jobs_command, words, message):
    refused = jobs_command(*words)
    assert (refused.code, refused.out) == (2, "")
    [line] = refused.err.splitlines()
    assert message in line


def test_a_service_has_to_be_named(jobs_command):
    refused = jobs_command("list", server="")
    assert refused.code == 2
    assert "--server" in refused.err
