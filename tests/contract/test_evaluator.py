"""What `adaexplore.core.protocols.evaluator.Evaluator` promises, run on every implementation.

Candidates are pure PyTorch, so that the same ones run on any device and nothing needs compiling. A
new implementation joins by adding its name to `IMPLEMENTATIONS`.
"""

import textwrap
import time
from contextlib import closing
from dataclasses import dataclass, field, replace

import pytest
import torch

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadProblemError, InfrastructureError
from adaexplore.core.problem import Checks, Problem
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Passed
from adaexplore.core.verdict.facts import OutputForm
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.languages.fingerprint import fingerprint
from adaexplore.run.cluster.connection import Cluster
from adaexplore.run.cluster.device import JudgingOrder
from adaexplore.run.cluster.evaluator import ClusterEvaluator
from adaexplore.run.cluster.fleet import Fleet
from fast_set import of_which_fast

TIMEOUT_S = 20.0
SHORT_S = {"cpu": 6.0, "cuda:0": 12.0}  # a process that begins to use a GPU takes seconds
MEMORY_BYTES = 4 << 30

IMPLEMENTATIONS = [
    pytest.param(("cpu", None), id="local-cpu"),
    pytest.param(("cuda:0", None), id="local-cuda", marks=pytest.mark.gpu),
    pytest.param(("cpu", "sm_90"), id="offline-sm_90", marks=pytest.mark.slow),
    pytest.param(("cpu", None, "ray"), id="ray-cpu", marks=pytest.mark.slow),
]


class InTriton(OfflineEvaluator):
    """Takes every candidate for one in Triton: without a GPU, C++ is not run for a target."""

    def evaluate(self, candidate, *args, **kwargs):
        return super().evaluate(replace(candidate, language="triton"), *args, **kwargs)


@dataclass
class Maker:
    """Makes evaluators of one implementation, prepared, one for each problem and its options.

    An evaluator with a target works without its GPU: it estimates and measures nothing. Evaluators
    are brief, which leaves out all baselines but eager, unless `whole` is true.
    """

    server: object
    device: str
    target: str | None
    fleet: Fleet | None = None
    made: dict = field(default_factory=dict)

    def __call__(self, source, *, timeout_s=TIMEOUT_S, **options):
        key = (source, timeout_s, tuple(sorted(options.items())))
        if key not in self.made:
            evaluator = self.unprepared(source, timeout_s=timeout_s, **options)
            evaluator.prepare()
            self.made[key] = evaluator
        return self.made[key]

    def unprepared(self, source, *, timeout_s=TIMEOUT_S, whole=False, **options):
        language = "cpp" if self.device == "cpu" and not self.target else "triton"
        options["target"] = self.target
        given = {k: options.pop(k) for k in ("precision", "require_custom") if k in options}
        checks = Checks(**given)
        problem = Problem(
            "example", textwrap.dedent(source), language, self.device, checks=checks, **options
        )
        if self.fleet:
            order = JudgingOrder(problem.to_json(), timeout_s, MEMORY_BYTES, brief=not whole)
            return ClusterEvaluator(self.fleet, order)
        kind = InTriton if self.target else LocalEvaluator
        return kind(
            self.server,
            problem,
            timeout_s=timeout_s,
            memory_bytes=MEMORY_BYTES,
            brief=not whole,
        )

    def close(self):
        for evaluator in self.made.values():
            evaluator.close()


@pytest.fixture(scope="session", params=IMPLEMENTATIONS)
def evaluator_of(request, server):
    device, target, *on = request.param
    if not on:
        maker = Maker(server, device, target)
        yield maker
        maker.close()
        return
    cluster = request.getfixturevalue("ray_cluster")
    cluster.add()
    first = JudgingOrder(
        Problem("example", LINEAR, "cpp", device).to_json(), TIMEOUT_S, MEMORY_BYTES
    )
    config = Config(ray=cluster.address)
    with closing(Fleet(Cluster(config, first), config.ray_patience_s)) as fleet:
        fleet.want(1)
        yield Maker(server, device, target, fleet)


HEADER = """
import torch
from torch import nn
import torch.nn.functional as F
"""
LINEAR = (
    HEADER
    + """
class Model(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(64, 128)]

def get_init_inputs():
    return [128, 96]
"""
)
PACKING = (
    HEADER
    + """
class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear, self.packed_of = nn.Linear(n_in, n_out), None

    def forward(self, x):
        weight = self.linear.weight
        if self.packed_of != (weight.data_ptr(), weight._version):
            self.packed_of = weight.data_ptr(), weight._version
            self.packed = weight.detach().t().contiguous()
        for _ in range(8):
            out = torch.relu(x @ self.packed + self.linear.bias)
        return out
"""
)
TABLE = (
    HEADER
    + """
class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear, self.table, self.table_of = nn.Linear(n_in, n_out), None, 0

    def forward(self, x):
        weight = self.linear.weight
        if self.table_of != weight.data_ptr():
            self.table_of = weight.data_ptr()
            self.table = torch.tensor([1, 2, 3]).to(x.device)
        for _ in range(8):
            out = torch.relu(self.linear(x)) + self.table[:1] - 1
        return out
"""
)
CONVOLUTION = (
    HEADER
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3)

    def forward(self, x):
        return torch.relu(self.conv(x))

def get_inputs():
    return [torch.randn(2, 4, 16, 16)]
