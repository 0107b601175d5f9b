import textwrap

import pytest
import torch

from adaexplore.evaluate.timing import roofline
from adaexplore.evaluate.timing.clock import CpuClock
from adaexplore.evaluate.timing.operations import CPU_SHAPES, packed_product
from adaexplore.evaluate.timing.roofline import Peaks, RooflineModel, Work, measure_peaks, work_of
from adaexplore.sandbox.user.user_code import Instance

PEAKS = Peaks(
    bytes_per_s=4e12, flops_per_s={"fp32": 50e12, "tf32": 400e12, "half": 800e12}, overhead_us=3.0
)


def light(precision="fp32", **work):
    numbers = {"bytes": 0, "flops": 0, "unavoidable_bytes": 0} | work
    return RooflineModel(Work(**numbers), PEAKS, precision)


class TestFloor:
    def test_the_largest_limit_is_the_floor(self):
        assert (light(bytes=4 * 10**8).floor_us, light(bytes=4 * 10**8).bound_by) == (
            pytest.approx(100.0),
            "memory",
        )
        assert (light(bytes=4).floor_us, light(bytes=4).bound_by) == (3.0, "overhead")
        assert light(bytes=4 * 10**8, flops=10**12).bound_by == "compute"

    @pytest.mark.parametrize(
        ("precision", "rate"),
        [("fp32", 800e12 / 3), ("tf32", 800e12), ("half", 800e12)],  # bf16x3; scaled fp16; bf16
    )
    def test_the_fastest_product_that_is_precise_enough_counts(self, precision, rate):
        assert light(precision, flops=10**12).floor_us == pytest.approx(1e18 / rate)

    def test_a_measured_time_against_it(self):
        roofline = light(bytes=4 * 10**8, flops=10**9).roofline(200.0)
        assert (roofline.floor_us, roofline.bound_by) == (pytest.approx(100.0), "memory")
        assert roofline.share == pytest.approx(0.5)
        assert roofline.bytes_per_s == pytest.approx(2e12)
        assert roofline.flops_per_s == pytest.approx(5e12)


class TestObjection:
    def test_a_time_that_the_memory_forbids(self):
        limit = light(bytes=9, unavoidable_bytes=4 * 10**8)
        assert limit.objection(51.0) is None
        assert limit.objection(49.0).startswith("faster than the memory allows: 49 us for 381 MiB")

    def test_what_may_be_left_out_forbids_nothing(self):
        assert light(bytes=4 * 10**12, flops=10**18).objection(1e-3) is None

    @pytest.mark.parametrize("work", [{"flops": 10**12}, {"bytes": 4 * 10**10}])
    def test_less_work_than_the_reference_is_a_label_not_a_verdict(self, work):
        limit = light(**work)
        assert limit.labels(0.8 * limit.floor_us) == ("algebra",)
        assert limit.labels(0.9 * limit.floor_us) == ()  # the peaks are no law

    def test_no_work_is_beyond_the_overhead_by_less_overhead(self):
        assert light(bytes=4).labels(0.1) == ()


HEADER = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


@pytest.fixture
def work(tmp_path, monkeypatch):
    """The work of a model on inputs; as on a GPU whose cache holds nothing, if asked."""

    def work(body, inputs, build="", *, on_gpu=False, precision="fp32"):
        source = HEADER + textwrap.dedent(f"""
            class Model(nn.Module):
                def __init__(self):
                    super().__init__()
                    {build or "pass"}
                def forward(self, *xs):
                    x = xs[0]
                    {body}
            def get_inputs():
                return [{inputs}]
        """)
        instance = Instance.load(
            source, "Model", device="cpu", seed=0, mode="eval", folder=tmp_path
        )
        inputs = instance.inputs(0)
        if on_gpu:
            gpu = type("Properties", (), {"L2_cache_size": 0})
            monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: gpu)
            object.__setattr__(instance, "device", torch.device("cuda"))
        return work_of(instance, inputs, precision)

    return work


