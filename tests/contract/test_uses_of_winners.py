"""The uses of a winner outside the judge: each is tried, and each kind of failure is named."""

import textwrap

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation import Passed
from adaexplore.core.verdict.uses import Use
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator

HEADER = """
import torch
from torch import nn
"""
LAYERS = """
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(48, 32)
"""
REFERENCE = (
    HEADER
    + "\nclass Model(nn.Module):"
    + LAYERS
    + """
    def forward(self, x):
        return torch.tanh(self.linear(x))

def get_inputs():
    return [torch.randn(16, 48)]
"""
)
ALWAYS = {
    "load_state_dict",
    "copy.deepcopy",
    "pickle",
    "torch.save",
    "two instances",
    "weights changed in place",
    "inputs of any layout",
    "gradients",
    "other batch sizes",
}
ON_A_GPU = {"built on the CPU, then moved", "another stream"}
DEVICES = ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)]


@pytest.fixture(scope="module", params=DEVICES)
def judge(request, server):
    language = "cpp" if request.param == "cpu" else "triton"
    evaluator = LocalEvaluator(
        server,
        Problem("example", REFERENCE, language, request.param),
        timeout_s=60.0,
        memory_bytes=4 << 30,
        brief=True,
    )
    evaluator.prepare()
    yield evaluator
    evaluator.close()


@pytest.fixture
def on_a_gpu(judge):
    return judge._environment != {}


def candidate(forward: str, *, init: str = "", before: str = "", after: str = "") -> Candidate:
    """A candidate for `REFERENCE`, with more statements in its constructor and its class."""
    blocks = [
        HEADER,
        textwrap.dedent(before),
        "class ModelNew(nn.Module):",
        LAYERS.rstrip(),
        textwrap.indent(textwrap.dedent(init), " " * 8),
        "    def forward(self, x):",
        textwrap.indent(textwrap.dedent(forward), " " * 8),
        textwrap.indent(textwrap.dedent(after), " " * 4),
    ]
    return Candidate("\n".join(blocks), "cpp")


def outcomes(uses) -> dict[str, str]:
    return {use.name: use.outcome for use in uses}


def failing(uses) -> dict[str, Use]:
    return {use.name: use for use in uses if use.outcome != "holds"}


PLAIN = candidate("return torch.tanh(self.linear(x))")


def test_a_constructor_that_sets_flags_spoils_no_other_instance(judge):
    sets = "torch.set_default_dtype(torch.float64)"
    uses = judge.try_uses(candidate("return torch.tanh(self.linear(x))", init=sets))
    assert not failing(uses)


def test_a_plain_module_holds_in_every_use(judge, on_a_gpu):
    assert outcomes(judge.try_uses(PLAIN)) == dict.fromkeys(
        ALWAYS | (ON_A_GPU if on_a_gpu else set()), "holds"
    )


def test_trials_change_no_later_verdict(judge):
    judge.try_uses(candidate("return torch.tanh(self.linear(x.zero_()))"))
    assert isinstance(judge.evaluate(PLAIN), Passed)


@pytest.mark.parametrize("device", DEVICES)
def test_what_has_no_gradient_is_asked_for_none(server, device):
    source = """
        import torch
        from torch import nn

        class Model(nn.Module):
            def forward(self, shift, x, index):
                return x[index] * 3 + (shift > 0)

        def get_inputs():
            return [torch.rand(4), torch.randn(7, 4), torch.arange(7)]
    """
    language = "cpp" if device == "cpu" else "triton"
    problem = Problem("three", textwrap.dedent(source), language, device)
    judge = LocalEvaluator(server, problem, timeout_s=60.0, memory_bytes=4 << 30, brief=True)
    right = problem.source.replace("Model(", "ModelNew(")
    try:
        judge.prepare()
        assert outcomes(judge.try_uses(Candidate(right, "cpp")))["gradients"] == "holds"
        detached = Candidate(right.replace("x[index]", "x.detach()[index]"), "cpp")
        use = failing(judge.try_uses(detached))["gradients"]
        assert (use.outcome, use.detail.split(":")[0]) == ("detached", "of inputs")
    finally:
        judge.close()


