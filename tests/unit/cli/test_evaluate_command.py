import json

import pytest

from adaexplore.sandbox.process import ForkServer

KEYS = {
    "status",
    "precision",
    "error",
    "absolute_error",
    "time_us",
    "time_ci_us",
    "baselines_us",
    "speedup",
    "speedup_ci",
    "claim",
    "too_noisy",
    "speedup_eager",
    "speedup_compile",
    "strongest",
    "samples",
    "waited",
    "allowance",
    "parent",
    "conditions",
    "problem_labels",
    "taken_over",
    "estimate",
    "descriptor",
    "workloads",
    "uses",
    "labels",
    "profile",
    "roofline",
    "reason",
    "loaded",
    "published",
    "fault",
    "mismatch",
    "detail",
    "cost",
}


class TestJson:
    @pytest.mark.usefixtures("whole_judges")
    def test_a_right_candidate_is_one_object_and_nothing_else(self, adaexplore, problem, candidate):
        result = adaexplore("evaluate", problem, candidate, "--device", "cpu", "--json")
        assert result.code == 0
        assert len(result.out.splitlines()) == 1
        verdict = json.loads(result.out)
        assert verdict.keys() == KEYS
        assert (verdict["status"], verdict["precision"], verdict["reason"]) == (
            "passed",
            "fp32",
            "",
        )
        low, high = verdict["time_ci_us"]
        assert 0 < low <= verdict["time_us"] <= high
        assert verdict["baselines_us"].keys() == {"eager", "compile"}
        assert {"name": "pickle", "outcome": "holds", "detail": ""} in verdict["uses"]

    @pytest.mark.parametrize(
        ("source", "status"),
        [
            ("def ModelNew(:", "compile_error"),
            ("import torch\nclass ModelNew(torch.nn.Module):\n    pass\n", "runtime_error"),
            (
                "import torch\nclass ModelNew(torch.nn.Module):\n"
                "    def forward(self, x):\n        return x * 0\n",
                "wrong_output",
            ),
        ],
    )
    def test_so_is_a_wrong_one_with_exit_code_0(self, adaexplore, problem, file, source, status):
        wrong = file("wrong.py", source)
        result = adaexplore("evaluate", problem, wrong, "--device", "cpu", "--json")
        assert result.code == 0
        verdict = json.loads(result.out)
        assert verdict.keys() == KEYS
        assert verdict["status"] == status
        assert verdict["reason"]
        assert verdict["time_us"] is verdict["speedup"] is None


class TestMinSpeedup:
    """The exit code for continuous integration."""

    @pytest.mark.parametrize(("least", "code"), [("0.001", 0), ("1000", 1)])
    def test_a_right_candidate(self, adaexplore, problem, candidate, least, code):
        words = ["evaluate", problem, candidate, "--device", "cpu", "--json"]
        result = adaexplore(*words, "--min-speedup", least)
        assert result.code == code
        assert json.loads(result.out)["status"] == "passed"
        assert ("falls short of --min-speedup 1000" in result.err) == bool(code)

    def test_a_wrong_candidate_falls_short_of_any(self, adaexplore, problem, file):
        wrong = file("wrong.py", "x = 1\n[not python")
        words = ["evaluate", problem, wrong, "--device", "cpu", "--min-speedup", "0.001"]
        result = adaexplore(*words)
        assert result.code == 1
        assert "no measured speedup" in result.err

    @pytest.mark.parametrize("least", ["nan", "-1", "0", "inf"])
    def test_a_number_that_turns_it_off_or_on_for_all(self, adaexplore, least):
        line = adaexplore("evaluate", "no.py", "such.py", "--min-speedup", least).complaint
        assert f"--min-speedup {least}: write a positive number, such as 1.2" in line


