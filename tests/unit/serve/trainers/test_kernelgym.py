"""KernelGYM's protocol on a real service: its forms, and failures that must be no penalty."""

import time

import pytest
from services import PROBLEM, RIGHT, running

from adaexplore.core.verdict.evaluation import Estimate, Failed, Passed, Profile, Timing
from adaexplore.core.verdict.evaluation_json import evaluation_to_json
from adaexplore.serve.jobs import Jobs
from adaexplore.serve.messages import JobResult
from adaexplore.serve.trainers import judging
from adaexplore.serve.trainers.kernelgym import result_of

TASK = {"reference_code": PROBLEM, "kernel_code": RIGHT, "backend": "cpp", "timeout": 0}
LOST = Failed("infra_error", "the worker was lost")
WRONG = Failed("wrong_output", "off by one")


@pytest.fixture
def evaluate(service):
    def evaluate(task_id, token=None, **changes):
        task = {"task_id": task_id} | TASK | changes
        return service.ask("POST", "/kernelgym/evaluate", token, json=task)

    return evaluate


@pytest.fixture
def state(service):
    return lambda task_id, token=None: service.ask("GET", f"/kernelgym/status/{task_id}", token)


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


@pytest.fixture
def user(service):
    """A user without jobs: name and token."""
    name = f"user{time.monotonic_ns()}"
    return name, service.new_token(name)


def test_a_task_goes_from_pending_to_its_result(service, evaluate, state, end, user):
    name, token = user
    assert evaluate("one", token).json()["status"] == "pending"
    results = "/kernelgym/results/one"
    assert service.ask("GET", results, token).status_code == 404
    end(name, WRONG)
    found = service.ask("GET", results, token).json()
    assert (found["status"], found["compiled"], found["correctness"]) == ("completed", True, False)
    assert (found["error_code"], found["error_message"]) == ("CORRECTNESS_ERROR", "off by one")
    assert state("one", token).json()["status"] == "completed"


@pytest.mark.parametrize(
    "failure",
    [
        {"verdict": LOST},
        {"verdict": Failed("not_run", "no such GPU")},
        {"error": "its worker was lost 3 times"},
    ],
)
def test_a_failure_of_the_machine_is_judged_again_and_never_a_penalty(
    evaluate, state, end, user, monkeypatch, failure
):
    name, token = user
    evaluate("one", token)
    end(name, **failure)
    monkeypatch.setattr(judging, "_AGAIN_S", 0.0)
    for _ in range(5):  # however often
        assert state("one", token).json()["status"] == "pending"
        assert evaluate("one", token).json()["status"] == "pending"
        end(name, **failure)
    state("one", token)
    end(name, WRONG)
    assert state("one", token).json()["correctness"] is False


def test_a_failed_machine_is_given_time_before_the_next_attempt(
    service, evaluate, state, end, user
):
    name, token = user
    evaluate("one", token)
    end(name, LOST)
    assert state("one", token).json()["status"] == "pending"
    [job] = service.ask("GET", "/v1/jobs", token).json()
    assert job["state"] == "done"  # not yet queued again


def test_a_reference_that_cannot_be_judged_fails_with_its_reason(evaluate, state, end, user):
    name, token = user
    evaluate("one", token)
    end(name, error="task.py: no Model", bad_input=True)
    found = state("one", token).json()
    assert (found["status"], found["error_code"]) == ("failed", "VALIDATION_ERROR")
    assert found["error_message"] == "task.py: no Model"


def test_a_task_that_is_sent_again_is_one_job_and_its_name_belongs_to_one_kernel(
    service, evaluate, user
):
    _, token = user
    for _ in range(3):
        assert evaluate("one", token).status_code == 200
    other = evaluate("one", token, kernel_code=f"{RIGHT}# another\n")
    assert other.status_code == 409
    assert "'one' names another kernel" in other.json()["detail"]
    assert len(service.ask("GET", "/v1/jobs", token).json()) == 1


