from dataclasses import replace

import pytest
from asked import CPU, ESTIMATED, FACTS, FAILED, H200, PASSED, TIMING

from adaexplore.core.environment import Environment
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation import KernelUse, Launch, Profile, WorkloadTiming
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.propose.model.hardware import hardware_of
from adaexplore.propose.model.slowest import slowest_kernel

LAUNCH = Launch((1320, 1, 1), (256, 1, 1), 32, 0, 1.0, 0)
USE = KernelUse("matmul", "custom", 1.0, 200.0, LAUNCH, given_bytes=4e8)
ROOFLINE = ReferenceFacts.from_json(FACTS).roofline


def hardware(device="cuda:0"):
    known = CPU if device == "cpu" else H200
    return hardware_of(Problem("a", "", "triton", device), Environment.from_json(known))


def profiled(use=USE, **changes):
    rest = KernelUse("rest", "aten", 3.0, 50.0)
    return replace(PASSED, profile=Profile((use, rest), 250.0, 0.8), **changes)


def told(evaluation, roofline=ROOFLINE, device="cuda:0", precision="fp32"):
    return slowest_kernel(evaluation, roofline, hardware(device), precision).splitlines()


def test_its_share_and_what_it_achieves_of_the_measured_rates():
    assert told(profiled()) == [
        "Slowest kernel: `matmul`, 80 % of the kernels' time (200 µs, caches warm); "
        "50 % of the bandwidth if it moves each tensor that it gets once; "
        "20 % of the FLOP/s if all of the reference's products are in it."
    ]


@pytest.mark.parametrize(
    ("changes", "limit"),
    [
        ({"registers": 128}, "At most 16 of the 64 warps of a multiprocessor are its own (2"),
        ({"registers": 129}, "(1 block), limited by registers (129 a thread)."),
        ({"shared_bytes": 100 << 10}, "(2 blocks), limited by shared memory (102 kB a block)."),
        ({"block": (32, 1, 1)}, "(10 blocks), limited by its grid (1320 blocks)."),
        ({"block": (32, 1, 1), "grid": (9999,)}, "(32 blocks), limited by the number of blocks."),
        ({"grid": (64,)}, "(1 block), limited by its grid (64 blocks)."),
    ],
)
def test_the_resource_that_limits_its_occupancy(changes, limit):
    _, second = told(profiled(replace(USE, launch=replace(LAUNCH, **changes))))
    assert limit in second


def test_kernels_that_take_little_of_a_call():
    [line] = told(profiled(timing=replace(TIMING, time_us=1000.0)))
    assert "all kernels take 25 % of a call" in line


def test_several_workloads_share_the_rates_of_no_call():
    workloads = (WorkloadTiming("a", TIMING), WorkloadTiming("b", TIMING))
    [line] = told(profiled(timing=replace(TIMING, time_us=1000.0), workloads=workloads))
    assert line.endswith("each tensor that it gets once.")


def test_unknown_traffic_and_rates_are_not_told():
    [line] = told(profiled(replace(USE, given_bytes=None)), precision="half")
    assert line.endswith("(200 µs, caches warm).")
    assert told(profiled(), roofline=None) == [line]


@pytest.mark.parametrize("evaluation", [FAILED, PASSED, ESTIMATED])
def test_nothing_is_told_without_a_profile(evaluation):
    assert told(evaluation) == []


def test_nothing_is_told_on_a_cpu():
    assert told(profiled(), device="cpu") == []
