"""Chains of products of references, and the library's time for them."""

import textwrap

import pytest
import torch

from adaexplore.core.problem import Problem
from adaexplore.evaluate.timing import products
from adaexplore.evaluate.timing.clock import CpuClock
from adaexplore.evaluate.timing.products import measure_products, trace
from adaexplore.sandbox.user.user_code import Instance

SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4))
        self.gru = nn.GRU(4, 4)
        self.conv = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, x):
{body}

def get_inputs():
    return [torch.randn(6, 4, 4)]
"""


@pytest.fixture
def traced(tmp_path):
    """Traces `forward(x)` of a body, with `x` of six steps by four by four."""

    def traced(body):
        source = SOURCE.format(body=textwrap.indent(textwrap.dedent(body), " " * 8))
        instance = Instance.of(Problem("chain", source, "cpp", "cpu"), tmp_path)
        return trace(instance, instance.inputs(0))

    return traced


def depth(traced, body):
    return traced(body).depth


class TestDepth:
    def test_a_recurrence_is_as_deep_as_its_steps(self, traced):
        body = """
            h = x[0]
            for step in x:
                h = torch.tanh(step @ self.w + h @ self.w)
            return h
        """
        assert depth(traced, body) == 6

    def test_products_side_by_side_are_no_chain(self, traced):
        assert depth(traced, "return torch.stack([step @ self.w for step in x])") == 1

    @pytest.mark.parametrize(
        "store", ["out[:, i] = x[i] @ self.w", "out[:, i].add_(x[i] @ self.w)"]
    )
    def test_columns_of_one_tensor_are_apart(self, traced, store):
        body = f"""
            out = torch.zeros(4, 6, 4)
            for i in range(6):
                {store}
                out[:, i] = out[:, i] @ self.w
            return out
        """
        assert depth(traced, body) == 2

    def test_what_was_written_into_a_part_is_read_from_it(self, traced):
        body = """
            out = torch.zeros(4, 7, 4)
            for i in range(6):
                out[:, i + 1] = out[:, i] @ self.w
            return out @ self.w
        """
        assert depth(traced, body) == 7

    def test_memory_that_is_written_over_holds_nothing_of_before(self, traced):
        body = """
            kept, h = torch.empty(4, 4), torch.zeros(4, 4)
            for step in x:
                kept.copy_(step)
                h = h + kept @ self.w
                torch.mm(step, self.w, out=kept)
                torch.mm(step, self.w, out=kept)
            return h + kept
        """
        assert depth(traced, body) == 1

    def test_a_tensor_that_is_written_over_holds_nothing_of_its_parts(self, traced):
        body = """
            out = torch.zeros(4, 6, 4)
            out[:, 0] = x[0] @ self.w
            out.zero_()
            return out @ self.w
        """
        assert depth(traced, body) == 1

    def test_a_module_without_products_has_none(self, traced):
        assert traced("return x * 2").products == ()
        assert depth(traced, "return x * 2") == 0

    def test_a_pass_through_layers_and_a_convolution(self, traced):
        body = """
            y = (x @ self.w).relu() @ self.w
            return self.conv(y.reshape(1, 6, 4, 4)[:, :2])
        """
        assert depth(traced, body) == 3

    @pytest.mark.parametrize(
        ("changes", "steps"),
        [
            ({}, 512 + 6 - 1),
            ({"bidirectional": True}, 512 * 6),
            ({"batch_first": True}, 10 + 6 - 1),
            ({"batch_sizes": [10] * 40}, 40 + 6 - 1),
        ],
    )
    def test_steps_of_cudnns_recurrence(self, changes, steps):
        x = torch.zeros(512, 10, 8, device="meta")
        given = {
            "input": x,
            "weight": [],
            "weight_stride0": 4,
            "weight_buf": None,
            "hx": x[:6],
            "cx": None,
            "mode": 3,
            "hidden_size": 8,
            "proj_size": 0,
            "num_layers": 6,
            "batch_first": False,
            "dropout": 0.0,
            "train": False,
            "bidirectional": False,
            "batch_sizes": [],
            "dropout_state": None,
        }
        mode = products._Tracer()
        with mode:
            torch.ops.aten._cudnn_rnn(**(given | changes))
        assert mode.depth == steps

    def test_a_reference_that_bears_no_mode_is_not_traced(self, traced):
        assert traced("raise ValueError") is None


class Counting(CpuClock):
    """A clock by which the n-th thing timed takes n milliseconds; what is timed is called once."""

    def __init__(self):
        self.timed = []

    def warm(self, call):
        self.timed.append(call(0))

    def block(self, call, count, sink, ready=None):
        return [1000.0 * len(self.timed)]


class TestLibrary:
    def test_every_call_counts_in_fp16_and_in_tf32(self, traced):
        clock = Counting()
        found = measure_products(
            traced("return (x[0] @ self.w + x[1] @ self.w) @ x[2]"), "cpu", clock
        )
        assert [t.dtype for t in clock.timed] == [torch.float16, torch.float32]
        assert found.library_us == {"half": 3 * 1000.0, "tf32": 3 * 2000.0}
        assert (found.timed, found.timed_flops) == (3, 3 * 2 * 4**3) == (3, found.flops)

    def test_the_four_kinds_with_the_most_operations_are_timed(self, traced):
        body = """
            for n in range(1, 7):
                x = x + (x[0, :1].expand(n, 4) @ self.w).sum()
            return x
        """
        found = measure_products(traced(body), "cpu", Counting())
        assert (found.timed, found.timed_flops) == (4, 2 * 16 * (3 + 4 + 5 + 6))
        assert found.flops == 2 * 16 * (1 + 2 + 3 + 4 + 5 + 6)

    def test_operands_have_the_references_forms(self, traced):
        clock = Counting()
        measure_products(traced("return torch.addmm(self.w[0], x[0].T, self.w)"), "cpu", clock)
        [product] = traced("return torch.addmm(self.w[0], x[0].T, self.w)").products
        assert [arg.strides for arg in product.args] == [(1,), (1, 4), (4, 1)]
        assert [tuple(out.shape) for out in clock.timed] == [(4, 4)] * 2

    @pytest.mark.parametrize("strides", [(4, 1), (1, 3), (0, 1)])
    def test_operands_are_made_in_their_strides(self, strides):
        form = products.TensorForm((3, 4), strides, torch.float32)
        made = products._random(form, torch.float16, "cpu", channels_last=False)
        assert (made.shape, made.stride(), made.dtype) == ((3, 4), strides, torch.float16)

    def test_a_convolution_counts_in_its_faster_layout(self, traced):
        clock = Counting()
        body = "return self.conv(x.reshape(2, 2, 4, 6))"
        found = measure_products(traced(body), "cpu", clock)
        assert found.library_us == {"half": 1000.0, "tf32": 3000.0}
        last = [t.is_contiguous(memory_format=torch.channels_last) for t in clock.timed]
        assert last == [False, True, False, True]

    @pytest.mark.parametrize("error", [RuntimeError("no such product"), torch.OutOfMemoryError()])
    def test_what_cannot_be_timed_is_left_out(self, traced, error):
        class Failing(Counting):
            def warm(self, call):
                raise error

        found = measure_products(traced("return x @ self.w"), "cpu", Failing())
        assert (found.library_us, found.timed, found.timed_flops) == ({}, 0, 0)
        assert (found.depth, found.flops) == (1, 2 * 6 * 4**3)

    def test_without_cuda_no_graph_is_timed(self, traced):
        assert measure_products(traced("return x @ self.w"), "cpu", Counting()).chain_us == 0.0

    def test_attention_is_none_of_the_librarys_products(self, traced):
        body = "return nn.functional.scaled_dot_product_attention(x[None], x[None], x[None])"
        found = measure_products(traced(body), "cpu", Counting())
        assert found.library_us == {}
        assert found.depth == 1