"""
)
BUILD = """
class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
"""


def are_strongest(beside, first_us) -> bool:
    """Return whether these baselines are the fastest, and the second if it is nearly as fast."""
    fastest, second = sorted(first_us.values())[:2]
    slowest = max(first_us[name] for name in beside)
    return len(beside) == (2 if second <= 2 * fastest else 1) and slowest <= 2 * fastest


def linear(body: str, before: str = "") -> Candidate:
    """A candidate for `LINEAR` whose forward has that body."""
    forward = "\n    def forward(self, x):\n" + textwrap.indent(textwrap.dedent(body), " " * 8)
    return Candidate(HEADER + textwrap.dedent(before) + BUILD + forward, "cpp")


# Slower than the reference on purpose: the measurement of a hopeless candidate ends early.
GOOD = linear("""
    for _ in range(8):
        out = torch.relu(self.linear(x))
    return out
""")


STRICT = linear("""
    for _ in range(8):  # no product, which a GPU would compute in TF32
        out = (x.double()[:, None] * self.linear.weight.double()).sum(2) + self.linear.bias
    return torch.relu(out).float()
""")


def check_good(judge):
    verdict = judge.evaluate(GOOD)
    assert (verdict.status, getattr(verdict, "reason", "")) == ("passed", "")


@pytest.fixture
def measures(evaluator_of):
    if evaluator_of.target:
        pytest.skip("nothing is measured without a GPU")


@pytest.fixture
def judge(evaluator_of):
    return evaluator_of(LINEAR)


@pytest.fixture
def hasty_judge(evaluator_of):
    return evaluator_of(LINEAR, timeout_s=SHORT_S[evaluator_of.device])


class TestFacts:
    def test_they_describe_the_reference(self, judge):
        facts = judge.prepare()
        assert facts.precision == "fp32"
        assert facts.parameters == 128 * 96 + 96
        assert facts.outputs == (OutputForm("output", (64, 96), "float32"),)
        assert {"own-0", "own-1", "own-2", "normal", "sparse"} <= set(facts.input_sets)
        assert 0 < facts.errors["fp32"] < 1e-5
        assert 0 < facts.bounds["own-0"] < facts.bounds["normal"]

    def test_they_hold_the_baselines_times_and_the_layers(self, judge, measures):
        facts = judge.prepare()
        assert facts.baselines_us["eager"] > 0
        assert facts.layers == 1

    def test_asking_twice_gives_the_same(self, judge):
        assert judge.prepare() == judge.prepare()


class TestFeedback:
    """What a failing or passing candidate is told, as data."""

    def test_a_profile_says_where_the_time_goes(self, judge, measures):
        verdict = judge.evaluate(GOOD)
        assert isinstance(verdict, Passed)
        assert verdict.profile is not None, verdict.detail
        assert verdict.profile.device_us > 0
        assert any(use.origin != "custom" for use in verdict.profile.kernels)
        times = [use.time_us for use in verdict.profile.kernels]
        assert times == sorted(times, reverse=True)

    @pytest.mark.slow
    def test_a_roofline_is_held_against_the_problem_s_own_work(self, judge, measures):
        verdict = judge.evaluate(GOOD)
        facts = judge.prepare().roofline
        assert facts.bytes == 4 * (64 * 128 + 128 * 96 + 96 + 64 * 96)
        assert facts.flops == 2 * 64 * 128 * 96
        assert verdict.roofline.floor_us == facts.floor_us > 0
        assert verdict.roofline.share == pytest.approx(facts.floor_us / verdict.timing.time_us)

    def test_an_exception_names_its_line(self, judge):
        candidate = linear("y = self.linear(x)\nreturn y.no_such_thing()")
        fault = judge.evaluate(candidate).feedback
        assert (fault.type, fault.frame) == ("AttributeError", "forward")
        assert fault.source_line == "return y.no_such_thing()"
        assert candidate.source.splitlines()[fault.line - 1].strip() == fault.source_line

    def test_a_wrong_output_names_place_and_pattern(self, judge):
        candidate = linear("out = torch.relu(self.linear(x))\nout[-2:] = 7.0\nreturn out")
        found = judge.evaluate(candidate).feedback
        assert (found.output, found.inputs) == ("output", "own-0")
        assert (found.first_index, found.got) == ((62, 0), 7.0)
        assert found.share == pytest.approx(2 / 64, rel=0.1)
        assert found.pattern == "one value, 7; the last 2 of 64 indices of axis 0"


class TestPassing:
    def test_the_same_mathematics(self, judge):
        verdict = judge.evaluate(linear("return torch.relu(self.linear(x))"))
        assert isinstance(verdict, Passed)
        assert verdict.precision == "fp32"
        assert verdict.error < 1e-5
        assert 0 < verdict.absolute_error < 1e-5

    def test_its_time_is_measured_beside_the_baselines(self, evaluator_of, measures):
        judge = evaluator_of(LINEAR, whole=True)
        verdict = judge.evaluate(linear("return torch.relu(self.linear(x))"))
        assert isinstance(verdict, Passed)
        timing = verdict.timing
        low, high = timing.time_ci_us
        assert 0 < low <= timing.time_us <= high
        assert timing.speedup_ci[0] <= timing.speedup <= timing.speedup_ci[1]
        assert are_strongest(timing.baselines_us, judge.prepare().baselines_us)
        assert min(timing.baselines_us.values()) > 0
        assert 0 < verdict.cost.device_s <= verdict.cost.wall_s
        took_s = verdict.cost.took_s
        assert min(took_s[name] for name in ("importing and constructing", "being timed")) > 0
        assert 0.7 * verdict.cost.wall_s < sum(took_s.values()) <= verdict.cost.wall_s

    @pytest.mark.slow
    def test_a_confirmation_is_against_every_baseline(self, evaluator_of, measures):
        judge = evaluator_of(CONVOLUTION, whole=True)
        facts = judge.prepare()
        candidate = Candidate(CONVOLUTION.replace("Model(", "ModelNew("), "cpp")
        searched = judge.evaluate(candidate).timing
        confirmed = judge.evaluate(candidate, again=True).timing
        assert are_strongest(searched.baselines_us, facts.baselines_us)
        assert confirmed.baselines_us.keys() == facts.baselines_us.keys()
        assert confirmed.baselines_us.keys() >= {"eager", "compile", "eager-channels-last"}
        for timing in (searched, confirmed):
            assert timing.speedup <= min(timing.speedup_eager, timing.speedup_compile) * 1.001

    @pytest.mark.slow
    def test_rewritten_algebra(self, judge):
        body = """
            for _ in range(4):
                out = (self.linear.weight @ x.t()).t() + self.linear.bias
                out = out * (out > 0)
            return out
        """
        verdict = judge.evaluate(linear(body))
        assert (verdict.status, verdict.precision) == ("passed", "fp32")

    @pytest.mark.slow
    def test_another_memory_format(self, judge):
        body = "out = torch.relu(self.linear(x)); return out.t().contiguous().t()"
        assert judge.evaluate(linear(body)).status == "passed"

    def test_parameters_made_in_another_order_and_by_another_recipe(self, judge):
        source = (
            HEADER
            + """
