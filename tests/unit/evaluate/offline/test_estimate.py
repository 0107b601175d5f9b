"""The roofline estimate: the bytes and FLOPs of kernels and operations, and their time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from adaexplore.evaluate.kernels.count import OpCounter
from adaexplore.evaluate.kernels.targets import TARGETS
from adaexplore.evaluate.offline.estimate import estimate, least, work_of_op
from adaexplore.evaluate.wire.offline_messages import KernelWork

H200 = TARGETS["sm_90"]
N = 100_000


@pytest.fixture(scope="module")
def dry_runs():
    """The work that dry runs find in the launches of `dry_runs.py`, by name."""
    script = Path(__file__).with_name("dry_runs.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class TestDryRuns:
    def test_elementwise_traffic_is_every_element_once(self, dry_runs):
        assert dry_runs["add"]["memory_bytes"] == pytest.approx(3 * 4 * N, rel=0.02)
        assert dry_runs["add"]["programs"] == -(-N // 1024)
        assert dry_runs["add"]["flops"] == {"fp32": pytest.approx(N, rel=0.02)}

    def test_a_stride_of_a_sector_moves_a_sector_for_each_element(self, dry_runs):
        assert dry_runs["strided"]["memory_bytes"] == pytest.approx((32 + 4 + 4) * N, rel=0.02)

    def test_blocks_that_begin_within_a_sector_share_it(self, dry_runs):
        more = dry_runs["shifted"]["memory_bytes"] / dry_runs["add"]["memory_bytes"]
        assert 1 < more < 1.02

    def test_a_matrix_is_read_from_memory_once_and_from_the_cache_by_every_block(self, dry_runs):
        found = dry_runs["matmul float32 ieee"]
        m, n, k, block = 256, 128, 512, 64
        assert found["memory_bytes"] == 4 * (m * k + k * n + m * n)
        assert found["cache_bytes"] == 4 * (m * k * n // block + k * n * m // block + m * n)

    @pytest.mark.parametrize(
        ("name", "kind", "products"),
        [
            ("float32 ieee", "fp32", 1),
            ("float32 tf32", "tf32", 1),
            ("float32 tf32x3", "tf32", 3),
            ("float16 ieee", "half", 1),
        ],
    )
    def test_products_are_counted_where_they_are_computed(self, dry_runs, name, kind, products):
        assert dry_runs[f"matmul {name}"]["flops"] == {kind: products * 2 * 256 * 128 * 512}

    def test_without_time_for_one_program_the_work_is_partial(self, dry_runs):
        found = dry_runs["slow"]
        assert found["partial"]
        assert 0 < found["memory_bytes"] < 4 * (1 << 20)
        assert 0 < found["flops"]["fp32"] < 8 * (1 << 20)

    def test_with_time_for_a_few_programs_the_work_is_complete(self, dry_runs):
        found = dry_runs["not slow"]
        assert not found["partial"]
        assert found["flops"] == {"fp32": 8 * 1024}

    def test_indices_without_data_raise_no_error(self, dry_runs):
        assert dry_runs["histogram"]["memory_bytes"] >= 4 * 4096


def works(module, *inputs, precision="fp32"):
    """The works of a module's operations on meta tensors."""
    tensors = [torch.empty(shape, device="meta") for shape in inputs]
    module.to("meta")
    with torch.no_grad(), OpCounter() as counter:
        module(*tensors)
    return [work_of_op(op, precision) for op in counter.ops]


