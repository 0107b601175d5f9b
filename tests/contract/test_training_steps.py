"""Problems with backward: a call is a training step, judged by the real judge."""

import textwrap

import pytest
import torch
from torch import nn

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Checks, Problem
from adaexplore.core.verdict.evaluation import Passed
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.problems.live import capture

SOURCE = textwrap.dedent(
    """
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(64))
            self.bias = nn.Parameter(torch.randn(64))
            self.unused = nn.Parameter(torch.randn(3))

        def forward(self, x, shift, index):
            normed = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
            return {"y": normed * self.weight + self.bias, "best": x.argmax(-1), "index": index + 1,
                    "above": (x > shift)}

    def get_inputs():
        return [torch.randn(48, 64), torch.rand(64), torch.randint(0, 9, (7,))]
    """
)
RIGHT = textwrap.dedent(
    """
    import torch
    from torch import nn

    class Norm(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, bias):
            scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
            ctx.save_for_backward(x, weight, scale)
            return x * scale * weight + bias

        @staticmethod
        def backward(ctx, grad):
            x, weight, scale = ctx.saved_tensors
            normed = x * scale
            inner = grad * weight
            mean = (inner * normed).mean(-1, keepdim=True)
            return (inner - normed * mean) * scale, (grad * normed).sum(0), grad.sum(0)

    class ModelNew(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(64))
            self.bias = nn.Parameter(torch.randn(64))
            self.kept = None

        def forward(self, x, shift, index):
            return {"y": Norm.apply(x, self.weight, self.bias), "best": x.argmax(-1),
                    "index": index + 1, "above": x > shift}
    """
)
GRADIENTS = "return (inner - normed * mean) * scale, (grad * normed).sum(0), grad.sum(0)\n"
LOOKED_UP = "= ctx.saved_tensors\n        grad = ctx.early"


DEVICES = ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)]


def example(source=SOURCE, device="cpu"):
    language = "cpp" if device == "cpu" else "triton"
    return Problem("example", source, language, device, checks=Checks(backward=True))


@pytest.fixture
def judge_of(server):
    made = []

    def judge_of(problem):
        made.append(
            LocalEvaluator(server, problem, timeout_s=60.0, memory_bytes=2 << 30, brief=True)
        )
        made[-1].prepare()
        return made[-1]

    yield judge_of
    for judge in made:
        judge.close()


@pytest.fixture(scope="module", params=DEVICES)
def judge(server, request):
    problem = example(device=request.param)
    evaluator = LocalEvaluator(server, problem, timeout_s=60.0, memory_bytes=4 << 30, brief=True)
    evaluator.prepare()
    yield evaluator
    evaluator.close()


def verdict(judge, old="", new="", source=RIGHT):
    assert old in source
    return judge.evaluate(Candidate(source.replace(old, new) if old else source, "cpp"))


def test_a_step_has_outputs_and_gradients_by_name(judge):
    facts = judge.prepare()
    assert [output.path for output in facts.outputs] == [
        'output.forward["above"]',
        'output.forward["best"]',
        'output.forward["index"]',
        'output.forward["y"]',
        'output.input_grads["x"]',
        'output.parameter_grads["bias"]',
        'output.parameter_grads["weight"]',
    ]
    assert "no gradient reaches shift, unused: none is asked for" in facts.notes


def test_a_right_backward_passes(judge):
    found = verdict(judge)
    assert isinstance(found, Passed)
    of_the_library = {"no-custom-kernel", "library:aten"}  # a profiler tells these on a GPU
    of_a_busy_machine = {"baselines-disturbed"}
    assert set(found.labels) <= of_the_library | of_a_busy_machine


def test_autograd_of_a_candidates_own_operations_passes(judge):
    plain = SOURCE.replace("class Model(", "class ModelNew(")
    assert isinstance(verdict(judge, source=plain), Passed)


def test_work_saved_in_forward_passes(judge):
    saves = RIGHT.replace("weight, scale)", "weight, scale, x * scale)").replace(
        "x, weight, scale = ctx.saved_tensors\n        normed = x * scale",
        "x, weight, scale, normed = ctx.saved_tensors",
    )
    assert isinstance(verdict(judge, source=saves), Passed)


@pytest.mark.parametrize(
    ("old", "new", "status", "reason"),
    [
        ("- normed * mean", "", "wrong_output", 'input_grads["x"] is off by'),
        ("(grad * normed).sum(0)", "grad.sum(0)", "wrong_output", 'parameter_grads["weight"]'),
        ("* scale, (grad", "* scale, 1.02 * (grad", "wrong_output", 'parameter_grads["weight"]'),
        (", grad.sum(0)", ", None", "runtime_error", "no gradient reaches bias"),
        ("grad.sum(0)\n", "grad.sum()\n", "runtime_error", "invalid gradient"),
        ("apply(x,", "apply(x.detach(),", "runtime_error", "no gradient reaches x"),
        ("self.bias)", "self.bias).detach()", "runtime_error", "torch.autograd.Function"),
        ("torch.ones(64))", "torch.ones(64), False)", "compile_error", "'weight' must require"),
        ("self.bias", "self.shift", "compile_error", "has no parameter 'bias'"),
    ],
)
def test_a_wrong_or_missing_gradient_is_refused(judge, old, new, status, reason):
    found = verdict(judge, old, new)
    assert (found.status, reason in found.reason) == (status, True), found.reason