class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.unused = nn.Parameter(torch.randn(7))
        self.linear = nn.Module()
        self.linear.bias = nn.Parameter(torch.zeros(n_out))
        self.linear.weight = nn.Parameter(torch.zeros(n_out, n_in))

    def forward(self, x):
        for _ in range(8):
            out = torch.relu(F.linear(x, self.linear.weight, self.linear.bias))
        return out
"""
        )
        assert judge.evaluate(Candidate(source, "cpp")).status == "passed"

    @pytest.mark.slow
    def test_stored_weights_that_the_constructor_makes_too(self, evaluator_of, tmp_path):
        """The module was built under the seed that candidates are built under."""
        torch.manual_seed(0)
        made = torch.nn.Linear(128, 96).state_dict()
        weights = tmp_path / "weights.pt"
        torch.save({f"linear.{name}": tensor for name, tensor in made.items()}, weights)
        judge = evaluator_of(LINEAR, weights=str(weights))
        check_good(judge)

    @pytest.fixture
    def in_a_model(self, evaluator_of, tmp_path):
        weights = tmp_path / "weights.pt"
        values = {"linear.weight": torch.randn(96, 128), "linear.bias": torch.randn(96)}
        torch.save(values, weights)
        return evaluator_of(LINEAR, weights=str(weights))

    def test_a_module_in_a_model_keeps_nothing_of_its_weights_on_a_gpu(
        self, evaluator_of, in_a_model
    ):
        """A kernel serves all modules that are alike, and their weights change through `.data`."""
        found = in_a_model.evaluate(Candidate(PACKING, "cpp"))
        if evaluator_of.device == "cpu":  # where Inductor packs weights for oneDNN
            assert found.status == "passed"
        else:
            assert found.status == "wrong_output"
            assert "keep nothing that is computed from weights" in found.feedback.inputs
        alone = evaluator_of(LINEAR).evaluate(Candidate(PACKING, "cpp"))
        assert alone.status == "passed"

    @pytest.mark.slow
    def test_a_module_in_a_model_can_be_captured_on_a_gpu(self, evaluator_of, in_a_model):
        """The model may run as one CUDA graph, in which every layer has weights of its own."""
        found = in_a_model.evaluate(Candidate(TABLE, "cpp"))
        if evaluator_of.device == "cpu":
            assert found.status == "passed"
        else:
            assert found.status == "runtime_error"
            assert "captured in a CUDA graph" in str(found)
        plain = TABLE.replace("if self.table_of != weight.data_ptr():", "if self.table is None:")
        assert in_a_model.evaluate(Candidate(plain, "cpp")).status == "passed"

    def test_parameters_that_the_constructor_folds_something_into(self, judge):
        source = (
            HEADER
            + BUILD
            + """
        with torch.no_grad():
            self.linear.weight.mul_(2)
            self.linear.bias.mul_(2)

    def forward(self, x):
        for _ in range(8):
            out = torch.relu(self.linear(x)) / 2
        return out
"""
        )
        assert judge.evaluate(Candidate(source, "cpp")).status == "passed"

    @pytest.mark.slow
    def test_the_same_candidate_again(self, judge):
        assert [judge.evaluate(GOOD).status for _ in range(2)] == ["passed", "passed"]


ADAPTED = (
    HEADER
    + """
