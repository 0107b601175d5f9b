"""Problems with several workloads and with tolerances, judged on the CPU by the real judge."""

import textwrap
from dataclasses import replace

import pytest
import torch

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Checks, Likeness, Problem, Tolerance, Workload
from adaexplore.core.verdict.evaluation import Mismatch
from adaexplore.core.verdict.evaluation_json import evaluation_to_json
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from verdicts import failed, passed

SOURCE = textwrap.dedent(
    """
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.rand(64) + 0.5)

        def forward(self, x):
            return torch.softmax(x * self.scale, -1)

    def get_inputs():
        return [torch.randn(32, 64)]

    def inputs_of(rows):
        return [torch.randn(rows, 64)]
    """
)
HONEST = SOURCE.replace("class Model(", "class ModelNew(")
WORKLOADS = (
    Workload("small"),
    Workload("large", draw="inputs_of(300)"),
    Workload("single", draw="inputs_of(1)", timed=False),
)
LABELS = (("uniform-inputs", "its benchmark draws so"),)
PROBLEM = Problem("example", SOURCE, "cpp", "cpu", WORKLOADS, labels=LABELS)


SHIFTED_IF_LARGE = HONEST.replace(
    "return torch.softmax(x * self.scale, -1)",
    "y = x if x.is_contiguous() or x.shape[0] < {rows} else x + 1e-2 * x.roll(1, 0)\n"
    "        return torch.softmax(y * self.scale, -1)",
)


@pytest.fixture(scope="module")
def judge_of(server):
    made = {}

    def judge_of(problem):
        if problem not in made:
            made[problem] = LocalEvaluator(
                server, problem, timeout_s=60.0, memory_bytes=2 << 30, brief=True
            )
            made[problem].prepare()
        return made[problem]

    yield judge_of
    for judge in made.values():
        judge.close()


def candidate(old="", new=""):
    assert old in HONEST
    return Candidate(HONEST.replace(old, new) if old else HONEST, "cpp")


@pytest.mark.parametrize(("rows", "where"), [(300, "on large"), (1, "with gaps:")])
def test_uses_that_depend_on_sizes_are_tried_on_every_timed_workload(judge_of, rows, where):
    source = SHIFTED_IF_LARGE.replace("{rows}", str(rows))
    uses = judge_of(PROBLEM).try_uses(Candidate(source, "cpp"))
    found = {use.name: use for use in uses if use.outcome != "holds"}
    assert set(found) == {"inputs of any layout"}
    assert where in found["inputs of any layout"].detail


def test_uses_of_an_honest_kernel_hold_on_every_workload(judge_of):
    uses = judge_of(PROBLEM).try_uses(Candidate(HONEST, "cpp"))
    assert {use.outcome for use in uses} == {"holds"}


class TestWorkloads:
    def test_each_has_its_facts(self, judge_of):
        facts = judge_of(PROBLEM).prepare()
        small, large, single = facts.workloads
        assert [w.name for w in facts.workloads] == ["small", "large", "single"]
        assert large.outputs[0].shape == (300, 64)
        assert small.baselines_us["eager"] > 0
        assert single.baselines_us == {}
        assert "large/own-0" in facts.input_sets
        assert facts.labels["uniform-inputs"] == "its benchmark draws so"
        mean = (small.baselines_us["eager"] * large.baselines_us["eager"]) ** 0.5
        assert facts.baselines_us["eager"] == pytest.approx(mean)

    def test_a_right_candidate_is_timed_on_those_that_count(self, judge_of):
        verdict = passed(judge_of(PROBLEM), candidate())
        small, large = verdict.workloads
        assert (small.name, large.name) == ("small", "large")
        timing = verdict.timing
        mean = (small.timing.speedup * large.timing.speedup) ** 0.5
        assert timing.speedup == pytest.approx(mean)
        assert timing.speedup_ci[0] <= timing.speedup <= timing.speedup_ci[1]
        assert timing.time_us == pytest.approx((small.timing.time_us * large.timing.time_us) ** 0.5)
        assert [w["name"] for w in evaluation_to_json(verdict)["workloads"]] == ["small", "large"]

    @pytest.mark.parametrize("rows", [300, 1])
    def test_a_candidate_wrong_on_one_is_wrong(self, judge_of, rows):
        wrong = candidate(
            "return torch.softmax(x * self.scale, -1)",
            f"y = torch.softmax(x * self.scale, -1)\n"
            f"        return y + 0.01 if len(x) == {rows} else y",
        )
        verdict = failed(judge_of(PROBLEM), wrong)
        assert verdict.status == "wrong_output"
        assert isinstance(verdict.feedback, Mismatch)
        name = "large" if rows == 300 else "single"
        assert verdict.feedback.inputs.startswith(f"{name}/")

    def test_a_cache_of_one_workload_does_not_serve_another(self, judge_of):
        stale = candidate(
            "return torch.softmax(x * self.scale, -1)",
            "self.y = getattr(self, 'y', None)\n"
            "        if self.y is None or self.y.shape != x.shape:\n"
            "            self.y = torch.softmax(x * self.scale, -1)\n"
            "        return self.y",
        )
        assert failed(judge_of(PROBLEM), stale).status == "wrong_output"


