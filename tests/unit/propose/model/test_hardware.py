import pytest
from asked import CPU, H200

from adaexplore.core.environment import Environment
from adaexplore.core.problem import Problem
from adaexplore.evaluate.kernels.targets import TARGETS
from adaexplore.propose.model.hardware import LIMITS, SHEETS, hardware_of


def problem(device, target=None):
    return Problem("p", "", "triton", device, target=target)


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda t: t.name)
def test_data_sheets_equal_those_of_the_offline_judge(target):
    hardware = hardware_of(problem("cpu", target.name), Environment.from_json(CPU))
    sheet = SHEETS[target.gpu]
    assert (hardware.name, hardware.sheet) == (target.gpu, sheet)
    assert sheet.bandwidth == target.bandwidth
    assert {"fp32": sheet.fp32, "tf32": sheet.tf32, "half": sheet.half} == target.flops
    assert LIMITS[hardware.capability].shared_bytes == target.shared_bytes
    assert LIMITS[hardware.capability].threads == target.threads
    assert hardware.multiprocessors == target.multiprocessors
    assert hardware.l2_bytes == target.l2_bytes


def test_a_gpu_comes_from_the_recorded_environment():
    hardware = hardware_of(problem("cuda:0"), Environment.from_json(H200))
    assert (hardware.is_gpu, hardware.has_tf32) == (True, True)
    assert (hardware.multiprocessors, hardware.l2_bytes) == (132, 60 << 20)


@pytest.mark.parametrize(
    ("capability", "tf32", "tma"),
    [("7.5", False, False), ("8.9", True, False), ("10.0", True, True)],
)
def test_features_follow_the_compute_capability(capability, tf32, tma):
    hardware = hardware_of(
        problem("cuda:0"), Environment.from_json({**H200, "compute_capability": capability})
    )
    assert (hardware.has_tf32, hardware.has_tma) == (tf32, tma)


def test_an_unknown_gpu_has_no_data_sheet_and_no_limits():
    hardware = hardware_of(problem("cuda:0"), Environment.from_json({}))
    assert hardware.is_gpu
    assert not hardware.has_tf32
    assert hardware.sheet is hardware.limits is None


def test_a_part_of_a_gpu_has_no_data_sheet():
    part = {**H200, "gpu": "NVIDIA H200 MIG 1g.18gb"}
    assert hardware_of(problem("cuda:0"), Environment.from_json(part)).sheet is None


def test_a_cpu_has_its_thread_count():
    assert hardware_of(problem("cpu"), Environment.from_json(CPU)).threads == 4
    assert hardware_of(problem("cpu"), Environment.from_json({"cores": 8})).threads == 8
    assert not hardware_of(problem("cpu"), Environment.from_json({})).is_gpu