class Model(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.a = nn.Linear(n_in, 4 * n_in, bias=False)
        self.b = nn.Linear(4 * n_in, n_out, bias=False)
        nn.init.zeros_(self.b.weight)

    def forward(self, x):
        return torch.relu(self.linear(x) + self.b(self.a(x)))

def get_inputs():
    return [torch.randn(256, 128)]

def get_init_inputs():
    return [128, 96]
"""
)
ADAPTERS = {
    "kept by name": ("", "self.linear(x) + self.b(self.a(x))"),
    "folded in the constructor": (
        "self.sum = self.linear.weight.detach() + (self.b.weight @ self.a.weight).detach()",
        "F.linear(x, self.sum, self.linear.bias)",
    ),
    "skipped": ("", "self.linear(x)"),
    "skipped while it is zero": (
        "self.adapted = None",
        "self.linear(x) + self.b(self.a(x)) if self.used() else self.linear(x)",
    ),
}


def adapter(how: str) -> Candidate:
    """A candidate for `ADAPTED`."""
    built, value = ADAPTERS[how]
    source = f"""
        self.a = nn.Linear(n_in, 4 * n_in, bias=False)
        self.b = nn.Linear(4 * n_in, n_out, bias=False)
        nn.init.zeros_(self.b.weight)
        {built}

    def used(self):
        if self.adapted is None:
            self.adapted = bool(self.b.weight.any())
        return self.adapted

    def forward(self, x):
        return torch.relu({value})
"""
    return Candidate(HEADER + BUILD + source, "cpp")


class TestConstantWeights:
    @pytest.mark.parametrize("how", of_which_fast(ADAPTERS, "folded in the constructor", "skipped"))
    def test_those_who_count_on_them_are_labelled(self, evaluator_of, how):
        measures = evaluator_of.target is None
        verdict = evaluator_of(ADAPTED).evaluate(adapter(how))
        assert verdict.status == "passed"
        follows = how == "skipped while it is zero"  # the time alone tells it
        counts_on_them = how.startswith("skipped") and (measures or not follows)
        assert ("constant-weights" in verdict.labels) == counts_on_them
        if how.startswith("skipped") and measures:
            assert verdict.detail.startswith("constant-weights: ")
            assert verdict.detail.endswith(" of b.weight")


WRONG_WORDS = {
    "the wrong dtype": "dtype float64",
    "the wrong shape": "shape (64, 95)",
    "one output too many": "2 output tensors",
    "no output": "0 output tensors",
    "input overwritten": "changes its inputs in place",
    "input overwritten before use": "changes its inputs in place",
    "input overwritten and wrong": "changes its inputs in place",
}
WRONG = {
    "off by a factor": "return torch.relu(self.linear(x)) * 1.01",
    "zeros": "return torch.zeros(64, 96, device=x.device)",
    "NaN": "return torch.relu(self.linear(x)) * float('nan')",
    "one NaN": "out = torch.relu(self.linear(x)); out[3, 4] = float('nan'); return out",
    "one element": "out = torch.relu(self.linear(x)); out[3, 4] += 0.01; return out",
    "infinity": "out = torch.relu(self.linear(x)); out[0] = float('inf'); return out",
    "transposed": "return torch.relu(self.linear(x)).t()",
    "transposed and reshaped": "return torch.relu(self.linear(x)).t().reshape(64, 96)",
    "the wrong dtype": "return torch.relu(self.linear(x)).double()",
    "the wrong shape": "return torch.relu(self.linear(x))[:, :-1]",
    "one output too many": "out = torch.relu(self.linear(x)); return out, out",
    "no output": "return []",
    "bfloat16 inside": """
        weight, bias = self.linear.weight.bfloat16(), self.linear.bias.bfloat16()
        return torch.relu(F.linear(x.bfloat16(), weight, bias)).float()
    """,
    "uninitialised memory": "return torch.empty(64, 96, device=x.device)",
    "right for its own inputs only": """
        out = torch.relu(self.linear(x))
        return out if float(x.abs().max()) < 8 else out * 0.5
    """,
    "input overwritten": "out = torch.relu(self.linear(x)); x.zero_(); return out",
    "input overwritten before use": "x.mul_(2); return torch.relu(self.linear(x / 2))",
    "input overwritten and wrong": "x.zero_(); return torch.relu(self.linear(x)) + 1",
}


class TestWrongOutput:
    @pytest.mark.parametrize(
        "how",
        of_which_fast(
            WRONG,
            "off by a factor",
            "one NaN",
            "no output",
            "bfloat16 inside",
            "right for its own inputs only",
        ),
    )
    def test_the_reason_says_so_and_the_next_candidate_passes(self, judge, how):
        verdict = judge.evaluate(linear(WRONG[how]))
        assert verdict.status == "wrong_output"
        assert verdict.reason
        assert WRONG_WORDS.get(how, "") in verdict.reason
        assert "\n" not in verdict.reason
        check_good(judge)

    def test_an_input_overwritten_only_while_timed(self, judge, measures):
        body = """
            self.calls = getattr(self, "calls", 0) + 1
            out = torch.relu(self.linear(x))
            if self.calls > 30:
                x.add_(1)
            return out
        """
        verdict = judge.evaluate(linear(body))
        assert verdict.status == "wrong_output"
        check_good(judge)

    def test_the_error_is_told_where_there_is_one(self, judge):
        verdict = judge.evaluate(linear(WRONG["off by a factor"]))
        assert verdict.error == pytest.approx(0.01, rel=0.01)
        assert judge.evaluate(linear(WRONG["the wrong shape"])).error is None
        one = judge.evaluate(linear(WRONG["one element"]))
        assert one.absolute_error == pytest.approx(0.01, rel=0.01)


class TestPrecision:
    @pytest.fixture
    def half_judge(self, evaluator_of):
        return evaluator_of(LINEAR, precision="half")

    def test_bfloat16_inside_is_half_where_that_is_allowed(self, half_judge):
        verdict = half_judge.evaluate(linear(WRONG["bfloat16 inside"]))
        assert (verdict.status, verdict.precision) == ("passed", "half")

    def test_strict_is_told_even_where_less_is_allowed(self, half_judge):
        verdict = half_judge.evaluate(STRICT)
        assert (verdict.status, verdict.precision) == ("passed", "fp32")

    def test_less_than_half_is_wrong(self, half_judge):
        body = "return (torch.relu(self.linear(x)) * 4).round() / 4"
        assert half_judge.evaluate(linear(body)).status == "wrong_output"


BROKEN = {
    "syntax error": ("def forward(:\n", "compile_error"),
    "no ModelNew": ("import torch\n", "compile_error"),
    "no module": ("class ModelNew:\n    def __init__(self, *args): ...\n", "compile_error"),
    "import of what is not there": ("import no_such_package\n", "compile_error"),
    "raising on import": ("raise ValueError('no')\n", "compile_error"),
    "constructor raising": (
        HEADER + "class ModelNew(nn.Module):\n    def __init__(self, *a):\n        1 / 0\n",
        "compile_error",
    ),
    "constructor with other arguments": (
        HEADER + "class ModelNew(nn.Module):\n    def __init__(self): super().__init__()\n",
        "compile_error",
    ),
    "leaving on import": ("import os\nos._exit(0)\n", "runtime_error"),
}


class TestBroken:
    @pytest.mark.parametrize(
        "how",
        of_which_fast(BROKEN, "syntax error", "raising on import", "leaving on import"),
    )
    def test_what_never_runs(self, judge, how):
        source, status = BROKEN[how]
        verdict = judge.evaluate(Candidate(source, "cpp"))
        assert verdict.status == status
        assert "\n" not in verdict.reason
        check_good(judge)

    @pytest.mark.parametrize(
        "body",
        [
            pytest.param("raise ValueError('on purpose')", id="an exception"),
            pytest.param("return 'no tensor'", id="no tensor", marks=pytest.mark.slow),
            pytest.param("return None", id="nothing", marks=pytest.mark.slow),
            pytest.param("raise SystemExit(0)", id="SystemExit", marks=pytest.mark.slow),
            pytest.param("raise KeyboardInterrupt", id="KeyboardInterrupt", marks=pytest.mark.slow),
            pytest.param("import os; os._exit(0)", id="leaving", marks=pytest.mark.slow),
            pytest.param("import ctypes; ctypes.string_at(0)", id="a segmentation fault"),
            pytest.param("import os; os.abort()", id="abort", marks=pytest.mark.slow),
            pytest.param("return self.forward(x)", id="endless recursion", marks=pytest.mark.slow),
            pytest.param("import os; os.closerange(3, 100); return x", id="closing its channel"),
        ],
    )
    def test_what_fails_when_run(self, judge, body):
        verdict = judge.evaluate(linear(body))
        assert verdict.status == "runtime_error"
        assert "first call" in verdict.reason
        assert "\n" not in verdict.reason
        check_good(judge)

    def test_failing_while_timed(self, judge, measures):
        body = """
            self.calls = getattr(self, "calls", 0) + 1
            if self.calls > 30:
                raise ValueError("enough")
            return torch.relu(self.linear(x))
        """
        verdict = judge.evaluate(linear(body))
        assert verdict.status == "runtime_error"
        assert "being timed" in verdict.reason

    def test_the_reason_says_what_and_the_detail_where(self, judge):
        candidate = linear("raise ValueError('on purpose')")
        verdict = judge.evaluate(candidate)
        line = len(candidate.source.splitlines())
        assert verdict.reason == (
            f"ValueError: on purpose (line {line} in forward, while its first call)"
        )
        assert "Traceback" in verdict.detail

    def test_an_error_names_the_inputs_that_it_met(self, judge):
        body = """
            if x.max() <= 0:
                raise ValueError("nothing is positive")
            return torch.relu(self.linear(x))
        """
        verdict = judge.evaluate(linear(body))
        assert verdict.status == "runtime_error"
        assert "running on the inputs 'negative'" in verdict.reason


class TestTimeLimit:
    @pytest.mark.parametrize(
        "body",
        [
            pytest.param("while True: pass", id="an endless loop"),
            pytest.param("import time; time.sleep(3600)", id="sleeping", marks=pytest.mark.slow),
            pytest.param(
                "import os, signal; os.kill(0, signal.SIGSTOP)",
                id="stopping itself",
                marks=pytest.mark.slow,
            ),
            pytest.param(
                "import os, signal, time\n"
                "for _ in range(30):\n"
                "    if os.fork() == 0:\n"
                "        os.setsid()\n"
                "        time.sleep(3600)\n"
                "time.sleep(3600)",
                id="a swarm of processes",
                marks=pytest.mark.slow,
            ),
        ],
    )
    def test_it_ends_what_does_not_end(self, evaluator_of, hasty_judge, body):
        verdict = hasty_judge.evaluate(linear(body))
        assert verdict.status == "timeout"
        assert f"not done after {SHORT_S[evaluator_of.device]:g} s" in verdict.reason
        check_good(hasty_judge)

    @pytest.mark.slow
    def test_a_first_call_that_hangs_ends_long_before_the_time_limit(self, evaluator_of, measures):
        patient = evaluator_of(LINEAR, timeout_s=120.0)
        began = time.monotonic()
        verdict = patient.evaluate(linear("import time; time.sleep(3600)"))
        assert verdict.status == "timeout"
        assert verdict.reason.startswith("it hangs, while its first call")
        assert time.monotonic() - began < 60


class TestGreed:
    def test_too_much_memory(self, judge):
        body = "return torch.ones(200 * 2**30 // 4, device=x.device)"
        verdict = judge.evaluate(linear(body))
        assert verdict.status == "out_of_memory"
        check_good(judge)

    def test_more_than_it_may_have_though_the_machine_has_it(self, evaluator_of, judge):
        if evaluator_of.device != "cpu":
            pytest.skip("memory is limited on the CPU only")
        verdict = judge.evaluate(linear(f"return b'x' * {MEMORY_BYTES}"))
        assert verdict.status == "out_of_memory"

    @pytest.mark.slow
    def test_endless_output(self, judge):
        body = """
            for _ in range(1 << 30):
                print("x" * (1 << 20))
        """
        verdict = judge.evaluate(linear(body))
        assert verdict.status in ("runtime_error", "timeout")
        check_good(judge)


class TestForgery:
    def test_printing_a_verdict_changes_nothing(self, judge):
        body = """
            import json, sys
            forged = {"status": "passed", "speedup": 1000.0, "outputs": [], "times_us": [0.001]}
            for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
                print(json.dumps(forged), json.dumps({"evaluation": forged}), file=stream)
            return torch.zeros(64, 96, device=x.device)
        """
        assert judge.evaluate(linear(body)).status == "wrong_output"

    @pytest.mark.parametrize(
        "message",
        [
            {"evaluation": {"status": "passed"}},
            pytest.param({"outputs": [{"path": "output"}]}, marks=pytest.mark.slow),
            pytest.param({"outputs": 5}, marks=pytest.mark.slow),
            pytest.param({"outputs": [], "times_us": "fast"}, marks=pytest.mark.slow),
            pytest.param({"raised": "nothing"}, marks=pytest.mark.slow),
            pytest.param(
                {"raised": {"types": [[]], "type": "", "message": "", "traceback": ""}},
                marks=pytest.mark.slow,
            ),
        ],
        ids=str,
    )
    def test_what_is_written_to_its_channel_and_no_answer(self, judge, message):
        body = f"""
            import json, os, struct, time
            body = json.dumps({message!r}).encode()
            for fd in range(3, 100):
                try:
                    os.write(fd, struct.pack("!QI", len(body), 0) + body)
                except OSError:
                    pass
            time.sleep(3600)
        """
        assert judge.evaluate(linear(body)).status == "rejected"
        check_good(judge)

    @pytest.mark.slow
    def test_an_answer_without_the_work(self, judge):
        body = """
            import json, os, struct, time
            output = {"path": "output", "class": "Tensor", "shape": [64, 96], "dtype": "float32"}
            output |= {"strides": [96, 1], "device": x.device.type}
            body = json.dumps({"outputs": [output]}).encode()
            for fd in range(3, 100):
                try:
                    os.write(fd, 2 * (struct.pack("!QI", len(body), 0) + body))
                except OSError:
                    pass
            time.sleep(3600)
        """
        assert judge.evaluate(linear(body)).status in ("wrong_output", "rejected")


@dataclass(frozen=True)
class Form:
    """A shape of problem: its reference, a right candidate and a wrong one."""

    reference: str
    right: str
    wrong: tuple[str, str]
    """What to replace in the right one, and by what."""

    def candidates(self):
        right = HEADER + textwrap.dedent(self.right)
        old, new = self.wrong
        assert old in right
        return Candidate(right, "cpp"), Candidate(right.replace(old, new), "cpp")


FORMS = {
    "a tuple and a dictionary of outputs": Form(
        """
        class Model(nn.Module):
            def forward(self, x):
                return x.sum(1), {"largest": x.amax(1), "nothing": None}

        def get_inputs():
            return [torch.randn(64, 32)]
        """,
        """
        class ModelNew(nn.Module):
            def forward(self, x):
                for _ in range(9):
                    sums, largest = x @ x.new_ones(32), x.sort(1).values[:, -1]
                return [sums, largest]
        """,
        ("[:, -1]", "[:, -2]"),
    ),
    "integers out": Form(
        """
        class Model(nn.Module):
            def forward(self, x):
                return x.argmax(1)

        def get_inputs():
            return [torch.randn(64, 32)]
        """,
        """
        class ModelNew(nn.Module):
            def forward(self, x):
                for _ in range(9):
                    index = x.sort(1, descending=True).indices[:, 0]
                return index
        """,
        ("descending=True", "descending=False"),
    ),
    "booleans out": Form(
        """
        class Model(nn.Module):
            def forward(self, x):
                return x > 0.5

        def get_inputs():
            return [torch.randn(64, 32)]
        """,
        """
        class ModelNew(nn.Module):
            def forward(self, x):
                for _ in range(9):
                    large = ~(x <= 0.5)
                return large
        """,
        ("0.5", "0.6"),
    ),
    "numbers, flags and integers in": Form(
        """
        class Model(nn.Module):
            def forward(self, x, index, scale, negate):
                out = x[index] * scale
                return -out if negate else out

        def get_inputs():
            return [torch.randn(64, 32), torch.randint(64, (16,)), 2.5, True]
        """,
        """
        class ModelNew(nn.Module):
            def forward(self, x, index, scale, negate):
                for _ in range(9):
                    out = x.index_select(0, index) * (-scale if negate else scale)
                return out
        """,
        ("index_select(0, index)", "index_select(0, index.flip(0))"),
    ),
    "keyword arguments and a nested input": Form(
        """
        class Model(nn.Module):
            def forward(self, *, pair, factor):
                return pair["left"] * factor + pair["right"][0]

        def get_inputs():
            left, right = torch.randn(64), torch.randn(64)
            return {"factor": 3, "pair": {"left": left, "right": (right,)}}
        """,
        """
        class ModelNew(nn.Module):
            def forward(self, *, pair, factor):
                for _ in range(9):
                    out = torch.addcmul(pair["right"][0], pair["left"], pair["left"] * 0 + factor)
                return out
        """,
        ("* 0 + factor", "* 0 + factor + 1"),
    ),
    "constructor arguments as a dictionary": Form(
        """
        class Model(nn.Module):
            def __init__(self, *, size, power=1):
                super().__init__()
                self.weight = nn.Parameter(torch.randn(size))
                self.power = power

            def forward(self, x):
                return (x * self.weight) ** self.power

        def get_inputs():
            return [torch.randn(64, 32)]

        def get_init_inputs():
            return {"size": 32, "power": 2}
        """,
        """
        class ModelNew(nn.Module):
            def __init__(self, *, size, power):
                super().__init__()
                self.power = power
                self.weight = nn.Parameter(torch.zeros(size))

            def forward(self, x):
                for _ in range(9):
                    out = (x * self.weight).square() if self.power == 2 else x
                return out
        """,
        (".square()", ".abs()"),
    ),
    "batch normalisation in training mode": Form(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(32)

            def forward(self, x):
                return self.norm(x)

        def get_inputs():
            return [torch.randn(64, 32)]
        """,
        """
        class ModelNew(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(32)

            def forward(self, x):
                for _ in range(9):
                    centred = x - x.mean(0)
                    out = centred * (centred.square().mean(0) + self.norm.eps).rsqrt()
                return out * self.norm.weight + self.norm.bias
        """,
        ("x - x.mean(0)", "x - self.norm.running_mean"),
    ),
    "complex numbers in and out": Form(
        """
        class Model(nn.Module):
            def forward(self, x):
                return torch.fft.fft(x), x.abs()

        def get_inputs():
            return [torch.randn(16, 32, dtype=torch.complex64)]
        """,
        """
        class ModelNew(nn.Module):
            def forward(self, x):
                for _ in range(9):
                    spectrum = torch.fft.ifft(x.conj()).conj() * 32
                return spectrum, (x * x.conj()).real.sqrt()
        """,
        ("* 32", "* 31"),
    ),
    "half precision throughout": Form(
        """
        class Model(nn.Module):
            def forward(self, x):
                return torch.softmax(x, 1)

        def get_inputs():
            return [torch.randn(64, 32).bfloat16()]
        """,
        """
        class ModelNew(nn.Module):
            def forward(self, x):
                for _ in range(2):
                    e = (x.float() - x.float().amax(1, keepdim=True)).exp()
                return (e / e.sum(1, keepdim=True)).bfloat16()
        """,
        ("e.sum(1, keepdim=True)", "e.sum(1, keepdim=True) * 1.1"),
    ),
    "a single number out": Form(
        """
        class Model(nn.Module):
            def forward(self, x):
                return x.square().mean()

        def get_inputs():
            return [torch.randn(64, 32)]
        """,
        """
        class ModelNew(nn.Module):
            def forward(self, x):
                for _ in range(9):
                    out = (x * x).sum() / x.numel()
                return out
        """,
        ("x.numel()", "(x.numel() - 1)"),
    ),
    "inputs and outputs that share memory with themselves": Form(
        """
        class Model(nn.Module):
            def forward(self, x, bias):
                return (x + bias).mean(0, keepdim=True).expand(8, -1)

        def get_inputs():
            return [torch.randn(64, 33)[1:, 1:], torch.randn(32).expand(63, 32)]
        """,
        """
        class ModelNew(nn.Module):
            def forward(self, x, bias):
                for _ in range(9):
                    out = x.mean(0) + bias.mean(0)
                return out.repeat(8, 1)
        """,
        ("bias.mean(0)", "bias.mean(0) * 0.99"),
    ),
    "more parameters than a message takes": Form(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.weights = nn.ParameterList([torch.randn(4) for _ in range(600)])

            def forward(self, x):
                return x * sum(self.weights)

        def get_inputs():
            return [torch.randn(64, 4)]
        """,
        """
        class ModelNew(nn.Module):
            def __init__(self):
                super().__init__()
                self.weights = nn.ParameterList([torch.zeros(4) for _ in range(600)])

            def forward(self, x):
                for _ in range(4):
                    out = x * sum(w for w in self.weights)
                return out
        """,
        ("in self.weights)", "in self.weights[1:])"),
    ),
    "a reference that insists on float32": Form(
        """
        class Model(nn.Module):
            def forward(self, x):
                assert x.dtype == torch.float32, "float32 only"
                return x.exp()

        def get_inputs():
            return [torch.rand(64, 32)]
        """,
        """
        class ModelNew(nn.Module):
            def forward(self, x):
                for _ in range(9):
                    out = torch.pow(torch.e, x)
                return out
        """,
        ("torch.e, x", "2.7, x"),
    ),
    "infinities out": Form(
        """
        class Model(nn.Module):
            def forward(self, x):
                return x.masked_fill(x < 0, -torch.inf)

        def get_inputs():
            return [torch.randn(64, 32)]
        """,
        """
        class ModelNew(nn.Module):
            def forward(self, x):
                for _ in range(9):
                    out = torch.where(x < 0, -torch.inf, x)
                return out
        """,
        ("-torch.inf", "-1e30"),
    ),
}


class TestForms:
    @pytest.mark.parametrize(
        "name",
        of_which_fast(
            FORMS,
            "a tuple and a dictionary of outputs",
            "keyword arguments and a nested input",
            "batch normalisation in training mode",
            "half precision throughout",
            "infinities out",
        ),
    )
    def test_a_right_candidate_passes_and_a_wrong_one_does_not(self, evaluator_of, name):
        form = FORMS[name]
        evaluator = evaluator_of.unprepared(HEADER + textwrap.dedent(form.reference))
        evaluator.prepare()
        right, wrong = form.candidates()
        passed, failed = evaluator.evaluate(right), evaluator.evaluate(wrong)
        evaluator.close()
        assert (passed.status, getattr(passed, "reason", "")) == ("passed", "")
        assert failed.status == "wrong_output"


def reference(forward: str, *, inputs: str = "[torch.randn(64, 32)]", init: str = "pass") -> str:
    return f"""{HEADER}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        {forward}

def get_inputs():
    return {inputs}
"""


BAD_REFERENCES = {
    "raising": (reference("raise ValueError('on purpose')"), "ValueError: on purpose"),
    "raising in its constructor": (reference("return x", init="1 / 0"), "ZeroDivisionError"),
    "raising in get_inputs": (reference("return x", inputs="[1 / 0]"), "ZeroDivisionError"),
    "called with too much": (reference("return x", inputs="[1, 2]"), "forward()"),
    "leaving": (reference("raise SystemExit(3)"), "SystemExit"),
    "a syntax error": ("class Model(:\n", "SyntaxError"),
    "no Model": ("def get_inputs(): return []\n", "Model"),
    "NaN": (reference("return x * float('nan')"), "is NaN in all of its"),
    "no tensor": (reference("return 3.0"), "return tensors"),
    "nothing": (reference("return None"), "return tensors"),
    "an empty list": (reference("return []"), "returns no tensor"),
    "a sparse tensor": (reference("return x.to_sparse()"), "sparse"),
    "a size that depends on the data": (reference("return x[x > 0]"), "example.py"),
    "random": (reference("return F.dropout(x, 0.5)"), "differs between two runs"),
    "changing its inputs": (reference("return x.add_(1)"), "changes its inputs in place"),
    "too large": (
        reference("return x.new_ones(200 * 2**30)"),
        "too large for",
    ),
    "too large in float64": (
        reference("if x.dtype is torch.float64: x.new_ones(200 * 2**30)\n        return x"),
        "its float64 run does not fit on",
    ),
    "inputs too large": (
        reference("return x", inputs="[torch.ones(200 * 2**30)]"),
        "too large for",
    ),
}


class TestBadReferences:
    @pytest.mark.parametrize("how", BAD_REFERENCES)
    def test_it_is_one_clear_line(self, evaluator_of, how):
        source, words = BAD_REFERENCES[how]
        if evaluator_of.target and how == "inputs too large":
            pytest.skip("without a GPU they never exist at their full size")
        evaluator = evaluator_of.unprepared(source)
        with pytest.raises(BadProblemError) as caught:
            evaluator.prepare()
        evaluator.close()
        assert words in str(caught.value)
        assert str(caught.value).startswith("example.py")
        assert "\n" not in str(caught.value)

    def test_a_mode_without_randomness_mends_dropout(self, evaluator_of):
        source = reference("return F.dropout(x, 0.5, self.training)")
        with pytest.raises(BadProblemError, match="--mode eval"):
            evaluator_of.unprepared(source).prepare()
        evaluator = evaluator_of.unprepared(source, mode="eval")
        assert evaluator.prepare().outputs
        evaluator.close()

    def test_one_that_takes_the_judge_with_it_is_infrastructure_trouble(self, evaluator_of):
        evaluator = evaluator_of.unprepared(reference("import os; os._exit(0)"))
        with pytest.raises(InfrastructureError, match="the judge is gone"):
            evaluator.prepare()


class TestTrouble:
    def test_a_judge_that_is_lost_is_replaced(self, evaluator_of):
        evaluator = evaluator_of.unprepared(LINEAR)
        evaluator.prepare()
        check_good(evaluator)
        evaluator.close()
        check_good(evaluator)
        evaluator.close()

    def test_closing_twice_is_fine(self, evaluator_of):
        evaluator = evaluator_of.unprepared(LINEAR)
        evaluator.close()
        evaluator.close()


FORGING = """
import gc
from types import SimpleNamespace

metadata = SimpleNamespace(name="kernel", _asdict=lambda: {"name": "kernel"})
for each in gc.get_objects():
    if type(each).__name__ == "Launches":
        each.compiled[0] = SimpleNamespace(metadata=metadata, asm={"ptx": "ret;", "ttgir": ""})
        each.kernels["kernel"] = (True, 0)

jit = lambda f: f

@jit
def kernel(x):
    return BODY
"""


def forging(body: str) -> Candidate:
    """A candidate that says that its kernel has a certain code, whatever it does."""
    return linear("return kernel(self.linear(x))", FORGING.replace("BODY", body))


class TestRepeats:
    def test_one_that_is_the_same_but_for_words_is_not_measured_again(self, judge, measures):
        here = replace(GOOD, source=GOOD.source.replace("range(8)", "range(9)"))
        first = judge.evaluate(here)
        alike = replace(here, source="# a comment\n" + here.source.replace(" out", " result"))
        second = judge.evaluate(alike, here)
        assert second.timing.time_us == first.timing.time_us  # beside baselines of that moment
        assert second.cost.device_s < first.cost.device_s
        assert judge.evaluate(alike, again=True).timing.time_us != second.timing.time_us

    @pytest.mark.slow
    def test_one_that_is_evaluated_twice_is_measured_twice(self, judge, measures):
        assert judge.evaluate(GOOD).timing != judge.evaluate(GOOD).timing

    def test_a_forged_code_makes_no_wrong_output_right(self, judge):
        right = judge.evaluate(forging("torch.relu(x)"))
        again = judge.evaluate(forging("torch.clamp(x, min=0)"))
        wrong = judge.evaluate(forging("torch.relu(x + 1)"))
        assert (right.status, wrong.status) == ("passed", "wrong_output")
        if right.measured:
            assert again.descriptor.code == right.descriptor.code  # so it was believed

    @pytest.mark.slow
    def test_a_forged_code_gets_no_time_of_another(self, judge, measures):
        fast = judge.evaluate(forging("torch.relu(x + 0.0)"))
        slow = judge.evaluate(forging("__import__('time').sleep(0.02) or torch.relu(x)"))
        assert fast.descriptor.code == slow.descriptor.code
        assert slow.timing.time_us >= 20_000.0 > fast.timing.time_us

    def test_what_it_is_made_of_is_told(self, judge):
        descriptor = judge.evaluate(GOOD).descriptor
        assert descriptor.library
        assert descriptor.launches >= 8
        assert descriptor.bytes_per_s > 0
        assert descriptor.form == fingerprint(GOOD.source)