class TestCaptured:
    """Cheats that know the one captured example: its zeros, and its output."""

    SOURCE = textwrap.dedent(
        """
        import torch
        from torch import nn

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(64, 32)
                self.linear = nn.Linear(32, 16)

            def forward(self, x):
                return self.linear(x if x.is_floating_point() else self.embed(x))
        """
    )

    def judged(self, judge_of, folder, x, body=""):
        torch.save({"args": [x], "kwargs": {}}, folder / "captured.pt")
        workload = Workload("captured", file=str(folder / "captured.pt"))
        problem = Problem("example", self.SOURCE, "cpp", "cpu", (workload,))
        source = self.SOURCE.replace("class Model(", "class ModelNew(")
        passed(judge_of(problem), Candidate(source, "cpp"))
        line = "        return self.linear(x if x.is_floating_point() else self.embed(x))"
        assert line in source
        cheat = source.replace(line, textwrap.indent(textwrap.dedent(body), " " * 8))
        return failed(judge_of(problem), Candidate(cheat, "cpp"))

    @pytest.mark.slow
    def test_padding_of_the_example_cannot_be_left_out(self, judge_of, tmp_path):
        x = torch.randn(64, 32)
        x[:, 8:] = 0
        body = """
        return nn.functional.linear(x[:, :8], self.linear.weight[:, :8], self.linear.bias)
        """
        assert self.judged(judge_of, tmp_path, x, body).status == "wrong_output"

    def test_the_output_for_a_few_tokens_cannot_be_kept(self, judge_of, tmp_path):
        body = """
        if not hasattr(self, "kept"):
            self.kept = self.linear(self.embed(x))
        return self.kept.clone()
        """
        x = torch.tensor([[3, 17, 5, 60, 2, 41]])
        assert self.judged(judge_of, tmp_path, x, body).status == "wrong_output"


class TestTolerances:
    LOOSE = candidate("x * self.scale, -1)", "x * self.scale, -1) * (1 + 3e-3)")

    def checked(self, rtol, precision="half", matched=1.0):
        tolerance = Tolerance(rtol, 1e-6, "TestBench", matched)
        checks = Checks(precision, tolerances=(tolerance,))
        return replace(PROBLEM, workloads=(Workload(),), checks=checks)

    def test_a_candidate_that_meets_them_and_its_class_passes(self, judge_of):
        assert passed(judge_of(self.checked(1e-2)), self.LOOSE).precision == "half"

    def test_the_reason_names_the_source_of_a_missed_tolerance(self, judge_of):
        judge = judge_of(self.checked(1e-3))
        assert passed(judge, candidate()).precision == "fp32"
        verdict = failed(judge, self.LOOSE)
        assert verdict.status == "wrong_output"
        assert "misses the tolerance of TestBench" in verdict.reason
        assert "rtol 0.001; it asks for 100.00%" in verdict.reason

    def test_a_tolerance_does_not_widen_the_class(self, judge_of):
        verdict = failed(judge_of(self.checked(1e-1, "fp32")), self.LOOSE)
        assert "fp32 allows" in verdict.reason

    def test_a_likeness_is_asked_beside_the_class(self, judge_of):
        def alike(rmse):
            bound = Likeness(0.99, 0.1, rmse, "TestBench")
            checks = Checks("half", likenesses=(bound,))
            return replace(self.checked(1.0), checks=checks)

        assert passed(judge_of(alike(1e-2)), self.LOOSE).precision == "half"
        verdict = failed(judge_of(alike(1e-4)), self.LOOSE)
        assert verdict.status == "wrong_output"
        assert "less like the reference's than TestBench asks" in verdict.reason
        with pytest.raises(BadProblemError, match="own half run misses a bound"):
            judge_of(alike(0.0))

    @pytest.mark.slow
    def test_a_share_of_the_elements_may_miss(self, judge_of):
        one = candidate(
            "return torch.softmax(x * self.scale, -1)",
            "y = torch.softmax(x * self.scale, -1)\n"
            "        y[..., 0] *= 1 + 3e-3\n"
            "        return y",
        )
        assert failed(judge_of(self.checked(1e-3)), one).status == "wrong_output"
        passed(judge_of(self.checked(1e-3, matched=0.95)), one)

    def test_a_tolerance_that_pytorch_misses_refuses_the_problem(self, judge_of):
        with pytest.raises(BadProblemError, match="fp32 run misses the tolerance of TestBench"):
            judge_of(
                replace(
                    self.checked(0.0, "fp32"),
                    checks=Checks(tolerances=(Tolerance(1e-12, 0.0, "TestBench"),)),
                )
            )
