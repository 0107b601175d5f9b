"""model: a whole model from a script."""

import json
import sys

import pytest
from test_search_commands import Renaming

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadInputError
from adaexplore.core.proposal import Proposal
from adaexplore.run.session import Session
from adaexplore.store import read_run

SCRIPT = """
import torch
from torch import nn
from beside import WIDTH

def make():
    torch.manual_seed(0)
    block = lambda: nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU())
    model = nn.Sequential(block(), block()).eval()
    return model, {"wide": (torch.rand(64, WIDTH),)}

def nothing():
    return 3

def broken():
    raise RuntimeError("no weights")

def ending():
    raise SystemExit(3)

def huge():
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9.00 TiB")
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it may change within a second
    (tmp_path / "beside.py").write_text("WIDTH = 48\n")
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    return file


def test_the_ranking_comes_before_anything_is_spent(adaexplore, script, tmp_path):
    run = tmp_path / "run"
    result = adaexplore("model", f"{script}:make", "--rank", "--run", run)
    assert result.code == 0, result.err
    assert "Sequential on cpu, fp32: wide" in result.out
    assert "all of them at their roofline" in result.out
    ranking = json.loads((run / "ranking.json").read_text())
    group = ranking["groups"][0]
    assert group["paths"] == ["0", "1"]
    assert (run / "modules" / group["name"] / "problem.py").is_file()
    page = (run / "index.html").read_text()
    assert "Modules by what kernels can save" in page
    assert f"<td>{group['name']}</td>" in page


@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ("script.py", "write FILE.py:FUNCTION"),
        ("missing.py:make", "no such file"),
        ("script.py:other", "defines no function other"),
        ("script.py:nothing", "returned a int; return (model, calls)"),
        ("script.py:broken", "raised RuntimeError: no weights"),
        ("script.py:ending", "raised SystemExit: 3"),
        ("script.py:huge", " GiB in all)"),
    ],
)
def test_a_script_without_a_model(adaexplore, script, place, complaint):
    result = adaexplore("model", str(script.parent / place), "--rank")
    assert result.code == 2
    assert complaint in result.err
    assert len(result.err.strip().splitlines()) == 1


def test_prompts_that_wait_are_followed_by_the_command_that_goes_on(adaexplore, script, tmp_path):
    run = tmp_path / "run"
    result = adaexplore(
        "model", f"{script}:make", "--proposer", "manual", "--steps", 1, "--run", run
    )
    assert result.code == 0, result.err
    [command] = [line.strip() for line in result.out.splitlines() if "  adaexplore " in line]
    assert command.startswith(f"adaexplore model {script}:make ")
    assert command.endswith(f" --run {run}")


class Copying(Renaming):
    """Proposes the module itself under the candidate's name."""

    def begin(self, context):
        yield from ()
        source = context.problem.source.replace("class Model(", "class ModelNew(")
        assert source != context.problem.source
        return Proposal(Candidate(source, "cpp"), "renaming", "the same")


@pytest.fixture(params=["renamed", pytest.param("compiled", marks=pytest.mark.slow)])
def proposer(request, monkeypatch):
    """Compiling takes most of a minute on a slow machine: here it leaves the model as it is."""
    if request.param == "renamed":
        monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
        monkeypatch.setattr(Session, "compiler", lambda *_: Copying())


@pytest.mark.usefixtures("proposer")
def test_a_model_is_searched_and_given_its_winners(adaexplore, script, tmp_path):
    run = tmp_path / "run"
    result = adaexplore(
        "model", f"{script}:make", "--steps", 1, "--set", "confirm=false", "--run", run
    )
    assert result.code == 0, result.err
    outcome = json.loads((run / "outcome.json").read_text())
    [replacement] = outcome["replacements"]
    assert replacement["modules"] == 2
    assert outcome["calls"][0]["before_us"].keys() == {"eager", "compile"}
    assert outcome["speedup"]["low"] >= 1 or replacement["reason"]
    assert "over the strongest way" in result.out or "it is as it was" in result.out
    assert "<h2>Result</h2>" in (run / "index.html").read_text()

    run = run.rename(tmp_path / "moved")
    for file in run.glob("modules/*/*.pt"):
        file.unlink()
    more = ("--steps", 2, "--set", "confirm=false", "--run", run)
    assert adaexplore("model", f"{script}:make", *more).code == 0
    with read_run(run / "search" / replacement["name"]) as searched:
        assert [node.evaluation.status for node in searched.store.nodes()] == ["passed", "passed"]

    from adaexplore import optimize_model
    from adaexplore.run.model.script import made_by

    again = optimize_model(*made_by(f"{script}:make"), run=run)  # all steps are made
    assert again.ranking.groups[0].name == replacement["name"]
    assert again.speedup >= 1
    with pytest.raises(BadInputError, match="CUDA graphs need a GPU"):
        again.capture()
    with pytest.raises(BadInputError, match=r"give the name of a call \(.*\), not 'other'"):
        again.capture("other")
    again.undo()
    assert not any("forward" in vars(module) for module in again.model.modules())


def test_a_run_goes_on_with_its_own_model_alone(adaexplore, script, tmp_path):
    run = tmp_path / "run"
    adaexplore("model", f"{script}:make", "--rank", "--run", run)
    tensors = {file: file.read_bytes() for file in run.glob("modules/*/*.pt")}
    for file in tensors:
        file.unlink()  # a run that was moved without them
    again = adaexplore("model", f"{script}:make", "--rank", "--run", run)
    assert again.code == 0, again.err  # the ranking of before
    assert tensors
    assert all(file.read_bytes() == there for file, there in tensors.items())
    next(iter(tensors)).unlink()
    script.write_text(SCRIPT.replace("torch.manual_seed(0)", "torch.manual_seed(1)"))
    other = adaexplore("model", f"{script}:make", "--rank", "--run", run)
    assert other.code == 2
    assert "is missing, and the script makes other tensors here" in other.err
    script.write_text(SCRIPT.replace("nn.GELU()", "nn.SiLU()"))
    complaint = adaexplore("model", f"{script}:make", "--rank", "--run", run).complaint
    assert "was begun with another model: Sequential differs; name another --run" in complaint


def test_a_run_that_goes_on_refuses_what_it_cannot_change(adaexplore, script, tmp_path):
    run = tmp_path / "run"
    ask = ("model", f"{script}:make", "--proposer", "manual", "--run", run)
    adaexplore("model", f"{script}:make", "--rank", "--run", run)
    complaint = adaexplore(*ask, "--rank", "--precision", "half").complaint
    assert f"--precision: {run} was begun with fp32" in complaint
    adaexplore(*ask, "--steps", 1)
    complaint = adaexplore(*ask, "--seed", 7).complaint
    assert f"--seed: {run} goes on as it began, with 0; it may change --allocation" in complaint
    assert adaexplore(*ask, "--steps", 2, "--seed", 0).code == 0


def test_options_that_are_the_models_own(adaexplore, script):
    complaint = adaexplore("model", f"{script}:make", "--set", "mode=eval").complaint
    assert "mode is the model's own" in complaint
