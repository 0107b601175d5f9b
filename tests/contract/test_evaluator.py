"""What `adaexplore.evaluate.base.Evaluator` promises, run on every implementation.

Candidates are pure PyTorch, so that the same ones run on any device and nothing needs compiling. A
new implementation joins by adding its name to `IMPLEMENTATIONS`.
"""

import textwrap
from dataclasses import dataclass, field

import pytest

from adaexplore.candidate import Candidate
from adaexplore.errors import BadProblemError
from adaexplore.evaluate.local import LocalEvaluator
from adaexplore.evaluation import Failed, Passed
from adaexplore.problem import Problem

TIMEOUT_S = 20.0
SHORT_S = 3.0
GIB = 1 << 30

IMPLEMENTATIONS = [
    pytest.param("cpu", id="local-cpu"),
    pytest.param("cuda:0", id="local-cuda", marks=pytest.mark.gpu),
]


@dataclass
class Maker:
    """Makes evaluators of one implementation, prepared, one for each question asked of it."""

    server: object
    device: str
    made: dict = field(default_factory=dict)

    def __call__(self, source, *, timeout_s=TIMEOUT_S, **options):
        key = (source, timeout_s, tuple(sorted(options.items())))
        if key not in self.made:
            evaluator = self.unprepared(source, timeout_s=timeout_s, **options)
            evaluator.prepare()
            self.made[key] = evaluator
        return self.made[key]

    def unprepared(self, source, *, timeout_s=TIMEOUT_S, **options):
        language = "cpp" if self.device == "cpu" else "triton"
        problem = Problem("example", textwrap.dedent(source), language, self.device, **options)
        return LocalEvaluator(self.server, problem, timeout_s=timeout_s, memory_bytes=8 * GIB)

    def close(self):
        for evaluator in self.made.values():
            evaluator.close()


@pytest.fixture(scope="session", params=IMPLEMENTATIONS)
def evaluator_of(request, server):
    maker = Maker(server, request.param)
    yield maker
    maker.close()


def candidate(source: str) -> Candidate:
    return Candidate(textwrap.dedent(source), "cpp")


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
BUILD = """
class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
"""


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


@pytest.fixture
def judge(evaluator_of):
    return evaluator_of(LINEAR)


@pytest.fixture
def hasty_judge(evaluator_of):
    return evaluator_of(LINEAR, timeout_s=SHORT_S)


class TestFacts:
    def test_they_describe_the_reference(self, judge):
        facts = judge.prepare()
        assert facts["precision"] == "fp32"
        assert facts["baselines_us"]["eager"] > 0
        assert facts["parameters"] == 128 * 96 + 96
        assert facts["outputs"] == [{"path": "output", "shape": [64, 96], "dtype": "float32"}]
        assert {"own-0", "own-1", "own-2", "normal", "sparse"} <= set(facts["input_sets"])
        assert 0 < facts["errors"]["fp32"] < 1e-5

    def test_asking_twice_gives_the_same(self, judge):
        assert judge.prepare() == judge.prepare()


class TestPassing:
    def test_the_same_mathematics(self, judge):
        verdict = judge.evaluate(linear("return torch.relu(self.linear(x))"))
        assert isinstance(verdict, Passed)
        assert verdict.precision == "fp32"
        assert verdict.error < 1e-5
        timing = verdict.timing
        low, high = timing.time_ci_us
        assert 0 < low <= timing.time_us <= high
        assert timing.speedup_ci[0] <= timing.speedup <= timing.speedup_ci[1]
        assert timing.baselines_us["eager"] > 0
        assert 0 < verdict.cost.device_s <= verdict.cost.wall_s

    def test_rewritten_algebra(self, judge):
        body = """
            for _ in range(4):
                out = (self.linear.weight @ x.t()).t() + self.linear.bias
                out = out * (out > 0)
            return out
        """
        verdict = judge.evaluate(linear(body))
        assert (verdict.status, verdict.precision) == ("passed", "fp32")

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

    def test_the_same_candidate_again(self, judge):
        assert [judge.evaluate(GOOD).status for _ in range(2)] == ["passed", "passed"]


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
    @pytest.mark.parametrize("how", WRONG)
    def test_it_is_told_and_harms_no_other(self, judge, how):
        verdict = judge.evaluate(linear(WRONG[how]))
        assert verdict.status == "wrong_output"
        assert verdict.reason
        assert "\n" not in verdict.reason
        assert judge.evaluate(GOOD).status == "passed"

    @pytest.mark.parametrize(
        "how",
        ["input overwritten", "input overwritten before use", "input overwritten and wrong"],
    )
    def test_an_overwritten_input_is_named(self, judge, how):
        assert "changes its inputs in place" in judge.evaluate(linear(WRONG[how])).reason

    def test_an_input_overwritten_only_while_timed(self, judge):
        body = """
            self.calls = getattr(self, "calls", 0) + 1
            out = torch.relu(self.linear(x))
            if self.calls > 30:
                x.add_(1)
            return out
        """
        verdict = judge.evaluate(linear(body))
        assert verdict.status == "wrong_output"
        assert judge.evaluate(GOOD).status == "passed"

    def test_the_error_is_told_where_there_is_one(self, judge):
        verdict = judge.evaluate(linear(WRONG["off by a factor"]))
        assert verdict.error == pytest.approx(0.01, rel=0.01)
        assert judge.evaluate(linear(WRONG["the wrong shape"])).error is None

    @pytest.mark.parametrize(
        ("how", "words"),
        [
            ("the wrong dtype", "dtype float64"),
            ("the wrong shape", "shape (64, 95)"),
            ("one output too many", "2 output tensors"),
            ("no output", "0 output tensors"),
        ],
    )
    def test_the_form_is_named(self, judge, how, words):
        assert words in judge.evaluate(linear(WRONG[how])).reason