def test_a_token_in_the_clients_url_is_enough(service):
    token, path = service.new_token("bob"), "/kernelgym/status/none"
    right = service._http.get(f"http://x:{token}@127.0.0.1:{service.port}{path}")
    assert right.status_code == 404
    for credentials in (f"x:{token}A@", f"{token}:x@", "x:y@", ""):
        wrong = service._http.get(f"http://{credentials}127.0.0.1:{service.port}{path}")
        assert wrong.status_code == 401
    assert service.ask("GET", path, headers={"Authorization": "Basic !!"}).status_code == 401


def test_another_users_tasks_are_unknown_and_scopes_hold(evaluate, state, service, user):
    evaluate("mine", user[1])
    assert state("mine").status_code == 404
    path = "/kernelgym/tasks/mine"
    assert service.ask("DELETE", path).status_code == 404
    narrow = service.new_token("narrow", scopes=("search",))
    assert evaluate("theirs", narrow).status_code == 403
    assert service.ask("DELETE", path, user[1]).status_code == 200
    assert state("mine", user[1]).json()["status"] == "cancelled"


def test_quotas_hold_with_the_protocols_own_answer(evaluate, service):
    token = service.new_token("small", most_jobs=2, most_candidates=3)
    assert [evaluate(f"t{i}", token).status_code for i in range(3)] == [200, 200, 429]


def test_a_batch_gives_a_result_for_each_task(service, user):
    tasks = [{"task_id": f"t{i}"} | TASK for i in range(3)]
    order = {"batch_id": "b", "tasks": tasks}
    found = service.ask("POST", "/kernelgym/evaluate/batch", user[1], json=order).json()
    assert [result["task_id"] for result in found["results"]] == ["t0", "t1", "t2"]
    assert (found["batch_status"], found["failed_tasks"]) == ("processing", 0)
    too_many = {"batch_id": "b", "tasks": tasks * 34}
    answer = service.ask("POST", "/kernelgym/evaluate/batch", user[1], json=too_many)
    assert answer.status_code == 422


def passed(*labels, profile=None):
    timing = Timing(500.0, (1, 1), {"eager": 1000.0}, 1.2, (1, 1), 2.0, 9)
    return Passed("fp32", 1e-7, timing, labels=labels, profile=profile)


def test_a_correct_kernel_has_its_times_in_milliseconds_and_its_share():
    found = result_of("t", passed(profile=Profile((), 80.0, 0.25)))
    assert (found.reference_runtime, found.kernel_runtime, found.speedup) == (1.0, 0.5, 2.0)
    assert found.metadata["custom_kernel_cuda_time_in_profiling_us"] == 20.0
    assert found.metadata["total_kernel_run_time_in_profiling_us"] == 80.0
    assert not found.decoy_kernel
    assert result_of("t", passed("decoy")).decoy_kernel
    assert result_of("t", passed("no-custom-kernel")).decoy_kernel


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("compile_error", ("completed", False, False)),
        ("runtime_error", ("completed", True, False)),
        ("out_of_memory", ("completed", True, False)),
        ("rejected", ("completed", True, True)),
        ("timeout", ("timeout", True, False)),
    ],
)
def test_a_failure_has_the_state_that_clients_score(status, expected):
    found = result_of("t", Failed(status, "why"))
    assert (found.status, found.compiled, found.decoy_kernel) == expected
    assert found.speedup == 0.0


def test_an_estimate_is_no_speedup():
    found = result_of("t", Passed("fp32", 1e-7, Estimate(1.0, "memory", "sm_90")))
    assert (found.correctness, found.speedup, found.kernel_runtime) == (True, 0.0, -1.0)
    assert found.metadata["measured"] is False


def test_a_real_worker_tells_a_broken_reference_from_a_failed_machine(tmp_path):
    with running(tmp_path, at_once=1) as service:
        task = {"task_id": "one", **TASK, "reference_code": "class Model: ...", "timeout": 60}
        found = service.ask("POST", "/kernelgym/evaluate", json=task, timeout=60).json()
    assert (found["status"], found["error_code"]) == ("failed", "VALIDATION_ERROR")
    assert "get_inputs" in found["error_message"]


def test_the_health_needs_no_token(tmp_path):
    with running(tmp_path) as service:
        health = service._http.get(f"{service.url}/kernelgym/health")
        assert health.json()["status"] == "healthy"