class TestWork:
    def test_a_linear_layer(self, work):
        found = work("return self.l(x)", "torch.randn(64, 128)", "self.l = nn.Linear(128, 32)")
        assert found.bytes == 4 * (64 * 128 + 128 * 32 + 32 + 64 * 32)
        assert found.flops == 2 * 64 * 128 * 32
        assert found.unavoidable_bytes == 0  # a CPU may have it all in its cache

    @pytest.mark.parametrize(("precision", "width"), [("fp32", 4), ("tf32", 2), ("half", 2)])
    def test_weights_count_as_a_constructor_may_pack_them(self, work, precision, width):
        found = work(
            "return self.l(x)",
            "torch.randn(64, 128)",
            "self.l = nn.Linear(128, 32)",
            precision=precision,
        )
        assert found.bytes == 4 * (64 * 128 + 64 * 32) + width * (128 * 32 + 32)

    def test_inputs_that_matter_and_outputs_that_are_made_are_unavoidable(self, work):
        found = work("return torch.sigmoid(x)", "torch.randn(64, 128)", on_gpu=True)
        assert found.unavoidable_bytes == 2 * 4 * 64 * 128

    def test_softmax_has_a_derivative_in_most_directions(self, work):
        found = work("return x.softmax(-1)", "torch.randn(64, 128)", on_gpu=True)
        assert found.unavoidable_bytes == 2 * 4 * 64 * 128

    def test_what_is_not_looked_at_may_be_left_alone(self, work):
        found = work("return x[:, :32].exp()", "torch.randn(64, 128)", on_gpu=True)
        assert found.unavoidable_bytes == 2 * 4 * 64 * 32

    def test_a_table_is_looked_up_in_not_read(self, work):
        found = work(
            "return self.e(x).exp()", "torch.randint(9, (8,))", "self.e = nn.Embedding(10000, 16)"
        )
        assert found.bytes < 4 * 10000 * 16 / 100

    def test_pages_of_a_pool_that_are_not_read_do_not_count(self, work):
        found = work("return x[xs[1]].exp()", "torch.randn(40, 128), torch.arange(10)")
        assert found.bytes == 4 * 128 * (10 + 10) + 8 * 10

    def test_short_rows_that_happen_not_to_matter_count(self, work):
        found = work("return x.relu()", "torch.randn(512, 1)")
        assert found.bytes == 4 * 2 * 512

    def test_parameters_may_be_folded(self, work):
        found = work(
            "return self.l(x)", "torch.randn(4, 256)", "self.l = nn.Linear(256, 8)", on_gpu=True
        )
        assert found.unavoidable_bytes == 4 * (4 * 256 + 4 * 8)

    @pytest.mark.parametrize("body", ["return x", "return x.T", "return x.T.contiguous()"])
    def test_an_output_that_could_be_a_view_forbids_nothing(self, work, body):
        assert work(body, "torch.randn(64, 128)", on_gpu=True).unavoidable_bytes == 0

    def test_equal_rows_are_written_once_at_least(self, work):
        found = work(
            "return x.exp().mean(0, keepdim=True).repeat(64, 1)",
            "torch.randn(64, 128)",
            on_gpu=True,
        )
        assert found.unavoidable_bytes == 4 * (64 * 128 + 128)

    def test_a_reference_without_a_derivative_forbids_only_its_output(self, work):
        found = work("return (x * 3).argsort() * 2", "torch.randn(64, 128)", on_gpu=True)
        assert found.unavoidable_bytes == 8 * 64 * 128


class GivenTimes:
    """A clock by which each kind of call takes the next of some given times."""

    def __init__(self, *times_us):
        self._times_us = iter(times_us)

    def warm(self, call):
        pass

    def block(self, call, count, sink, ready=None):
        best = next(self._times_us)
        return [best + extra for extra in range(count)]


