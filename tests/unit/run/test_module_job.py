"""A run in slices whose prompts are answered in files."""

import pytest

from adaexplore.core.ask import MANUAL
from adaexplore.core.environment import Environment
from adaexplore.core.problem import Problem
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.run.asks.ask_files import write_prompts
from adaexplore.run.job import Job, NewRun, Ready, Servers, Slice
from adaexplore.run.proposers import make_plan
from adaexplore.run.session import Session
from adaexplore.store import open_run

PROBLEM = Problem("example", "class Model: ...", "cpp", "cpu")
REPLY = "```python\nclass ModelNew:\n    pass\n```"


class Judge:
    def prepare(self):
        return ReferenceFacts(baselines_us={"eager": 10.0})

    def evaluate(self, candidate, parent=None, *, again=False):
        return Failed("wrong_output", "off by one")

    def close(self):
        pass


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A job of four steps that a person answers, judged without a process."""

    def prepare(self, problem, config):
        return Ready(Session(None, Judge(), Environment()), {})

    monkeypatch.setattr(Job, "_prepare", prepare)
    config = Config(proposer=MANUAL, steps=4, memory="none")
    plan = make_plan(config)
    with Job(tmp_path / "run", lambda: NewRun(PROBLEM, config, plan, str), Servers(), steps=4) as j:
        j.answer(Slice(), lambda _: 2)
        yield j


def test_an_answer_in_a_file_is_judged_when_the_search_finishes(job):
    assert sorted(file.name for file in job.asks.iterdir()) == ["1.1.md", "2.1.md"]
    assert job.answered() == 0
    (job.asks / "2.1.reply.md").write_text(REPLY)
    assert job.answered() == 1
    job.finish(Slice(spent=lambda: "time is over"))
    with open_run(job.path) as directory:
        assert [node.ask_id for node in directory.store.nodes()] == [2]
        assert [record.ask.id for record in directory.store.asks("open")] == [1]
    assert job.answered() == 0


def test_prompts_without_an_answer_are_left(job):
    with open_run(job.path) as directory:
        assert len(write_prompts(directory, 0, job.asks)) == 2
    job.finish(Slice())
    assert job.answered() == 0