class TestOperations:
    def test_a_linear_layer(self):
        (work,) = works(nn.Linear(512, 128), (64, 512))
        assert work.flops == {"fp32": 2 * 64 * 512 * 128}
        assert work.memory_bytes == 4 * (64 * 512 + 512 * 128 + 128 + 64 * 128)

    def test_the_precision_class_decides_the_kind_of_product(self):
        (work,) = works(nn.Linear(512, 128), (64, 512), precision="tf32")
        assert set(work.flops) == {"tf32"}

    def test_a_convolution(self):
        (work,) = works(nn.Conv2d(8, 16, 3, bias=False), (2, 8, 10, 12))
        assert work.flops == {"fp32": 2 * 2 * 16 * 8 * 10 * 9 * 8}

    def test_views_and_allocations_do_no_work(self):
        class Viewed(nn.Module):
            def forward(self, x):
                torch.empty_like(x)
                return x.view(-1, 4).transpose(0, 1)[1:].unsqueeze(0)

        assert works(Viewed(), (4, 8)) == []

    def test_an_expanded_tensor_is_read_once(self):
        class Scaled(nn.Module):
            def forward(self, x, scale):
                return x * scale.expand(x.shape)

        (work,) = works(Scaled(), (256, 64), (1, 64))
        assert work.memory_bytes == 4 * (256 * 64 + 64 + 256 * 64)

    def test_in_place_operations_work(self):
        class Added(nn.Module):
            def forward(self, x, y):
                return x.add_(y)

        (work,) = works(Added(), (256, 64), (256, 64))
        assert work.memory_bytes >= 3 * 4 * 256 * 64


class TestTime:
    def test_a_copy_is_bound_by_memory_bandwidth(self):
        found = estimate([KernelWork(H200.bandwidth, H200.bandwidth, {})], H200)
        assert (found.bound_by, found.target) == ("memory", "sm_90")
        assert found.time_us == pytest.approx(1e6)

    @pytest.mark.parametrize("kind", ["fp32", "tf32", "half"])
    def test_a_large_product_is_bound_by_its_unit(self, kind):
        found = estimate([KernelWork(1e9, 1e9, {kind: H200.flops[kind]})], H200)
        assert found.bound_by == "compute"
        assert found.time_us == pytest.approx(1e6)

    def test_small_kernels_cost_their_launches(self):
        found = estimate([KernelWork(1e3, 1e3, {})] * 7, H200)
        assert found.bound_by == "overhead"
        assert found.time_us == 7 * 5.0  # microseconds a launch

    def test_launches_hide_behind_long_kernels(self):
        alone = estimate([KernelWork(1e9, 1e9, {})], H200)
        with_small = estimate([KernelWork(1e9, 1e9, {}), KernelWork(4.0, 4.0, {})], H200)
        assert with_small.time_us == pytest.approx(alone.time_us)

    def test_repeated_reads_are_bound_by_cache_bandwidth(self):
        once = estimate([KernelWork(1e9, 1e9, {}, programs=10_000)], H200)
        often = estimate([KernelWork(1e9, 1e11, {}, programs=10_000)], H200)
        assert often.time_us > 5 * once.time_us

    def test_an_estimate_of_partial_work_is_partial(self):
        whole, part = KernelWork(1e9, 1e9, {}), KernelWork(1e9, 1e9, {}, partial=True)
        assert not estimate([whole, whole], H200).partial
        assert estimate([whole, part], H200).partial
        assert estimate([KernelWork(1.0, 1.0, {}, partial=True)], H200).partial

    def test_the_least_of_a_problem_is_its_roofline(self):
        moving = least(4_800_000_000, 0, precision="fp32", target=H200)
        assert (moving.time_us, moving.bound_by) == (pytest.approx(1000.0), "memory")
        computing = least(1, 67_000_000_000, precision="half", target=H200)
        assert (computing.time_us, computing.bound_by) == (pytest.approx(67 / 989e-3), "compute")
        assert least(1, 1, precision="fp32", target=H200).time_us == 5.0

    def test_few_programs_leave_multiprocessors_idle(self):
        few, many = (
            estimate([KernelWork(1e6, 1e6, {"tf32": 1e12}, programs=n)], H200) for n in (33, 132)
        )
        assert few.time_us == pytest.approx(4 * many.time_us)

    @given(
        memory=st.floats(0, 1e12),
        flops=st.floats(0, 1e15),
        more=st.floats(1, 1e12),
        programs=st.none() | st.integers(1, 10_000),
    )
    def test_more_work_never_takes_less_time(self, memory, flops, more, programs):
        def time_us(memory, flops):
            return estimate([KernelWork(memory, memory, {"fp32": flops}, programs)], H200).time_us

        assert time_us(memory + more, flops) >= time_us(memory, flops)
        assert time_us(memory, flops + more) >= time_us(memory, flops)
