"""Triton kernels with a backward pass of their own, judged without a GPU."""

from pathlib import Path

import pytest

from adaexplore.core.verdict.evaluation import Estimate, Passed

FOLDER = Path(__file__).parents[4] / "examples" / "training"
FILES = sorted(FOLDER.glob("*.py"))


def sources(name):
    return [(FOLDER / part / f"{name}.py").read_text() for part in ("", "kernels")]


@pytest.mark.parametrize(
    "name",
    [pytest.param(file.stem, marks=pytest.mark.slow) for file in FILES],
)
def test_an_example_is_right_and_compiles(judge, name):
    verdict = judge(*sources(name), precision="half", backward=True)
    assert isinstance(verdict, Passed), verdict
    assert verdict.labels == ()
    assert isinstance(verdict.timing, Estimate)


@pytest.fixture
def small():
    """A problem that Triton's interpreter runs soon, and its kernel."""
    problem, kernel = sources("rmsnorm_residual")
    assert "tokens = 8192\nhidden = 4096" in problem
    return problem.replace("tokens = 8192\nhidden = 4096", "tokens = 32\nhidden = 256"), kernel


def test_a_wrong_backward_kernel_is_refused(judge, small):
    problem, kernel = small
    wrong = kernel.replace("(inner - normed * (product * scale)) * scale", "inner * scale")
    assert wrong != kernel
    verdict = judge(problem, wrong, precision="half", backward=True)
    assert verdict.status == "wrong_output"
    assert "input_grads" in verdict.reason


def test_a_kernel_without_a_backward_pass_is_told_what_it_lacks(judge, small):
    problem, kernel = small
    bare = kernel.replace("class Norm(torch.autograd.Function)", "class Norm").replace(
        "Norm.apply(x,", "Norm.forward(Bag(), x,"
    )
    bare += "\n\nclass Bag:\n    def save_for_backward(self, *_):\n        pass\n"
    verdict = judge(problem, bare, precision="half", backward=True)
    assert verdict.status == "runtime_error"
    assert "output[0] has no gradient" in verdict.reason
    assert "torch.autograd.Function" in verdict.reason