def test_gradients_from_a_cache_are_wrong(judge):
    cached = GRADIENTS.replace("return", "kept = CACHE.setdefault(len(x), [")
    cached = cached.rstrip() + "])\n        return tuple(kept)\n"
    source = RIGHT.replace(GRADIENTS, cached).replace("class Norm", "CACHE = {}\n\nclass Norm")
    assert verdict(judge, source=source).status == "wrong_output"


def test_a_forward_that_is_computed_in_the_backward_pass_is_refused(judge):
    late = RIGHT.replace(
        "return x * scale * weight + bias",
        "ctx.bias, ctx.out = bias.detach(), torch.zeros_like(x)\n        return ctx.out",
    ).replace(
        "normed = x * scale\n",
        "normed = x * scale\n        ctx.out.copy_(normed * weight + ctx.bias)\n",
    )
    found = verdict(judge, source=late)
    assert 'backward changes output["y"]' in found.reason


def test_an_upstream_gradient_is_not_there_before_the_outputs_are(judge):
    looks = """
        import sys
        frame = sys._getframe()
        while "upstream" not in frame.f_locals:
            frame = frame.f_back
        ctx.early = frame.f_locals["upstream"][0] * 1.0
        scale ="""
    early = RIGHT.replace("\n        scale =", looks).replace("= ctx.saved_tensors", LOOKED_UP)
    found = verdict(judge, source=early)
    assert (found.status, "input_grads" in found.reason) == ("wrong_output", True)


@pytest.mark.parametrize("name", ["weight", "bias"])
def test_a_weight_that_was_folded_goes_stale_in_training(judge, name):
    folded = RIGHT.replace("self.kept = None", f"self.kept = self.{name}.detach().clone()")
    stale = f"self.{name} + (self.kept - self.{name}).detach()"
    call = "Norm.apply(x, self.weight, self.bias)"
    found = verdict(judge, call, call.replace(f"self.{name}", stale), source=folded)
    assert found.status == "wrong_output"
    assert "after weights were changed in place" in found.feedback.inputs


def test_uses_of_a_training_step_hold(judge):
    whole = RIGHT.replace("self.kept = None", "self.unused = nn.Parameter(torch.randn(3))")
    uses = judge.try_uses(Candidate(whole, "cpp"))
    assert {use.outcome for use in uses} == {"holds"}
    assert "gradients" not in {use.name for use in uses}  # every verdict is about them


def test_a_live_module_is_judged_with_its_gradients_and_trains_afterwards(judge_of, tmp_path):
    torch.manual_seed(0)
    module, x = nn.Sequential(nn.Linear(16, 8), nn.LayerNorm(8)), torch.randn(4, 16)
    captured = capture(module, (x,), folder=tmp_path, checks=Checks(backward=True))
    right = captured.problem.source.replace("class Model(", "class ModelNew(")
    judge = judge_of(captured.problem)
    assert isinstance(verdict(judge, source=right), Passed)
    detached = verdict(judge, "return layer_norm", "return layer_norm.detach()", source=right)
    assert "output has no gradient" in detached.reason
    winner = captured.optimized(right, tmp_path)
    for model in (module, winner):
        model(x).pow(3).sum().backward()
    grads = [[p.grad for p in model.parameters()] for model in (module, winner)]
    torch.testing.assert_close(*grads)


def test_a_reference_without_a_backward_pass_is_refused(judge_of):
    source = SOURCE.replace("normed * self.weight + self.bias", "x.argmin(-1)")
    with pytest.raises(BadProblemError, match=r"example.py: the backward pass .* has a gradient"):
        judge_of(example(source))


def test_half_precision_and_a_scalar_loss(judge_of):
    source = textwrap.dedent(
        """
        import torch
        from torch import nn

        class Model(nn.Module):
            def forward(self, logits, target):
                return nn.functional.cross_entropy(logits.float(), target)

        def get_inputs():
            return [torch.randn(64, 128).bfloat16(), torch.randint(0, 128, (64,))]
        """
    )
    judge = judge_of(example(source))
    plain = source.replace("class Model(", "class ModelNew(")
    assert isinstance(verdict(judge, source=plain), Passed)
    ignores_upstream = plain.replace(
        "nn.functional.cross_entropy(logits.float(), target)", "Loss.apply(logits, target)"
    ) + textwrap.dedent(
        """
        class Loss(torch.autograd.Function):
            @staticmethod
            def forward(ctx, logits, target):
                ctx.save_for_backward(logits, target)
                return nn.functional.cross_entropy(logits.float(), target)

            @staticmethod
            def backward(ctx, grad):
                logits, target = ctx.saved_tensors
                found = torch.softmax(logits.float(), -1)
                found[torch.arange(len(target)), target] -= 1.0
                return (found / len(target)).bfloat16(), None
        """
    )
    found = verdict(judge, source=ignores_upstream)
    assert (found.status, "input_grads" in found.reason) == ("wrong_output", True)
    scaled = ignores_upstream.replace("len(target)).bf", "len(target) * grad).bf")
    assert isinstance(verdict(judge, source=scaled), Passed)