class TestPrecision:
    @pytest.fixture
    def half_judge(self, evaluator_of):
        return evaluator_of(LINEAR, precision="half")

    def test_bfloat16_inside_is_half_where_that_is_allowed(self, half_judge):
        verdict = half_judge.evaluate(linear(WRONG["bfloat16 inside"]))
        assert (verdict.status, verdict.precision) == ("passed", "half")

    def test_strict_is_told_even_where_less_is_allowed(self, half_judge):
        verdict = half_judge.evaluate(GOOD)
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
    @pytest.mark.parametrize("how", BROKEN)
    def test_what_never_runs(self, judge, how):
        source, status = BROKEN[how]
        verdict = judge.evaluate(Candidate(source, "cpp"))
        assert verdict.status == status
        assert "\n" not in verdict.reason
        assert judge.evaluate(GOOD).status == "passed"

    @pytest.mark.parametrize(
        "body",
        [
            pytest.param("raise ValueError('on purpose')", id="an exception"),
            pytest.param("return 'no tensor'", id="no tensor"),
            pytest.param("return None", id="nothing"),
            pytest.param("raise SystemExit(0)", id="SystemExit"),
            pytest.param("raise KeyboardInterrupt", id="KeyboardInterrupt"),
            pytest.param("import os; os._exit(0)", id="leaving"),
            pytest.param("import ctypes; ctypes.string_at(0)", id="a segmentation fault"),
            pytest.param("import os; os.abort()", id="abort"),
            pytest.param("return self.forward(x)", id="endless recursion"),
            pytest.param("import os; os.closerange(3, 100); return x", id="closing its channel"),
        ],
    )
    def test_what_fails_when_run(self, judge, body):
        verdict = judge.evaluate(linear(body))
        assert verdict.status == "runtime_error"
        assert "first call" in verdict.reason
        assert "\n" not in verdict.reason
        assert judge.evaluate(GOOD).status == "passed"

    def test_failing_while_timed(self, judge):
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
        verdict = judge.evaluate(linear("raise ValueError('on purpose')"))
        assert verdict.reason == "ValueError: on purpose (while its first call)"
        assert "Traceback" in verdict.detail


class TestTimeLimit:
    @pytest.mark.parametrize(
        "body",
        [
            pytest.param("while True: pass", id="an endless loop"),
            pytest.param("import time; time.sleep(3600)", id="sleeping"),
            pytest.param("import os, signal; os.kill(0, signal.SIGSTOP)", id="stopping itself"),
            pytest.param(
                "import os, signal, time\n"
                "for _ in range(30):\n"
                "    if os.fork() == 0:\n"
                "        os.setsid()\n"
                "        time.sleep(3600)\n"
                "time.sleep(3600)",
                id="a swarm of processes",
            ),
        ],
    )
    def test_it_ends_what_does_not_end(self, hasty_judge, body):
        verdict = hasty_judge.evaluate(linear(body))
        assert verdict.status == "timeout"
        assert f"not done after {SHORT_S:g} s" in verdict.reason
        assert hasty_judge.evaluate(GOOD).status == "passed"


class TestGreed:
    def test_too_much_memory(self, judge):
        body = "return torch.ones(200 * 2**30 // 4, device=x.device)"
        verdict = judge.evaluate(linear(body))
        assert verdict.status == "out_of_memory"
        assert judge.evaluate(GOOD).status == "passed"

    def test_more_than_the_limit_though_the_machine_has_it(self, judge):
        verdict = judge.evaluate(linear("x = b'x' * (9 << 30); return x"))
        assert verdict.status == ("out_of_memory" if judge._problem.device == "cpu" else "x")

    def test_endless_output(self, judge):
        body = """
            for _ in range(1 << 30):
                print("x" * (1 << 20))
        """
        verdict = judge.evaluate(linear(body))
        assert verdict.status in ("runtime_error", "timeout")
        assert judge.evaluate(GOOD).status == "passed"