class TestNothingToJudge:
    """It is refused before any process starts."""

    @pytest.fixture(autouse=True)
    def _no_process(self, adaexplore, monkeypatch):
        monkeypatch.setattr(ForkServer, "start", lambda *_: pytest.fail("a server was started"))

    @pytest.mark.parametrize(
        ("source", "found"), [("", "no class and no function"), ("class New: ...", "class New")]
    )
    def test_a_file_without_a_kernel(self, adaexplore, problem, file, source, found):
        wrong = file("wrong.py", source)
        line = adaexplore("evaluate", problem, wrong, "--device", "cpu").complaint
        assert f"{wrong}: The module does not define ModelNew at its top level; found: " in line
        assert line.endswith(f"{found}.")

    @pytest.mark.parametrize("option", ["--flashinfer", "--sol"])
    def test_a_problem_of_no_dataset_for_one(
        self, adaexplore, problem, candidate, tmp_path, option
    ):
        line = adaexplore("evaluate", problem, candidate, option, tmp_path / "out").complaint
        assert f"{option}: {problem} is of no dataset; give a dataset and --definition" in line

    def test_a_training_step_for_a_dataset(self, adaexplore, problem, candidate, tmp_path):
        asked = ("--with-backward", "--flashinfer", tmp_path / "out")
        line = adaexplore("evaluate", problem, candidate, *asked).complaint
        assert "--flashinfer: takes times of forward alone; leave out --with-backward" in line


class TestText:
    def test_a_right_candidate(self, adaexplore, problem, candidate):
        result = adaexplore("evaluate", problem, candidate, "--device", "cpu")
        assert result.code == 0
        verdict, error, *_ = result.out.splitlines()
        assert "×, fp32-accurate, against" in verdict
        assert "95 % interval" in verdict
        assert verdict.endswith("of the roofline")
        assert error.startswith("error ")
        assert "aten::clamp" in result.out  # where its time goes

    def test_a_wrong_one(self, adaexplore, problem, file):
        wrong = file("wrong.py", "x = 1\n[not python")
        result = adaexplore("evaluate", problem, wrong, "--device", "cpu")
        assert result.code == 0
        assert result.out.startswith("compile_error: SyntaxError")
        assert result.out.splitlines()[1] == "line 2: [not python"

    def test_where_an_output_is_wrong(self, adaexplore, problem, file):
        source = (
            "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
            "        out = torch.relu(x) + 1\n        out[:, 60:] *= 2\n        return out\n"
        )
        result = adaexplore("evaluate", problem, file("half.py", source), "--device", "cpu")
        assert result.out.startswith("wrong_output: output is off by")
        pattern = "pattern: the right values times 2; the last 4 of 64 indices of axis 1"
        assert pattern in result.out.splitlines()

    def test_a_time_limit_can_be_set(self, adaexplore, problem, file):
        slow = file("slow.py", "import time\ntime.sleep(600)\nclass ModelNew: ...\n")
        words = ["evaluate", problem, slow, "--device", "cpu", "--set", "timeout_s=0.5"]
        assert adaexplore(*words).out.startswith("timeout: not done after 0.5 s")


def test_a_reference_that_kills_its_process_is_bad_input(adaexplore, file, candidate):
    deadly = file(
        "deadly.py",
        "import os\nclass Model: ...\ndef get_inputs(): ...\nos._exit(0)\n",
    )
    result = adaexplore("evaluate", deadly, candidate, "--device", "cpu", "--json")
    assert "deadly.py: importing and constructing Model ended its process" in result.complaint


class TestWithoutGpu:
    @pytest.fixture
    def double(self, file):
        return file(
            "double.py",
            """
            import torch, triton, triton.language as tl

            @triton.jit
            def double(x, out, n, BLOCK: tl.constexpr):
                at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
                v = tl.load(x + at, mask=at < n)
                tl.store(out + at, tl.maximum(v, 0.0) + 1, mask=at < n)

            class ModelNew(torch.nn.Module):
                def forward(self, x):
                    out = torch.empty_like(x)
                    double[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
                    return out
            """,
        )

    def test_a_pass_is_estimated_and_has_no_time(self, adaexplore, problem, double):
        result = adaexplore("evaluate", problem, double, "--target", "sm_100", "--json")
        verdict = json.loads(result.out)
        assert verdict.keys() == KEYS
        assert (verdict["status"], verdict["reason"]) == ("passed", "")
        assert verdict["time_us"] is verdict["speedup"] is None
        assert verdict["estimate"]["target"] == "sm_100"
        assert verdict["estimate"]["time_us"] > 0

    def test_it_is_said_that_nothing_was_measured(self, adaexplore, problem, double):
        words = ["evaluate", problem, double, "--device", "cpu", "--language", "triton"]
        result = adaexplore(*words)
        assert "not measured" in result.out
        assert "sm_90, an estimate" in result.out