class TestSilentlyWrong:
    def test_constants_folded_in_the_constructor_go_stale(self, judge):
        folded = candidate(
            "return torch.tanh(x @ self.packed + self.linear.bias)",
            init="self.packed = self.linear.weight.detach().t().contiguous()",
        )
        found = failing(judge.try_uses(folded))
        assert found["load_state_dict"].outcome == "wrong"
        assert "off by" in found["load_state_dict"].detail
        assert found["torch.save"].outcome == "wrong"
        assert found["torch.save"].detail.startswith("its state dict in another instance: ")
        assert found["weights changed in place"].outcome == "wrong"
        assert found.keys() <= {
            "load_state_dict",
            "torch.save",
            "weights changed in place",
            "gradients",
            "built on the CPU, then moved",
        }

    def test_a_guard_by_version_misses_changes_through_data(self, judge):
        guarded = candidate("""
            version = (self.linear.weight._version, self.linear.weight.data_ptr())
            if getattr(self, "seen", None) != version:
                self.seen, self.packed = version, self.linear.weight.detach().t().contiguous()
            return torch.tanh(x @ self.packed + self.linear.bias)
        """)
        found = failing(judge.try_uses(guarded))
        use = found["weights changed in place"]
        assert (use.outcome, use.detail.split(":")[0]) == ("wrong", "through .data")
        assert "load_state_dict" not in found

    def test_a_cache_of_the_whole_module_mixes_instances(self, judge):
        shared = candidate(
            """
            if "weight" not in CACHE:
                CACHE["weight"] = self.linear.weight.clone()
            return torch.tanh(x @ CACHE["weight"].t() + self.linear.bias)
            """,
            init="CACHE.clear()",
            before="CACHE = {}",
        )
        assert outcomes(judge.try_uses(shared))["two instances"] == "wrong"

    def test_inputs_read_as_if_they_were_dense(self, judge):
        dense = candidate("""
            x = x.as_strided((x.shape[0], 48), (48, 1))
            return torch.tanh(self.linear(x))
        """)
        assert outcomes(judge.try_uses(dense))["inputs of any layout"] == "wrong"

    def test_rows_beyond_the_problem_s_batch_left_out(self, judge):
        fixed = candidate("""
            out = torch.zeros(x.shape[0], 32, device=x.device)
            out[:16] = torch.tanh(self.linear(x[:16]))
            return out
        """)
        use = failing(judge.try_uses(fixed))["other batch sizes"]
        assert (use.outcome, use.detail.split(":")[0]) == ("wrong", "larger")

    def test_an_output_of_the_problem_s_batch_size(self, judge):
        fixed = candidate("""
            out = torch.zeros(16, 32, device=x.device)
            count = min(16, x.shape[0])
            out[:count] = torch.tanh(self.linear(x[:count]))
            return out
        """)
        use = failing(judge.try_uses(fixed))["other batch sizes"]
        assert use.outcome == "wrong"
        assert "shape" in use.detail

    def test_wrong_gradients(self, judge):
        doubled = candidate(
            "return Tanh.apply(self.linear(x))",
            before="""
            class Tanh(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.save_for_backward(x)
                    return torch.tanh(x)

                @staticmethod
                def backward(ctx, gradient):
                    return 2 * gradient
            """,
        )
        use = failing(judge.try_uses(doubled))["gradients"]
        assert use.outcome == "wrong"
        assert "the gradient of linear.weight is off by" in use.detail

    @pytest.mark.gpu
    def test_constants_that_stay_on_the_cpu_s_values(self, judge, on_a_gpu):
        if not on_a_gpu:
            pytest.skip("nothing is moved")
        left = candidate(
            "return torch.tanh(self.linear(x) * self.one)", init="self.one = torch.ones(32)"
        )
        assert outcomes(judge.try_uses(left))["built on the CPU, then moved"] == "refuses"

    @pytest.mark.gpu
    def test_work_on_the_default_stream(self, judge, on_a_gpu):
        if not on_a_gpu:
            pytest.skip("there are no streams")
        elsewhere = candidate("""
            with torch.cuda.stream(torch.cuda.default_stream()):
                return torch.tanh(self.linear(x))
        """)
        assert outcomes(judge.try_uses(elsewhere))["another stream"] == "wrong"


