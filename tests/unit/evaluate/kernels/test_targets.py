"""The GPUs that are judged for without one."""

import pytest

from adaexplore.evaluate.kernels.targets import TARGETS


@pytest.mark.parametrize(
    ("name", "capability", "gpu", "multiprocessors"),
    [
        ("sm_80", (8, 0), "A100", 108),
        ("sm_90", (9, 0), "H200", 132),
        ("sm_100", (10, 0), "B200", 148),
    ],
)
def test_a_target_is_the_gpu_of_its_name(name, capability, gpu, multiprocessors):
    target = TARGETS[name]
    assert (target.name, target.capability) == (name, capability)
    assert gpu in target.gpu
    assert target.multiprocessors == multiprocessors


@pytest.mark.parametrize("name", TARGETS)
def test_looser_products_are_faster_and_all_take_longer_than_their_data(name):
    target = TARGETS[name]
    assert target.flops["fp32"] < target.flops["tf32"] < target.flops["half"]
    # 2 products of a number read from memory take less time than reading its 4 bytes.
    assert 2 / target.flops["fp32"] < 4 / target.bandwidth
    assert target.l2_bytes < target.memory_bytes