@pytest.fixture
def without_bf16(monkeypatch):
    monkeypatch.setattr(roofline, "has_bf16_products", lambda: False)


PRODUCTS = 2 * len(CPU_SHAPES)  # each plain, then packed


class TestPeaks:
    """In the order in which they are timed: a copy, a sum, matrix products, a tiny call."""

    def test_a_copy_moves_each_byte_twice(self, without_bf16):
        clock = GivenTimes(10.0, 10.0, *[10.0] * PRODUCTS, 10.0)
        peaks = measure_peaks("cpu", clock, 1 << 20, "fp32")
        # Half of the bytes are copied: 2^19, read and written, in 10 us.
        assert peaks.bytes_per_s == pytest.approx(2 * 524_288 / 10e-6)
        assert peaks.overhead_us == pytest.approx(10.0)

    def test_where_reading_alone_is_faster_it_sets_the_bandwidth(self, without_bf16):
        clock = GivenTimes(40.0, 10.0, *[20.0] * PRODUCTS, 5.0)
        peaks = measure_peaks("cpu", clock, 1 << 20, "fp32")
        assert peaks.bytes_per_s == pytest.approx(524_288 / 10e-6)
        assert peaks.overhead_us == pytest.approx(5.0)

    @pytest.mark.parametrize(("work_bytes", "copied"), [(0, 64 << 10), (1 << 40, 256 << 20)])
    def test_neither_a_tiny_problem_nor_a_huge_one_sets_the_size(
        self, work_bytes, copied, without_bf16
    ):
        clock = GivenTimes(10.0, 90.0, *[10.0] * PRODUCTS, 10.0)
        peaks = measure_peaks("cpu", clock, work_bytes, "fp32")
        assert peaks.bytes_per_s == pytest.approx(2 * copied / 10e-6)

    @pytest.mark.parametrize("best", range(PRODUCTS))
    def test_the_fastest_product_of_any_shape_plain_or_packed_is_the_rate(self, best, without_bf16):
        times = [1e6] * PRODUCTS
        times[best] = 10.0
        peaks = measure_peaks("cpu", GivenTimes(1.0, 1.0, *times, 1.0), 1 << 20, "fp32")
        rows, columns, inner = CPU_SHAPES[best // 2]
        rate = 2 * rows * columns * inner / 10e-6
        assert peaks.flops_per_s == {"fp32": pytest.approx(rate)}

    @pytest.mark.parametrize(
        ("precision", "in_hardware", "classes"),
        [
            ("fp32", False, {"fp32"}),
            ("half", False, {"fp32", "half"}),
            ("fp32", True, {"fp32", "half"}),  # three products in bf16 are one of fp32
            ("tf32", True, {"fp32", "half"}),
        ],
    )
    def test_classes_that_may_explain_a_time_have_their_rates(
        self, precision, in_hardware, classes, monkeypatch
    ):
        monkeypatch.setattr(roofline, "has_bf16_products", lambda: in_hardware)
        times = [1.0] * (2 + PRODUCTS * len(classes) + 1)
        peaks = measure_peaks("cpu", GivenTimes(*times), 1 << 20, precision)
        assert peaks.flops_per_s.keys() == classes

    def test_a_packed_product_is_the_product(self):
        a, weight = torch.randn(8, 16), torch.randn(4, 16)
        product = packed_product(a, weight)
        if product is None:
            pytest.skip("this PyTorch has no oneDNN")
        torch.testing.assert_close(product(), a @ weight.T)


def test_the_peaks_of_this_cpu_are_believable():
    peaks = measure_peaks("cpu", CpuClock(), 1 << 20, "fp32")
    assert 1e6 < peaks.bytes_per_s < 1e13
    assert peaks.flops_per_s.keys() >= {"fp32"}
    assert 1e6 < peaks.flops_per_s["fp32"] < 1e14
    assert 0 < peaks.overhead_us < 1e5
