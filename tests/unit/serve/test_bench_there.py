"""Answers to a benchmark that a service judges, whose worker is played here."""

import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest
from services import PROBLEM, RIGHT, running

from adaexplore.cli import main
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.core.verdict.evaluation_json import evaluation_to_json
from adaexplore.serve import bench
from adaexplore.serve.jobs import Jobs
from adaexplore.serve.messages import JobResult

WRONG = Failed("wrong_output", "output is off by 1", error=1.0)
ROUNDED = Failed("wrong_output", "output is off by 0.02", error=0.02)
PREPARED = {"device": "NVIDIA H200", "problem_digest": "abc", "labels": {"tiny": "it is small"}}
BUILT = f"from torch.utils.cpp_extension import load_inline\n{RIGHT}"


class PlayedWorker:
    """Ends every queued job; the orders of each problem are kept by its name.

    `2_lost` fails by the machine at first, and `3_nan` by its problem. The first answer to the
    others is wrong by its rounding. A job of two answers begins again after the first.
    """

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self.orders: dict[str, list[dict]] = {}

    def run(self, over: threading.Event) -> None:
        while not over.wait(0.01):
            if job := self.jobs.take_next():
                order = self.jobs.order(job.id)
                self.orders.setdefault(job.problem, []).append(order)
                self.end(job, order["candidates"])

    def end(self, job, candidates) -> None:
        if job.problem == "3_nan":
            result = JobResult(bad_input=True, bad_problem=True)
            self.jobs.end(job.id, "failed", "it is NaN", files=[], result=result)
            return
        if job.problem == "2_lost" and len(self.orders["2_lost"]) == 1:
            self.jobs.end(job.id, "failed", "lost 3 times", files=[], result=JobResult())
            return
        for count in range(1, len(candidates) + 1):
            self.jobs.add_event(job.id, "prepared", "", "", PREPARED)
            for index in range(count):
                found = ROUNDED if index == 0 else WRONG
                data = {"index": index, "evaluation": evaluation_to_json(found)}
                self.jobs.add_event(job.id, "verdict", found.status, "", data)
        self.jobs.end(job.id, "done", files=[], result=JobResult())


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("serve"), device="cuda") as service:
        yield service


@pytest.fixture
def worker(service):
    worker, over = PlayedWorker(Jobs(service.engine, service.folder / "jobs")), threading.Event()
    thread = threading.Thread(target=worker.run, args=(over,))
    thread.start()
    yield worker
    over.set()
    thread.join()


@pytest.fixture
def adaexplore(service, monkeypatch, capsys, tmp_path):
    """Run `adaexplore bench` as a user with one job at once; return its code and output."""
    monkeypatch.chdir(tmp_path)
    user = f"user{time.monotonic_ns()}"
    monkeypatch.setenv("ADAEXPLORE_TOKEN", service.new_token(user, most_jobs=1))
    monkeypatch.setattr(bench, "_PAUSE_S", 0.05)
    files = {
        "kb/level1/1_relu.py": PROBLEM,
        "kb/level1/2_lost.py": PROBLEM.replace("64", "32"),
        "kb/level1/3_nan.py": PROBLEM.replace("+ 1", "* 0"),
        "ours/level1/1.py": BUILT,
        "ours/level1/2.py": RIGHT,
        "ours/level1/3.py": RIGHT,
        "theirs/level1/1.py": f"{BUILT}\n",
    }
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)

    def adaexplore(*words):
        monkeypatch.setattr(sys, "argv", ["adaexplore", "bench", *words])
        with pytest.raises(SystemExit) as end:
            main()
        return (end.value.code or 0, *capsys.readouterr())

    return adaexplore


def verdicts():
    lines = map(json.loads, Path("run/verdicts.jsonl").read_text().splitlines())
    return sorted(
        (
            line["entry"]["collection"],
            line["entry"]["key"],
            line["unjudged"] or line["evaluation"]["reason"],
            line["precision"],
        )
        for line in lines
    )


ANSWERS = ("--answers", "ours", "--answers", "theirs")
JUDGED = [
    ("ours", "1/1", ROUNDED.reason, "half"),
    ("ours", "1/2", "lost 3 times", "fp32"),
    ("ours", "1/3", "it is NaN", "fp32"),
    ("theirs", "1/1", WRONG.reason, "fp32"),
]


def test_answers_are_judged_at_a_service_and_what_the_machine_lost_is_tried_again(
    adaexplore, service, worker
):
    words = ("kernelbench", "--data", "kb", *ANSWERS, "--or-looser", "--parallel", "3")
    words += ("--set", "timeout_s=60", "--run", "run", "--json", "out.json")
    code, out, err = adaexplore(*words, "--server", service.url)
    assert (code, verdicts()) == (3, JUDGED)
    assert "3/4 " in err
    assert "4/4 " not in err
    configs = [order["config"] for order in worker.orders["1_relu"]]
    assert [one["precision"] for one in configs] == ["fp32", "tf32", "half"]
    assert {(one["language"], one["timeout_s"]) for one in configs} == {("cuda", 60)}
    assert worker.orders["2_lost"][0]["config"]["language"] == "triton"
    assert "adaexplore bench --resume " in out
    assert "NVIDIA H200" in Path("out.json").read_text()
    assert Path("run/index.html").is_file()

    code, _, err = adaexplore("--resume", "run", "--device", "cpu")
    assert (code, "--device: the service chooses that" in err) == (2, True)
    code, _, _ = adaexplore("--resume", "run")
    assert (code, len(verdicts())) == (0, 5)
    assert ("ours", "1/2", ROUNDED.reason, "half") in verdicts()
    judged = json.loads(Path("run/verdicts.jsonl").read_text().splitlines()[-1])
    assert {name: judged[name] for name in PREPARED} == PREPARED
    assert len(worker.orders["1_relu"]) == 3  # its answers were not judged again


def test_what_a_stop_leaves_at_the_service_is_cancelled(adaexplore, service):
    words = ("kernelbench", "--data", "kb", "--answers", "ours", "--server", service.url)
    code, out, err = adaexplore(*words, "--run", "run", "--budget", "1.5s", "--parallel", "2")
    assert (code, Path("run/verdicts.jsonl").exists()) == (0, False)
    assert "3 not judged yet of 3" in out
    assert "1 jobs are queued or running, your most; wait for one; again in" in err
    with service.client(os.environ["ADAEXPLORE_TOKEN"]) as client:
        assert [job.state for job in client.jobs()] == ["cancelled"]


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (ANSWERS, 2, "put the service's token into ADAEXPLORE_TOKEN"),
        ((*ANSWERS, "--device", "cpu"), 2, "--device: the service chooses that for its jobs"),
        ((), 2, "a service judges answers; give them by --answers"),
    ],
)
def test_refusals_are_one_line_and_leave_no_folder(
    adaexplore, service, monkeypatch, words, code, complaint
):
    monkeypatch.delenv("ADAEXPLORE_TOKEN")
    given = ("kernelbench", "--data", "kb", *words, "--server", service.url, "--run", "run")
    found, out, err = adaexplore(*given)
    assert (found, out, err.count("\n")) == (code, "", 1)
    assert complaint in err
    assert not Path("run").exists()


def test_a_folder_goes_on_where_it_began(adaexplore, service):
    adaexplore("kernelbench", "--data", "kb", "--answers", "ours", "--run", "run", "--collect-only")
    code, _, err = adaexplore("--resume", "run", "--server", service.url)
    assert (code, "run goes on as it began, on this machine" in err) == (2, True)
