"""KernelGYM's protocol: what its clients send, and what they make of the answers."""

import os
from pathlib import Path

import httpx
import pytest
from services import PROBLEM, RIGHT, running

from adaexplore.core.evaluation import Failed, KernelUse, Passed, Profile, Timing
from adaexplore.serve import kernelgym
from adaexplore.serve.kernelgym import result_of

EAGER = Path(__file__).parents[2] / "eager"
TIMING = Timing(50.0, (50.0, 50.0), {"compile": 80.0}, 1.6, (1.5, 1.7), 3.0, 9)
PROFILE = Profile(
    (KernelUse("mine", "custom", 2, 30.0), KernelUse("gemm", "cublas", 1, 10.0)), 40.0, 0.75
)


def task(name="task-1", **changes):
    sent = {"task_id": name, "reference_code": PROBLEM, "kernel_code": RIGHT, "backend": "cpp"}
    more = {"num_correct_trials": 5, "num_perf_trials": 100, "priority": "normal", "is_valid": True}
    return sent | more | changes


def test_runtimes_are_in_milliseconds_and_the_speedup_is_over_eager():
    found = result_of("t", Passed("fp32", 1e-7, TIMING, profile=PROFILE))
    assert (found.status, found.compiled, found.correctness) == ("completed", True, True)
    assert found.kernel_runtime == pytest.approx(0.05)
    assert found.reference_runtime == pytest.approx(0.15)
    assert found.speedup == 3.0
    assert found.decoy_kernel is False
    assert found.metadata["num_custom_kernels"] == 2
    assert found.metadata["num_total_kernels"] == 3
    assert found.metadata["custom_kernel_cuda_time_in_profiling_us"] == 30.0
    assert found.metadata["total_kernel_run_time_in_profiling_us"] == 40.0


@pytest.mark.parametrize(
    ("evaluation", "status", "compiled", "decoy"),
    [
        (Passed("fp32", 0.0, TIMING, labels=("decoy",)), "completed", True, True),
        (Failed("rejected", "it caches"), "completed", True, True),
        (Failed("compile_error", "no"), "completed", False, False),
        (Failed("wrong_output", "no"), "completed", True, False),
        (Failed("runtime_error", "no"), "completed", True, False),
        (Failed("timeout", "no"), "timeout", True, False),
        (Failed("infra_error", "no"), "failed", False, False),
        (Failed("not_run", "no GPU"), "failed", True, False),
    ],
)
def test_verdicts_become_states_and_flags(evaluation, status, compiled, decoy):
    found = result_of("t", evaluation)
    assert (found.status, found.compiled, found.decoy_kernel) == (status, compiled, decoy)


class TestWaiting:
    def test_a_task_is_queued_once_and_is_its_user_s(self, service):
        mine, others = service.new_token("gym"), service.new_token("other")
        for _ in range(2):
            sent = service.ask("POST", "/kernelgym/evaluate", mine, json=task(timeout=1))
            assert (sent.status_code, sent.json()["status"]) == (200, "pending")
        assert len(service.ask("GET", "/v1/jobs", mine).json()) == 1
        found = service.ask("GET", "/kernelgym/status/task-1", mine)
        assert found.json()["status"] == "pending"
        assert service.ask("GET", "/kernelgym/results/task-1", mine).status_code == 409
        assert service.ask("GET", "/kernelgym/status/task-1", others).status_code == 404

    def test_who_waits_often_enough_gets_the_state(self, service, monkeypatch):
        monkeypatch.setattr(kernelgym, "_MOST_WAITING", 0)
        sent = service.ask(
            "POST", "/kernelgym/evaluate", service.new_token("hurried"), json=task(timeout=3600)
        )
        assert sent.json()["status"] == "pending"

    def test_a_token_in_the_url_is_enough(self, service):
        url = service.url.replace("://", f"://x:{service.new_token('by-url')}@")
        assert httpx.get(f"{url}/kernelgym/status/none").status_code == 404
        for wrong in ("x:ada_wrong@", "x@", ""):
            url = service.url.replace("://", f"://{wrong}")
            assert httpx.get(f"{url}/kernelgym/status/none").status_code == 401
        broken = {"Authorization": "Basic ä"}.items()
        headers = [(name, value.encode("latin-1")) for name, value in broken]
        answer = httpx.get(f"{service.url}/kernelgym/status/none", headers=headers)
        assert answer.status_code == 401

    @pytest.mark.parametrize(
        "changes",
        [{"entry_point": "Model; import os"}, {"backend": "fortran"}, {"kernel_code": ""}],
    )
    def test_a_wrong_task_is_refused(self, service, fresh_user, changes):
        sent = service.ask("POST", "/kernelgym/evaluate", fresh_user, json=task(**changes))
        assert sent.status_code == 422

    def test_a_token_without_the_scope_is_refused(self, service):
        token = service.new_token("searcher", scopes=("search",))
        sent = service.ask("POST", "/kernelgym/evaluate", token, json=task())
        assert sent.status_code == 403

    def test_it_is_healthy_without_a_token(self, service):
        assert httpx.get(f"{service.url}/kernelgym/health").json() == {"status": "healthy"}


@pytest.mark.slow
def test_a_batch_is_judged(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{EAGER}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    renamed = {
        "reference_code": PROBLEM.replace("Model", "Net"),
        "kernel_code": RIGHT.replace("ModelNew", "NetNew"),
        "entry_point": "Net",
    }
    sent = {"batch_id": "one", "tasks": [task("right", **renamed)]}
    with running(tmp_path, at_once=1) as service:
        batch = service.ask("POST", "/kernelgym/evaluate/batch", json=sent, timeout=120).json()
        [right] = batch["results"]
        assert (batch["completed_tasks"], batch["failed_tasks"]) == (1, 0)
        assert right["correctness"]
        assert right["speedup"] > 0
        assert service.ask("GET", "/kernelgym/results/right").json() == right
