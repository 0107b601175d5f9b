"""OpenEnv's protocol on a real service, by requests and by a real socket."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from services import PROBLEM, RIGHT, running
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from adaexplore.core.verdict.evaluation import Failed, Passed, Timing
from adaexplore.core.verdict.evaluation_json import evaluation_to_json
from adaexplore.serve.accounts import accounts, revoke_token
from adaexplore.serve.jobs import Jobs
from adaexplore.serve.messages import JobResult, ProblemSource
from adaexplore.serve.trainers import judging, openenv
from adaexplore.serve.trainers.splits import Split

NOW = {"wait_s": 0, "reward": "kernrl", "options": {"language": "cpp"}}
FAST = Passed("fp32", 1e-7, Timing(1, (1, 1), {"eager": 3.0}, 2.0, (2, 2), 3.0, 9))
LOST = Failed("infra_error", "the worker was lost")


@pytest.fixture
def user(service):
    """A user without jobs: name and token."""
    name = f"user{time.monotonic_ns()}"
    return name, service.new_token(name)


@pytest.fixture
def end(service):
    """End the last queued job of a user, as the runner would."""

    def end(user, verdict=None, error="", **result):
        jobs = Jobs(service.engine, service.folder / "jobs")
        [job, *_] = jobs.of_user(user)
        verdicts = [evaluation_to_json(verdict)] if verdict else []
        ended = JobResult(verdicts=verdicts, **result)
        jobs.end(job.id, "failed" if error else "done", error, files=[], result=ended)

    return end


@contextmanager
def talk(service, token):
    """A socket, as a function from a message to its answer."""
    with connect(f"ws://x:{token}@127.0.0.1:{service.port}/openenv/ws") as socket:

        def say(kind, data=None):
            socket.send(json.dumps({"type": kind, **({} if data is None else {"data": data})}))
            answer = json.loads(socket.recv(timeout=90))
            return answer["type"], answer["data"]

        yield say


@pytest.fixture
def say(service, user):
    with talk(service, user[1]) as say:
        yield say


def test_an_episode_shows_the_task_then_the_verdicts_and_ends_after_its_turns(say, user, end):
    kind, data = say("reset", {"split": "train", "index": 1, "max_turns": 2, **NOW})
    seen = data["observation"]
    assert (kind, data["reward"], data["done"]) == ("observation", None, False)
    assert "class Model(nn.Module)" in seen["prompt"]
    assert (seen["split"], seen["index"], seen["turn"], seen["max_turns"]) == ("train", 1, 0, 2)
    assert say("step", {"code": RIGHT})[0] == "error"  # no verdict yet
    end(user[0], FAST)
    kind, data = say("step", {"code": RIGHT})
    assert (kind, data["reward"], data["done"]) == ("observation", 2.0, False)
    assert (data["observation"]["status"], data["observation"]["speedup"]) == ("passed", 2.0)
    assert "Make it faster" in data["observation"]["prompt"]
    kind, data = say("step", {"code": "no module"})
    assert (data["reward"], data["done"]) == (-0.5, True)
    assert data["observation"]["status"] == "compile_error"
    assert data["observation"]["best_speedup"] == 2.0
    kind, state = say("state")
    assert (kind, state["step_count"], state["done"]) == ("state", 2, True)
    assert say("step", {"code": RIGHT}) == (
        "error",
        {"message": "the episode is over; reset", "code": "EXECUTION_ERROR"},
    )


@pytest.mark.parametrize("failure", [{"verdict": LOST}, {"error": "its worker was lost 3 times"}])
def test_a_failure_of_the_machine_is_an_error_to_try_again_and_takes_no_turn(
    say, user, end, failure, monkeypatch
):
    monkeypatch.setattr(judging, "_AGAIN_S", 0.0)
    say("reset", NOW)
    for _ in range(3):
        kind, data = say("step", {"code": RIGHT})
        assert (kind, data["code"]) == ("error", "EXECUTION_ERROR")
        assert data["message"].endswith("send the step again")
        end(user[0], **failure)
    assert say("state")[1]["step_count"] == 0
    say("step", {"code": RIGHT})
    end(user[0], FAST)
    assert say("step", {"code": RIGHT})[1]["reward"] == 2.0


def test_a_step_that_is_sent_again_is_one_job(say, service, user):
    say("reset", NOW)
    for _ in range(3):
        say("step", {"code": RIGHT})
    assert len(service.ask("GET", "/v1/jobs", user[1]).json()) == 1


def test_a_reply_with_a_fenced_block_is_judged_by_its_module(say, service, user):
    say("reset", NOW)
    say("step", {"code": f"An idea.\n\n```python\n{RIGHT.strip()}\n```"})
    [job] = service.ask("GET", "/v1/jobs", user[1]).json()
    order = json.loads((service.folder / "jobs" / job["id"] / "order.json").read_text())
    assert order["candidates"] == [RIGHT.strip() + "\n"]


def test_a_seed_chooses_the_same_problem_each_time(say):
    chosen = [say("reset", {"seed": s})[1]["observation"]["index"] for s in (1, 1, 2, 3, 4, 5)]
    assert chosen[0] == chosen[1]
    assert len(set(chosen)) > 1


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        ("step", {"code": "x"}, "no episode; reset begins one"),
        ("step", {"kernel": "x"}, "no episode"),
        ("reset", {"split": "all"}, "split 'all': there are train, eval"),
        ("reset", {"index": 99}, "index 99: split train has 8"),
        ("reset", {"index": -1}, "index: Input should be greater"),
        ("reset", {"indx": 1}, "indx: Extra inputs are not permitted"),
        ("reset", {"reward": "best"}, "reward 'best': there are log, published"),
        ("reset", {"options": {"device": "cuda"}}, "'device' is no option of the service"),
        ("reset", {"options": {"timeout_s": 9000}}, "at most 600 here"),
        ("reset", [1], 'write {"type": ..., "data": {...}}'),
        ("mcp", {}, "unknown type of message"),
    ],
)
def test_a_wrong_message_is_one_line_and_the_socket_stays(say, kind, data, said):
    answered, error = say(kind, data)
    assert answered == "error"
    assert said in error["message"]
    assert say("reset")[0] == "observation"


def test_splits_and_their_tasks_are_listed(service):
    [train, held_out] = service.ask("GET", "/openenv/adaexplore/splits").json()
    assert (train["name"], train["type"], train["num_tasks"]) == ("train", "train", 8)
    assert (held_out["name"], held_out["type"], held_out["num_tasks"]) == ("eval", "validation", 4)

    def ask(what, **order):
        return service.ask("POST", f"/openenv/adaexplore/{what}", json=order).json()

    assert ask("num_tasks", split="eval") == {"num_tasks": 4}
    tasks = ask("tasks", split="eval")["tasks"]
    assert ask("task", split="eval", index=2)["task"] == tasks[2]
    assert ask("task_range", split="eval", start=1, stop=3)["tasks"] == tasks[1:3]
    assert service.ask("GET", "/openenv/other/splits").status_code == 404
    wrong = service.ask("POST", "/openenv/adaexplore/task", json={"split": "eval", "index": 4})
    assert wrong.status_code == 422


def test_episodes_by_post_are_their_users_alone(service, user, end):
    name, token = user
    begun = service.ask("POST", "/openenv/reset", token, json={"index": 0, **NOW}).json()
    order = {"action": {"code": RIGHT}, "episode_id": begun["observation"]["episode_id"]}
    first = service.ask("POST", "/openenv/step", token, json=order)
    assert (first.status_code, first.headers["retry-after"]) == (503, "10")
    end(name, FAST)
    assert service.ask("POST", "/openenv/step", token, json=order).json()["reward"] == 2.0
    assert service.ask("POST", "/openenv/step", json=order).status_code == 404
    path = f"/openenv/state?episode_id={order['episode_id']}"
    assert service.ask("GET", path, token).json()["step_count"] == 1
    assert service.ask("GET", path).status_code == 404


def test_a_step_that_is_sent_again_while_the_first_waits_is_one_turn(
    service, user, end, eventually
):
    name, token = user
    begun = service.ask("POST", "/openenv/reset", token, json={"index": 0, **NOW, "wait_s": 20})
    order = {"action": {"code": RIGHT}, "episode_id": begun.json()["observation"]["episode_id"]}
    with ThreadPoolExecutor(2) as threads:
        both = [
            threads.submit(service.ask, "POST", "/openenv/step", token, json=order)
            for _ in range(2)
        ]
        assert eventually(lambda: service.ask("GET", "/v1/jobs", token).json())
        time.sleep(0.5)
        end(name, FAST)
        assert [each.result().json()["observation"]["turn"] for each in both] == [1, 1]
    path = f"/openenv/state?episode_id={order['episode_id']}"
    assert service.ask("GET", path, token).json()["step_count"] == 1


@pytest.mark.parametrize("credentials", ["", "x:ada_guess@", "x:TOKENx@"])
def test_a_socket_without_a_right_token_is_refused(service, user, credentials):
    url = f"ws://{credentials.replace('TOKEN', user[1])}127.0.0.1:{service.port}/openenv/ws"
    with pytest.raises(InvalidStatus) as refused, connect(url):
        pass
    assert refused.value.response.status_code == 401


def test_scopes_hold_and_a_revoked_token_ends_an_open_socket(service):
    narrow = service.new_token("narrow", scopes=("search",))
    with pytest.raises(InvalidStatus) as refused, talk(service, narrow):
        pass
    assert refused.value.response.status_code == 403
    with talk(service, service.new_token("leaver")) as say:
        assert say("reset")[0] == "observation"
        [mine] = [a for a in accounts(service.engine) if a.user == "leaver"]
        revoke_token(service.engine, mine.id)
        assert "valid token" in say("step", {"code": RIGHT})[1]["message"]


def test_rates_and_quotas_hold_on_a_socket(service):
    with talk(service, service.new_token("slow", most_requests=4)) as say:
        answers = [say("reset")[0] for _ in range(5)]
    assert answers[-1] == "error"
    with talk(service, service.new_token("poor", most_jobs=1, most_candidates=2)) as say:
        said = []
        for number in range(2):
            say("reset", NOW)
            said.append(say("step", {"code": f"{RIGHT}# {number}\n"})[1]["message"])
    assert "no verdict yet" in said[0]
    assert "1 jobs are queued or running" in said[1]


def test_sockets_are_bounded_and_idle_ones_end(service, user, monkeypatch):
    monkeypatch.setattr(openenv, "_MOST_SOCKETS", 1)
    url = f"ws://x:{user[1]}@127.0.0.1:{service.port}/openenv/ws"
    with talk(service, user[1]) as say, connect(url) as second:
        assert json.loads(second.recv(timeout=10))["data"]["code"] == "CAPACITY_REACHED"
        with pytest.raises(ConnectionClosed):
            second.recv(timeout=10)
        assert say("reset")[0] == "observation"
    monkeypatch.setattr(openenv, "_IDLE_S", 0.1)
    with connect(url) as socket, pytest.raises(ConnectionClosed):
        socket.recv(timeout=10)


def test_each_message_is_in_the_audit_log_without_its_source(service, user):
    with talk(service, user[1]) as say:
        say("reset", NOW)
        say("step", {"code": RIGHT})
    lines = (service.folder / "audit.jsonl").read_text()
    mine = [one for one in map(json.loads, lines.splitlines()) if one["user"] == user[0]]
    assert [one["method"] for one in mine][:2] == ["WS reset", "WS step"]
    assert "ModelNew" not in lines


def test_a_problem_that_cannot_be_judged_is_no_reward(say, user, end):
    say("reset", NOW)
    say("step", {"code": RIGHT})
    end(user[0], error="p.py: no Model", bad_input=True)
    kind, data = say("step", {"code": RIGHT})
    assert (kind, data["message"]) == ("error", "the problem cannot be judged: p.py: no Model")


@pytest.mark.slow
def test_a_real_step_is_judged(tmp_path):
    """One step with a real worker; confined code and timing are tested with the jobs."""
    split = Split("train", (ProblemSource(name="p", source=PROBLEM),))
    settings = {"at_once": 1, "splits": [split], "language": "cpp"}
    with running(tmp_path, **settings) as service, talk(service, service.token) as say:
        say("reset", {"reward": "kernrl"})
        for _ in range(3):
            kind, data = say("step", {"code": RIGHT.replace("+ 1", "+ 2")})
            if kind == "observation":
                break
    assert (data["reward"], data["observation"]["status"]) == (-0.25, "wrong_output")
