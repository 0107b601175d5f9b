"""The commands that take prompts of a search at a service as files, and send the replies."""

import json
from dataclasses import replace
from pathlib import Path
from threading import Timer

import pytest
from services import EVERYTHING, running
from test_prompts import FIRST, NOTHING, SECOND, waiting_job

from adaexplore.serve.accounts import find_account
from adaexplore.serve.jobs import Jobs
from adaexplore.serve.messages import PromptReply
from adaexplore.serve.prompts import WaitingPrompts


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("serve")) as service:
        yield service


@pytest.fixture
def records(service):
    return Jobs(service.engine, service.folder / "jobs")


@pytest.fixture
def prompts(service):
    return WaitingPrompts(service.engine)


@pytest.fixture
def waiting(service, fresh_user, records):
    """A job of that user with two prompts that wait."""
    user = find_account(service.engine, fresh_user).user
    return waiting_job(records, replace(EVERYTHING, user=user), (FIRST, SECOND))


def test_prompts_become_files_and_the_replies_beside_them_are_sent_once(
    jobs_command, waiting, prompts, service
):
    folder = Path("asks") / waiting
    asked = jobs_command("ask", waiting)
    assert (asked.code, asked.out.splitlines()) == (
        0,
        [
            f"{folder}/1.1.md: large step, kernel; answer in 1.1.reply.md",
            f"{folder}/2.1.md: small step, kernel; answer in 2.1.reply.md",
        ],
    )
    assert (folder / "1.1.md").read_text() == "Write a kernel.\n"
    (folder / "1.1.reply.md").write_text("mine")
    told = jobs_command("tell", waiting)
    assert told.code == 0
    assert told.out.splitlines() == [
        "1.1.reply.md: taken",
        f"  adaexplore jobs ask --wait {waiting} --server {service.url}",
    ]
    assert prompts.replies(waiting) == [PromptReply(ask=1, turn=0, reply="mine")]
    assert jobs_command("tell", waiting).out == "1.1.reply.md: told before\n"
    left = json.loads(jobs_command("ask", waiting, "-o", "left", "--json").out)
    assert (left["state"], [each["ask"] for each in left["prompts"]]) == ("queued", [2])
    assert left["prompts"][0]["reply_file"] == "left/2.1.reply.md"
    assert Path(left["prompts"][0]["file"]).read_text() == "Change one thing.\n"


def test_a_reply_that_is_refused_keeps_none_of_the_others_back(jobs_command, waiting, prompts):
    jobs_command("ask", waiting, "-o", "asks")
    prompts.answer(waiting, PromptReply(ask=1, turn=0, reply="first"))
    replies = {"1.1": "other", "2.1": "mine", "3.1": "early", "4.1": " ", "four": "mine"}
    for name, text in replies.items():
        Path(f"asks/{name}.reply.md").write_text(text)
    told = jobs_command("tell", waiting, "asks", "asks/2.1.md", "--json")
    lines = [json.loads(line) for line in told.out.splitlines()]
    found = {Path(line["file"]).name: (line["state"], line["reason"]) for line in lines}
    assert told.code == 2
    assert found.pop("2.1.reply.md") == ("taken", "")
    assert {state for state, _ in found.values()} == {"refused"}
    for name, part in {
        "1.1.reply.md": "ask 1, turn 1 has been answered already; the first answer counts",
        "3.1.reply.md": "ask 3, turn 1: no such prompt waits",
        "4.1.reply.md": "is empty",
        "four.reply.md": "name it after its prompt",
        "2.1.md": "that is the prompt",
    }.items():
        assert part in found[name][1]
    assert [reply.reply for reply in prompts.replies(waiting)] == ["first", "mine"]


def test_ask_waits_for_prompts_up_to_the_end_of_the_job(
    jobs_command, waiting, prompts, records, service
):
    for ask in (1, 2):
        prompts.answer(waiting, PromptReply(ask=ask, turn=0, reply="mine"))
    none = jobs_command("ask", waiting)
    assert (none.code, none.out.splitlines()) == (
        0,
        [
            "no prompt waits for an answer; the job is queued",
            f"  adaexplore jobs ask --wait {waiting} --server {service.url}",
        ],
    )
    while records.take_next().id != waiting:
        continue
    after = FIRST.model_copy(update={"turn": 1})
    taken = prompts.replies(waiting)
    timer = Timer(0.2, lambda: prompts.wait(waiting, [after], taken, **NOTHING))
    timer.start()
    asked = jobs_command("ask", "--wait", waiting)
    timer.join()
    assert (asked.code, asked.out.split(":")[0]) == (0, f"asks/{waiting}/1.2.md")
    records.cancel(waiting)
    ended = jobs_command("ask", "--wait", waiting)
    assert (ended.code, ended.out.splitlines()) == (
        1,
        [
            "no prompt waits for an answer; the job is cancelled",
            f"  adaexplore jobs fetch {waiting} --server {service.url}",
        ],
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ask", "0" * 24], "no such job"),
        (["tell", "0" * 24, "asks"], "no such job"),
        (["tell", "0" * 24], f"asks/{'0' * 24} does not exist"),
        (["tell", "0" * 24, "empty"], "empty holds no replies"),
    ],
)
def test_bad_input_is_one_line(jobs_command, words, message):
    for name in ("asks", "empty"):
        Path(name).mkdir()
    Path("asks/1.1.reply.md").write_text("mine")
    refused = jobs_command(*words)
    assert (refused.code, refused.out) == (2, "")
    [line] = refused.err.splitlines()
    assert message in line
