"""What users do with winners of the compiler proposer on a GPU: right, or one clear error."""

from __future__ import annotations

import copy
from pathlib import Path
from types import ModuleType

import pytest
import torch
from test_compiler_proposer import ATTENTION, CONV, load, propose

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Problem
from adaexplore.core.settings.config import Config
from adaexplore.problems.live import capture
from adaexplore.propose.compiler.families import Family
from adaexplore.run.session import open_session

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]
FOLD = Family("fold", {"fold": True})
second_gpu = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs a second GPU")


def problem(name: str, source: str) -> Problem:
    return Problem(name, source, "triton", "cuda:0", mode="eval")


def written(name: str, source: str, family: Family) -> str:
    reply = propose(problem(name, source), family)
    assert "failure" not in reply, reply["failure"]
    return str(reply["source"])


@pytest.mark.parametrize(
    ("name", "source", "family"),
    [("conv", CONV, FOLD), ("attention", ATTENTION, Family("default"))],
)
def test_every_use_holds_or_is_refused(name: str, source: str, family: Family) -> None:
    candidate = Candidate(written(name, source, family), "triton")
    with open_session(problem(name, source), Config()) as session:
        session.evaluator.prepare()
        uses = {use.name: use for use in session.evaluator.try_uses(candidate)}
    refused = {name for name, use in uses.items() if use.outcome == "refuses"}
    assert refused == {"gradients"}, uses
    assert {use.outcome for use in uses.values()} == {"holds", "refuses"}, uses
    assert uses.keys() >= {"built on the CPU, then moved", "another stream"}


@pytest.mark.usefixtures("shared_gpu")
class TestDevices:
    @pytest.fixture(scope="module")
    def module(self, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
        source = written("conv", CONV, FOLD)
        return load(source, tmp_path_factory.mktemp("winner"), "candidate")

    @torch.no_grad()
    def test_construction_on_the_cpu_then_a_move(self, module: ModuleType) -> None:
        moved = module.ModelNew().eval().to("cuda")
        x = torch.randn(4, 16, 32, 32, device="cuda")
        expected = moved(x)
        torch.testing.assert_close(copy.deepcopy(moved)(x), expected)

    @torch.no_grad()
    def test_weights_left_on_the_cpu_are_refused(self, module: ModuleType) -> None:
        left = module.ModelNew().eval()
        with pytest.raises(ValueError, match=r"'cpu'\); this module is specialised to"):
            left(torch.randn(4, 16, 32, 32, device="cuda"))

    @second_gpu
    @torch.no_grad()
    def test_a_second_gpu_is_left_to_pytorch(self, module: ModuleType) -> None:
        other = module.ModelNew().eval().to("cuda:1")
        x = torch.randn(4, 16, 32, 32, device="cuda:1")
        assert torch.equal(other(x), other._reference_forward(x))
        with pytest.raises(ValueError, match="specialised to"):
            other(torch.randn(4, 16, 32, 32, device="cuda:0"))


@second_gpu
def test_an_optimized_module_refuses_a_second_gpu(tmp_path: Path) -> None:
    module = torch.nn.Linear(8, 4).cuda()
    captured = capture(module, [torch.randn(3, 8, device="cuda")], folder=tmp_path)
    source = captured.problem.source.replace("class Model(", "class ModelNew(")
    fast = captured.optimized(source, tmp_path)
    fast(torch.randn(3, 8, device="cuda"))
    with pytest.raises(ValueError, match="not of 3x8 float32 on cuda:1"):
        fast(torch.randn(3, 8, device="cuda:1"))
    with pytest.raises(ValueError, match="was moved or cast"):
        fast.to("cuda:1")(torch.randn(3, 8, device="cuda:0"))
