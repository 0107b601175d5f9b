from dataclasses import replace

import pytest

from adaexplore.core.text.feedback import render, verdict, without_autotunings
from adaexplore.core.verdict.evaluation import (
    Autotuning,
    Conditions,
    Estimate,
    Failed,
    Fault,
    KernelUse,
    Launch,
    Mismatch,
    Paired,
    Passed,
    Profile,
    Roofline,
    Timing,
    TriedConfiguration,
)
from adaexplore.core.verdict.uses import Use

TIMING = Timing(
    312.0, (310.0, 314.0), {"eager": 624.0, "compile": 561.6}, 1.8, (1.76, 1.83), 2.0, 90
)
KERNEL = KernelUse(
    "softmax_kernel", "custom", 1.0, 240.0, Launch((4096, 1, 1), (128, 1, 1), 40, 16384, 0.75, 16)
)
PASSED = Passed(
    "fp32",
    3.1e-7,
    TIMING,
    labels=("library:cublas", "an-unknown-label"),
    profile=Profile((KERNEL, KernelUse("ampere_sgemm", "cublas", 2.5, 60.0)), 300.0, 0.8),
    roofline=Roofline(221.5, "memory", 0.71, 3.3e12, 0.0),
)


def test_uses_follow_the_labels():
    lines = render(replace(PASSED, uses=(Use("pickle", "refuses", "TypeError: no"),))).splitlines()
    assert lines[lines.index("an-unknown-label") + 1] == (
        "refuses, by an exception: pickle (TypeError: no)"
    )


class TestVerdict:
    def test_a_speedup_names_precision_baseline_interval_and_roofline(self):
        assert verdict(PASSED) == (
            "1.80×, fp32-accurate, against torch.compile, the strongest baseline, "
            "95 % interval 1.76–1.83, 71 % of the roofline"
        )

    @pytest.mark.parametrize(
        ("baselines_us", "name"),
        [
            ({"eager": 624.0}, "PyTorch eager"),
            ({"eager": 624.0, "compile-max-autotune": 562.0}, "torch.compile (max-autotune)"),
            ({"compile": 624.0, "eager-cuda-graph": 562.0}, "PyTorch eager (cuda-graph)"),
        ],
    )
    def test_the_strongest_baseline_is_named(self, baselines_us, name):
        timing = replace(TIMING, baselines_us=baselines_us, strongest="")
        line = verdict(replace(PASSED, timing=timing))
        assert f"against {name}, the strongest baseline" in line

    @pytest.mark.parametrize(
        ("interval", "words"),
        [((1.006, 10.2), "≥ 1.006×, fp32"), ((0.06, 6.4), "too noisy to tell: ≥ 0.06×, fp32")],
    )
    def test_a_noisy_speedup_is_its_lower_end(self, interval, words):
        noisy = replace(PASSED, timing=replace(TIMING, speedup_ci=interval))
        assert verdict(noisy).startswith(words)
        assert "the interval is wide: its lower end is all that may be claimed" in render(noisy)
        assert "the interval is wide" not in render(PASSED)

    def test_a_quiet_speedup_of_short_calls_is_not_called_noisy(self):
        short = replace(TIMING, time_us=8.0, speedup_ci=(0.9, 1.9), allowance=(0.51, 1.03))
        text = render(replace(PASSED, timing=short))
        assert text.startswith("≥ 0.918×, fp32-accurate")
        assert "the strongest baseline, measured 1.80×, 95 % interval 0.900–1.90" in text
        assert text.count("calls of 8.00 µs: 3 µs of each are not proven") == 1
        assert "noisy" not in text
        assert "is wide" not in text

    def test_an_estimate_is_not_a_speedup(self):
        line = verdict(Passed("tf32", 1e-4, Estimate(12.0, "compute", "sm_80")))
        assert line == (
            "correct, tf32-accurate, not measured: ≈ 12.0 µs on sm_80, an estimate (compute-bound)"
        )
        assert "×" not in line

    def test_a_partial_estimate_is_labelled(self):
        line = verdict(Passed("fp32", 1e-7, Estimate(12.0, "memory", "sm_80", partial=True)))
        assert line.endswith("≥ 12.0 µs on sm_80, an estimate of a part (memory-bound)")

    def test_a_failure_gives_its_reason(self):
        assert verdict(Failed("rejected", "it cheats")) == "rejected: it cheats"


