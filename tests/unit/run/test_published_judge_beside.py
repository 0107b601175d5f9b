"""A session whose evaluator also asks the published judge, on the CPU."""

import fcntl
from dataclasses import replace
from threading import Thread

import pytest
from stored_runs import sample_run

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Problem, Workload
from adaexplore.core.protocols.listener import follow
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Failed, PublishedVerdict
from adaexplore.run.explore import resume
from adaexplore.run.session import open_session
from adaexplore.run.verdicts.published_judge import WithPublishedJudge, published_judge_fits
from adaexplore.sandbox.lock import device_lock, make_lock_files
from adaexplore.store import create_run, read_run

REFERENCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2

def get_inputs():
    return [torch.randn(64, 64)]

def get_init_inputs():
    return []
"""
PROBLEM = Problem("twice_relu", REFERENCE, "cpp", "cpu")


def candidate(result):
    source = REFERENCE.partition("def get_inputs")[0].replace("class Model", "class ModelNew")
    return Candidate(source.replace("torch.relu(x) * 2", result), "cpp")


@pytest.mark.slow
def test_a_kernel_within_the_published_tolerance_alone_has_both_verdicts():
    settings = Config(published_judge=True, timeout_s=60.0)
    with open_session(PROBLEM, settings) as session:
        session.evaluator.prepare()
        near = session.evaluator.evaluate(candidate("torch.relu(x) * 2.01"))
        ends = session.evaluator.evaluate(candidate("exit()"))
    assert near.status == "wrong_output"
    assert (near.published.why, near.published.speedup > 0) == ("", True)
    assert ends.status != "passed"
    assert ends.published.why


class Failing:
    def evaluate(self, *_, **__):
        return Failed("compile_error", "")


class Replies:
    """A server and its worker, which notes who has the device when it is asked something."""

    def __init__(self, *replies, device="cpu"):
        self.replies = list(replies)
        self.device = device
        self.held = []

    def spawn(self, *_, **__):
        return self

    def call(self, _message, _timeout_s, *, make_way):
        with make_lock_files(self.device)[0].open() as file:
            for mode, how in ((fcntl.LOCK_EX, "by nobody"), (fcntl.LOCK_SH, "with others")):
                try:
                    fcntl.flock(file, mode | fcntl.LOCK_NB)
                    self.held.append(how)
                    break
                except BlockingIOError:
                    continue
            else:
                self.held.append("alone")
        return self.replies.pop(0)

    def end(self):
        pass


ALONE, BESIDE = {"alone": True}, {"alone": False}
RIGHT = {"why": "", "time_us": 2.0, "eager_us": 4.0}


def published(*replies, device="cpu"):
    server = Replies(*replies, device=device)
    judge = WithPublishedJudge(Failing(), server, replace(PROBLEM, device=device), 60.0, 1 << 30)
    return judge.evaluate(candidate("torch.relu(x)")).published, server.held


@pytest.mark.parametrize(("device", "first"), [("cpu", "with others"), ("cuda:0", "by nobody")])
def test_the_published_judge_has_the_device_alone_while_it_times_and_only_then(device, first):
    verdict, held = published(ALONE, BESIDE, ALONE, BESIDE, RIGHT, device=device)
    assert verdict.speedup == 2.0
    assert held == [first, "alone", "with others", "alone", "with others"]


def test_the_published_judge_has_the_device_alone_where_memory_ran_out_beside_others():
    verdict, held = published({"out_of_memory": True}, ALONE, BESIDE, ALONE, BESIDE, RIGHT)
    assert verdict.speedup == 2.0
    assert held == ["with others"] + ["alone"] * 5
    lacking = {"out_of_memory": True}
    assert published(lacking, lacking) == (None, ["with others", "alone"])


def test_a_candidate_that_asks_for_the_device_again_and_again_has_no_times():
    verdict, _ = published(*[ALONE] * 9)
    assert verdict == PublishedVerdict("its process sent a malformed reply")


def test_those_who_time_need_not_wait_for_the_published_judge_to_compare(eventually):
    class Comparing(Replies):
        stopped = 0

        def freeze(self):
            self.stopped += 1

        def thaw(self):
            self.stopped += 1

        def call(self, message, timeout_s, *, make_way):
            if len(self.held) == 2:
                timing = Thread(target=time_alone)
                timing.start()
                assert eventually(make_way)
                timing.join()
            return super().call(message, timeout_s, make_way=make_way)

    def time_alone():
        with device_lock("cpu", exclusive=True):
            seen.append(server.stopped)

    seen = []
    server = Comparing(ALONE, BESIDE, ALONE, BESIDE, RIGHT)
    judge = WithPublishedJudge(Failing(), server, PROBLEM, 60.0, 1 << 30)
    assert judge.evaluate(candidate("torch.relu(x)")).published.speedup == 2.0
    assert (seen, server.stopped) == ([1], 2)


ANSWERING = """
import sys, time
frame = sys._getframe()
while frame.f_code.co_name != "serve":
    frame = frame.f_back
    if frame is None:
        raise ImportError("this is no worker")
frame.f_locals["channel"].send(REPLY)
time.sleep(60)
"""


@pytest.mark.parametrize(
    "reply",
    [
        "{'why': 0}",
        "{'more': 1}",
        "{'why': '', 'time_us': float('nan'), 'eager_us': 1.0}",
        "{'why': '', 'time_us': 1e-310, 'eager_us': 1.0}",
        "{'why': '', 'time_us': '1', 'eager_us': 1.0}",
    ],
)
def test_a_candidate_that_answers_for_the_published_judge_in_another_form_has_no_times(
    server, reply
):
    judge = WithPublishedJudge(Failing(), server, PROBLEM, 60.0, 4 << 30)
    found = judge.evaluate(Candidate(ANSWERING.replace("REPLY", reply), "cpp")).published
    assert found == PublishedVerdict("its process sent a malformed reply")


def test_a_candidate_holds_no_more_memory_beside_the_published_judge_than_it_may(server):
    judge = WithPublishedJudge(Failing(), server, PROBLEM, 60.0, 2 << 30)
    taking = "import torch\nx = torch.ones(1 << 30)\nraise ValueError('has 4 GiB')"
    why = judge.evaluate(Candidate(taking, "cpp")).published.why
    assert why
    assert "has 4 GiB" not in why


def test_only_problems_in_kernelbench_s_form_are_judged():
    captured = Workload(file="/inputs.pt", digest="0")
    assert published_judge_fits(PROBLEM)
    assert not published_judge_fits(Problem("p", REFERENCE, "cpp", "cpu", workloads=(captured,)))
    assert not published_judge_fits(Problem("p", REFERENCE, "triton", "cpu", target="sm_90"))


def test_a_run_with_the_published_judge_does_not_go_on_in_a_cluster(tmp_path):
    record = replace(sample_run(), config=Config(published_judge=True, steps=2))
    create_run(tmp_path / "run", record).close()
    with pytest.raises(BadInputError, match="runs on this machine; leave out --ray, or give"):
        follow(resume(tmp_path / "run", Config(ray="127.0.0.1:1")), lambda _: None)
    with read_run(tmp_path / "run") as directory:
        assert directory.store.run().config.ray == ""
