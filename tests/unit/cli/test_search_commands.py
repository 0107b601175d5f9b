"""explore, resume, show and report, with a proposer that needs no compiler."""

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.proposal import Proposal
from adaexplore.problems import EXAMPLE
from adaexplore.run.session import Session
from adaexplore.sandbox.process import ForkServer
from adaexplore.store import read_run


class Renaming:
    """Proposes the reference itself under the candidate's name, a new text at every step."""

    def __init__(self, interrupt_at: int | None = None) -> None:
        self.interrupt_at = interrupt_at

    def begin(self, context):
        yield from ()
        step = len(context.history) + 1
        if step == self.interrupt_at:
            raise KeyboardInterrupt
        source = context.problem.source.replace("class Model(", "class ModelNew(")
        repeated = source.replace("return torch.relu(x) + 1", SLOWLY)
        assert repeated != source
        return Proposal(Candidate(f"{repeated}\n# {step}\n", "cpp"), "renaming", f"step {step}")

    def close(self):
        pass


SLOWLY = """
        for _ in range(9):
            out = torch.relu(x) + 1
        return out
"""


@pytest.fixture
def proposer(monkeypatch):
    proposer = Renaming()
    monkeypatch.setattr(Session, "compiler", lambda *_: proposer)
    return proposer


@pytest.fixture
def explore(adaexplore, problem, proposer, tmp_path):
    def explore(*words):
        path = tmp_path / "run"
        return adaexplore("explore", problem, "--device", "cpu", "--run", path, *words), path

    return explore


@pytest.mark.slow
def test_the_example_of_the_package(adaexplore, tmp_path):
    path = tmp_path / "run"
    words = ["--example", "--proposer", "manual", "--device", "cpu", "--steps", 1, "--run", path]
    assert adaexplore("explore", *words).code == 0
    with read_run(path) as run:
        assert run.store.run().problem.source == EXAMPLE.read_text()


def test_an_example_and_a_problem_exclude_each_other(explore):
    result, path = explore("--example")
    assert result.code == 2
    assert "one problem: a file, or --example" in result.err
    assert not path.exists()


def test_a_place_where_no_run_can_be_made_is_refused_at_once(
    adaexplore, problem, tmp_path, monkeypatch
):
    monkeypatch.setattr(ForkServer, "start", lambda *_: pytest.fail("a worker server was started"))
    file = tmp_path / "file"
    file.write_text("mine")
    result = adaexplore("explore", problem, "--device", "cpu", "--run", file / "run")
    assert result.code == 2
    assert f"{file} is no folder that you may write to" in result.err


def test_a_run_from_beginning_to_end(explore, adaexplore, tmp_path):
    result, path = explore("--steps", 3, "--seed", 4, "--set", "window=2", "--set", "confirm_top=1")
    assert result.code == 0, result
    assert {"run.db", "best.py", "report.html"} <= {entry.name for entry in path.iterdir()}
    for word in ("step   1/3", "step   3/3", "confirming", "3 of 3 steps"):
        assert word in result.out
    with read_run(path) as run:
        record, nodes, confirmed = run.store.run(), run.store.nodes(), run.store.confirmations()
    assert [node.evaluation.status for node in nodes] == ["passed"] * 3
    assert (record.seed, record.config.window, record.steps) == (4, 2, 3)
    found = record.environment
    assert all((found.cpu, found.torch, found.python, found.commit))
    assert "--seed 4 --steps 3 --set window=2" in record.command
    assert {one.evaluation.status for one in confirmed} == {"passed"}
    assert "class ModelNew(" in (path / "best.py").read_text()

    shown = adaexplore("show", path)
    assert shown.code == 0
    assert shown.out.count("passed") >= 3

    page = tmp_path / "elsewhere.html"
    reported = adaexplore("report", path, "-o", page)
    assert (reported.code, reported.out.strip()) == (0, str(page))
    assert "ModelNew" in page.read_text()

    longer = adaexplore("resume", path, "--steps", 4)
    assert longer.code == 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ForkServer, "start", lambda *_: pytest.fail("a worker server was started"))
        finished = adaexplore("resume", path)
    assert finished.code == 0
    assert "4 of 4 steps" in finished.out
    assert "step   4/4" in longer.out
    assert "step   3/" not in longer.out


@pytest.mark.slow
def test_an_interrupted_run_says_how_to_go_on_and_does(explore, adaexplore, proposer):
    proposer.interrupt_at = 2
    result, path = explore("--steps", 3, "--set", "confirm=false")
    assert result.code == 130
    assert "stopped after 1 of 3 steps; nothing recorded is lost" in result.out
    assert f"adaexplore resume {path}" in result.out
    assert (path / "report.html").exists()

    proposer.interrupt_at = None
    resumed = adaexplore("resume", path)
    assert resumed.code == 0
    with read_run(path) as run:
        assert run.store.node_count() == 3


@pytest.mark.slow
def test_several_steps_at_once(explore, adaexplore):
    result, path = explore("--steps", 5, "--parallel", 3, "--set", "confirm=false")
    assert result.code == 0, result
    assert "step   5/5" in result.out
    with read_run(path) as run:
        record, nodes, asks = run.store.run(), run.store.nodes(), run.store.asks()
    assert [node.evaluation.status for node in nodes] == ["passed"] * 5
    assert max(ask.ask.id - 1 - ask.ask.seen for ask in asks) == 2
    assert "--parallel 3" in record.command
    assert record.config.parallel == 3

    longer = adaexplore("resume", path, "--steps", 6, "--parallel", 1)
    assert longer.code == 0
    assert "step   6/6" in longer.out


@pytest.mark.parametrize("words", [("--parallel", 0), ("--parallel", 65)])
def test_a_number_at_once_that_makes_no_sense(explore, words):
    result, _ = explore(*words)
    assert result.code == 2
    assert "--parallel" in result.err


@pytest.mark.slow
def test_an_interruption_before_the_first_step_leaves_a_run_to_resume(
    explore, adaexplore, proposer
):
    proposer.interrupt_at = 1
    result, path = explore("--steps", 1)
    assert result.code == 130
    assert "stopped after 0 of 1 steps" in result.out
    proposer.interrupt_at = None
    assert adaexplore("resume", path).code == 0


NOT_A_NUMBER = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * float("nan")

def get_inputs():
    return [torch.ones(3)]
"""


def test_a_bad_reference_leaves_no_run(adaexplore, file, proposer, tmp_path):
    problem = file("nan.py", NOT_A_NUMBER)
    result = adaexplore("explore", problem, "--device", "cpu", "--run", tmp_path / "run")
    assert result.code == 2
    assert not (tmp_path / "run").exists()