class TestRender:
    def test_kernels_are_listed_with_their_launches(self):
        lines = render(PASSED).splitlines()
        assert lines[0] == verdict(PASSED)
        assert lines[1] == "error 3.1e-7 against float64"
        assert lines[2].startswith("312 µs (median of 90 calls); eager 624 µs, compile 562 µs")
        assert lines[3] == "roofline: at least 222 µs (memory); it achieves 3.30 TB/s"
        assert lines[4] == "library:cublas: part of the work is cuBLAS's"
        assert lines[5] == "an-unknown-label"
        assert " ".join(lines[7].split()) == (
            "80 % 240 µs 1 custom softmax_kernel grid 4096x1x1, block 128x1x1, 40 registers, "
            "16 B spilled, 16.4 kB shared, occupancy 75 %"
        )
        assert " ".join(lines[8].split()) == "20 % 60.0 µs 2.5 cublas ampere_sgemm"

    def test_a_parent_and_a_throttled_device_are_reported(self):
        timing = replace(
            TIMING,
            parent=Paired(400.0, 1.28, (1.2, 1.35)),
            conditions=Conditions(0.5, 1200, 88, ("power cap",)),
        )
        lines = render(replace(PASSED, timing=timing)).splitlines()
        assert lines[3] == "1.28× over its parent candidate (95 % interval 1.20–1.35)"
        assert lines[4] == "measured while the device was throttled: power cap"

    def test_a_long_list_ends_with_the_number_of_omitted_kernels(self):
        many = Profile(tuple(replace(KERNEL, name=f"k{i}") for i in range(20)), 4800.0, 1.0)
        assert render(replace(PASSED, profile=many)).splitlines()[-1] == "and 8 more"

    def test_what_an_autotuner_tried_is_one_line(self):
        fast, slow = (TriedConfiguration((f"{n}", "4"), 1.5 * n) for n in (64, 128))
        search = Autotuning("matmul", "M=256", ("BLOCK", "num_warps"), (fast, slow), 6, 1)
        plain = replace(search, arguments="", tried=2, refused=0)
        profile = replace(PASSED.profile, autotunings=(search, plain))
        text = render(replace(PASSED, profile=profile))
        assert text.splitlines()[-2:] == [
            "the autotuner of matmul tried for M=256 (BLOCK, num_warps): "
            "(64, 4) 96.0 µs, (128, 4) 192 µs; of 6, 3 slower and 1 could not run",
            "the autotuner of matmul tried (BLOCK, num_warps): (64, 4) 96.0 µs, (128, 4) 192 µs",
        ]
        assert without_autotunings(replace(PASSED, profile=profile)) == render(PASSED)

    def test_a_fault_is_shown_with_its_line(self):
        fault = Fault("CompilationError", "power of 2", 12, "i = tl.arange(0, 100)", "k2")
        text = render(Failed("compile_error", "CompilationError: power of 2", feedback=fault))
        assert text.splitlines()[1] == "line 12 in k2: i = tl.arange(0, 100)"

    def test_a_fault_outside_the_source_adds_no_line(self):
        assert (
            len(render(Failed("runtime_error", "no", feedback=Fault("E", "no"))).splitlines()) == 1
        )

    @pytest.mark.parametrize(
        ("share", "text"),
        [
            (0.125, "12 % of its elements are wrong; the first wrong is [0, 5]"),
            (0.0, "the worst is"),
        ],
    )
    def test_a_mismatch_is_shown_with_its_first_element(self, share, text):
        found = Mismatch("output", "own-0", share, (0, 5), float("nan"), 2.5, 7, "zero; everywhere")
        lines = render(Failed("wrong_output", "off", feedback=found)).splitlines()
        assert text in lines[1]
        assert lines[1].endswith("got nan, expected 2.5")
        assert lines[2:] == ["7 elements are NaN and should not be", "pattern: zero; everywhere"]