class TestDetached:
    def test_outputs_without_a_graph(self, judge):
        bare = candidate("""
            with torch.no_grad():
                return torch.tanh(self.linear(x))
        """)
        use = failing(judge.try_uses(bare))["gradients"]
        assert use.outcome == "detached"
        assert "no gradient, and no exception says so" in use.detail

    def test_a_weight_without_a_gradient(self, judge):
        partly = candidate(
            "return torch.tanh(x @ self.linear.weight.detach().t() + self.linear.bias)"
        )
        use = failing(judge.try_uses(partly))["gradients"]
        assert (use.outcome, use.detail) == (
            "detached",
            "of weights: the gradient of linear.weight is None",
        )

    def test_weights_that_say_they_are_frozen_are_asked_for_none(self, judge):
        frozen = candidate(
            """
            if torch.is_grad_enabled() and x.requires_grad:
                raise RuntimeError("for inference: call it under torch.no_grad()")
            with torch.no_grad():
                return torch.tanh(self.linear(x))
            """,
            init="self.requires_grad_(False)",
        )
        use = failing(judge.try_uses(frozen))["gradients"]
        assert use.outcome == "refuses"
        assert use.detail == "of inputs: RuntimeError: for inference: call it under torch.no_grad()"


class TestRefuses:
    def test_a_state_dict_with_other_names(self, judge):
        renamed = candidate(
            "return torch.tanh(x @ self.packed + self.bias)",
            init="""
            self.register_buffer("packed", self.linear.weight.detach().t().contiguous())
            self.register_buffer("bias", self.linear.bias.detach().clone())
            del self.linear
            """,
        )
        found = failing(judge.try_uses(renamed))
        assert found["load_state_dict"].outcome == "refuses"
        assert found["load_state_dict"].detail.startswith("RuntimeError: ")
        assert "\n" not in found["load_state_dict"].detail
        assert "weights changed in place" not in outcomes(judge.try_uses(renamed))

    def test_an_attribute_that_cannot_be_copied(self, judge):
        held = candidate(
            "return torch.tanh(self.linear(x))",
            init="import threading\nself.lock = threading.Lock()",
        )
        found = failing(judge.try_uses(held))
        assert {found[name].outcome for name in ("copy.deepcopy", "pickle", "torch.save")} == {
            "refuses"
        }

    def test_another_batch_size_by_one_line(self, judge):
        strict = candidate("""
            if x.shape[0] != 16:
                raise ValueError("x has to have 16 rows")
            return torch.tanh(self.linear(x))
        """)
        assert failing(judge.try_uses(strict)) == {
            "other batch sizes": Use(
                "other batch sizes", "refuses", "larger: ValueError: x has to have 16 rows"
            )
        }


class TestLostProcess:
    def test_a_crash_is_named_and_the_other_uses_are_tried(self, judge):
        crashing = candidate(
            "return torch.tanh(self.linear(x))",
            after="""
            def __deepcopy__(self, memo):
                import ctypes
                return ctypes.string_at(0)
            """,
        )
        found = failing(judge.try_uses(crashing))
        assert found.keys() == {"copy.deepcopy"}
        assert found["copy.deepcopy"].outcome == "crashes"
        assert "SIGSEGV" in found["copy.deepcopy"].detail

    @pytest.mark.gpu
    def test_a_fault_of_the_gpu_is_a_crash(self, judge, on_a_gpu):
        if not on_a_gpu:
            pytest.skip("there is no GPU to fault")
        faulty = candidate(
            "return torch.tanh(self.linear(x))",
            after="""
            def __deepcopy__(self, memo):
                table = torch.zeros(4, device="cuda")
                table[torch.full((4,), 9, device="cuda")].sum().item()
            """,
        )
        found = failing(judge.try_uses(faulty))
        assert found.keys() == {"copy.deepcopy"}
        assert found["copy.deepcopy"].outcome == "crashes"

    @pytest.mark.slow
    def test_a_hang_is_named(self, judge):
        hanging = candidate(
            "return torch.tanh(self.linear(x))",
            after="""
            def __deepcopy__(self, memo):
                while True:
                    pass
            """,
        )
        assert failing(judge.try_uses(hanging)) == {
            "copy.deepcopy": Use("copy.deepcopy", "hangs", "it does not end")
        }
