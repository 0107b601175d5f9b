"""Verdicts on Triton candidates without a GPU: correct candidates, mutants, and refusals."""

import pytest
from sources import (
    DOUBLE,
    DOUBLE_KERNEL,
    HEADER,
    MATMUL,
    MATMUL_KERNEL,
    SOFTMAX,
    SOFTMAX_KERNEL,
    changed,
)

from adaexplore.core.verdict.evaluation import Estimate
from adaexplore.evaluate.kernels.targets import TARGETS
from adaexplore.evaluate.offline.estimate import least
from fast_set import of_which_fast

RIGHT = {
    "softmax": (SOFTMAX, SOFTMAX_KERNEL),
    "methods": (SOFTMAX, changed(SOFTMAX_KERNEL, "tl.sum(e, axis=0)", "e.sum()")),
    "matmul": (MATMUL, MATMUL_KERNEL),
    "double": (DOUBLE, DOUBLE_KERNEL),
}


WAITING = """    at = tl.arange(0, BLOCK)
    tl.extra.cuda.gdc_wait()
    tl.extra.cuda.gdc_launch_dependents()
"""


BY_ELEMENT = {
    "a branch": (
        """
@triton.jit
def same(v):
    if v > 0:
        return v
    else:
        return -tl.abs(v)
""",
        "tl.map_elementwise(same, tl.load(x + at, mask=at < n))",
    ),
    "two at a time": (
        """
from triton.language import map_elementwise

@triton.jit
def same(a, b, zero_a, zero_b):
    return a + zero_a, b + zero_b
""",
        "map_elementwise(same, tl.load(x + at, mask=at < n), 0.0 * at, pack=2)[0]",
    ),
    "several results": (
        """
@triton.jit
def parts(v):
    return tl.maximum(v, 0.0), tl.minimum(v, 0.0)

@triton.jit
def same(v):
    above, below = tl.map_elementwise(parts, v)
    return above + below
""",
        "same(tl.load(x + at, mask=at < n))",
    ),
}


class TestRight:
    @pytest.mark.parametrize("name", of_which_fast(RIGHT, "softmax"))
    def test_a_correct_candidate_passes_with_an_estimate_and_no_time(self, judge, name):
        verdict = judge(*RIGHT[name])
        assert (verdict.status, verdict.precision) == ("passed", "fp32")
        assert verdict.measured is None
        assert isinstance(verdict.timing, Estimate)
        assert verdict.timing.target == "sm_90"
        assert verdict.timing.time_us > 0
        assert verdict.labels == ()

    @pytest.mark.parametrize("how", of_which_fast(BY_ELEMENT, "several results"))
    @pytest.mark.slow
    def test_scalar_functions_mapped_over_blocks(self, judge, how):
        functions, mapped = BY_ELEMENT[how]
        source = changed(DOUBLE_KERNEL, "@triton.jit", f"{functions}\n\n@triton.jit")
        verdict = judge(DOUBLE, changed(source, "tl.load(x + at, mask=at < n)", mapped))
        assert verdict.status == "passed", verdict

    @pytest.mark.slow
    def test_set_up_in_the_first_call_is_no_part_of_the_estimate(self, judge):
        call = "double[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)"
        again = f"{call}\n        if not hasattr(self, 'ready'):\n            {call}"
        with_set_up = changed(DOUBLE_KERNEL, call, f"{again}\n            self.ready = True")
        plain, found = judge(DOUBLE, DOUBLE_KERNEL), judge(DOUBLE, with_set_up)
        assert found.status == "passed"
        assert found.descriptor.launches == plain.descriptor.launches == 1.0
        assert found.timing.time_us == plain.timing.time_us

    def test_an_atomic_addition_in_bfloat16_returns_the_old_value(self, judge):
        small = changed(DOUBLE, "1048576", "2048")
        reference = changed(small, "x * 2", "(x.bfloat16() * 2).float()")
        twice = """v = tl.load(x + at, mask=at < n).to(tl.bfloat16)
    tl.atomic_add(seen + at, v, mask=at < n)
    v = tl.atomic_add(seen + at, v, mask=at < n).to(tl.float32)"""
        source = changed(DOUBLE_KERNEL, "v = tl.load(x + at, mask=at < n)", twice)
        source = changed(source, "double(x, out, n,", "double(x, out, seen, n,")
        seen = "torch.zeros_like(x, dtype=torch.bfloat16)"
        source = changed(source, "(x, out, x.numel()", f"(x, out, {seen}, x.numel()")
        assert judge(reference, source).status == "passed"

    @pytest.mark.slow
    def test_the_detail_lists_the_kernels_resources(self, judge):
        detail = judge(MATMUL, MATMUL_KERNEL).detail
        assert "matmul: 4 warps" in detail
        assert "bytes spilled" in detail

    def test_the_descriptor_has_shares_grid_and_instructions(self, judge):
        found = judge(SOFTMAX, SOFTMAX_KERNEL).descriptor
        assert (found.own, found.library, found.launches) == ((1.0,), (), 1.0)
        assert (found.grid, found.block) == ((2048, 1, 1), (128, 1, 1))
        assert found.instructions == ("reduction",)
        assert found.bytes_per_s > 1e12

    @pytest.mark.slow
    def test_kernels_with_the_same_machine_code_have_the_same_hash(self, judge):
        first = judge(SOFTMAX, SOFTMAX_KERNEL).descriptor
        renamed = changed(
            SOFTMAX_KERNEL, "e = shifted(v, tl.max(v, axis=0))", "e = tl.exp(v - tl.max(v, axis=0))"
        )
        again = judge(SOFTMAX, renamed).descriptor
        assert (again.code, again.form != first.form) == (first.code, True)
        other = changed(
            SOFTMAX_KERNEL, "tl.exp(v - top)", "tl.exp2((v - top) * 1.4426950408889634)"
        )
        assert judge(SOFTMAX, other).descriptor.code != first.code

    @pytest.mark.slow
    def test_launches_that_may_overlap_pass(self, judge):
        waiting = changed(SOFTMAX_KERNEL, "    at = tl.arange(0, BLOCK)\n", WAITING)
        waiting = changed(
            waiting, "next_power_of_2(cols))", "next_power_of_2(cols), launch_pdl=True)"
        )
        assert judge(SOFTMAX, waiting).status == "passed"

    @pytest.mark.slow
    def test_a_partial_estimate_is_not_below_the_least_time(self, judge):
        rounds = changed(DOUBLE_KERNEL, "n, BLOCK: ", "n, rounds, BLOCK: ")
        rounds = changed(
            rounds, "    tl.store", "    for _ in range(rounds): v *= 1.0\n    tl.store"
        )
        timing = judge(
            DOUBLE, changed(rounds, "numel(), BL", "numel(), x.numel() >> 20 << 30, BL")
        ).timing
        assert timing.partial
        assert timing.time_us >= least(2 * 4 << 20, 0, "fp32", TARGETS["sm_90"]).time_us
        assert not judge(DOUBLE, DOUBLE_KERNEL).timing.partial

    @pytest.mark.slow
    def test_an_estimate_uses_the_figures_of_its_target(self, judge):
        times = {
            target: judge(SOFTMAX, SOFTMAX_KERNEL, target=target).timing.time_us
            for target in ("sm_80", "sm_90", "sm_100")
        }
        assert times["sm_80"] > times["sm_90"] > times["sm_100"]

    def test_a_candidate_without_a_kernel_is_labelled(self, judge):
        source = HEADER + (
            "class ModelNew(nn.Module):\n    def forward(self, x): return torch.softmax(x, 1)\n"
        )
        verdict = judge(SOFTMAX, source)
        assert verdict.status == "passed"
        assert verdict.labels == ("no-custom-kernel",)

    def test_a_candidate_without_a_kernel_is_refused_where_own_kernels_are_required(self, judge):
        source = HEADER + (
            "class ModelNew(nn.Module):\n    def forward(self, x): return torch.softmax(x, 1)\n"
        )
        verdict = judge(SOFTMAX, source, require_custom=True)
        assert (verdict.status, verdict.reason) == ("rejected", "it launches no kernel of its own")

    @pytest.mark.slow
    def test_a_decoy_is_refused_where_own_kernels_are_required(self, judge):
        decoy = changed(
            SOFTMAX_KERNEL,
            "softmax[(rows,)](x, out, ",
            "out = torch.softmax(x, 1)\n        softmax[(1,)](x, out, ",
        )
        verdict = judge(SOFTMAX, decoy, require_custom=True)
        assert verdict.status == "rejected"
        assert "the same without its own kernels" in verdict.reason
        assert judge(SOFTMAX, SOFTMAX_KERNEL, require_custom=True).status == "passed"

    @pytest.mark.parametrize(
        ("forward", "labels"),
        [
            (
                "out = torch.softmax(x, 1)\n        softmax[(1,)](x, out, ",
                ("decoy", "own-kernels-negligible"),
            ),
            (
                "softmax[(rows,)](x, torch.empty_like(x), x.stride(0), cols, "
                "BLOCK=triton.next_power_of_2(cols))\n"
                "        return torch.softmax(x, 1)\n"
                "        softmax[(rows,)](x, out, ",
                ("decoy",),
            ),
        ],
    )
    @pytest.mark.slow
    def test_kernels_that_leave_the_work_to_pytorch_are_labelled(self, judge, forward, labels):
        verdict = judge(SOFTMAX, changed(SOFTMAX_KERNEL, "softmax[(rows,)](x, out, ", forward))
        assert verdict.status == "passed"
        assert verdict.labels == labels
        assert judge(SOFTMAX, SOFTMAX_KERNEL).labels == ()


RAGGED = changed(SOFTMAX, "cols = 4096", "cols = 4000")
MUTANTS = {
    "reads a column too many": (SOFTMAX, SOFTMAX_KERNEL, ("at < cols, other", "at <= cols, other")),
    "writes a column too many": (SOFTMAX, SOFTMAX_KERNEL, ("mask=at < cols)", "mask=at <= cols)")),
    "stores without a mask": (RAGGED, SOFTMAX_KERNEL, (", mask=at < cols)", ")")),
    "loads without a mask": (
        RAGGED,
        SOFTMAX_KERNEL,
        (', mask=at < cols, other=-float("inf")', ""),
    ),
    "a wrong stride": (SOFTMAX, SOFTMAX_KERNEL, ("x + row * stride", "x + row * BLOCK")),
    "no row": (SOFTMAX, SOFTMAX_KERNEL, ("out + row * stride", "out + row")),
    "a wrong identity of max": (SOFTMAX, SOFTMAX_KERNEL, ('-float("inf")', "0.0")),
    "a tile too few": (MATMUL, MATMUL_KERNEL, ("tl.cdiv(K, BK)", "K // BK")),
    "a tile too few along k": (MATMUL, MATMUL_KERNEL, ("range(0, tl", "range(1, tl")),
    "a program too few": (MATMUL, MATMUL_KERNEL, ("(triton.cdiv(M, BM),", "(M // BM,")),
    "a wrong leading dimension": (MATMUL, MATMUL_KERNEL, ("m[:, None] * K", "m[:, None] * N")),
    "a bound too many": (MATMUL, MATMUL_KERNEL, ("(at[None, :] < K)", "(at[None, :] <= K)")),
    "TF32 in an fp32 problem": (MATMUL, MATMUL_KERNEL, (', input_precision="ieee"', "")),
    "not all programs": (
        DOUBLE,
        DOUBLE_KERNEL,
        ("triton.cdiv(x.numel(), 1024)", "x.numel() // 1024"),
    ),
    "a bound too low": (DOUBLE, DOUBLE_KERNEL, ("mask=at < n)\n", "mask=at < n - 1)\n")),
}


class TestMutants:
    @pytest.mark.parametrize(
        "how",
        of_which_fast(
            MUTANTS,
            "a tile too few along k",
            "not all programs",
        ),
    )
    def test_it_is_caught(self, judge, how):
        problem, right, change = MUTANTS[how]
        verdict = judge(problem, changed(right, *change))
        assert verdict.status in ("wrong_output", "runtime_error"), verdict
        assert "\n" not in verdict.reason

    @pytest.mark.slow
    def test_a_fault_at_odd_sizes_only_is_named_as_such(self, judge):
        problem, right, change = MUTANTS["reads a column too many"]
        reason = judge(problem, changed(right, *change)).reason
        assert "right at even sizes, not at odd ones" in reason

    def test_memory_outside_the_tensors_is_out_of_bounds(self, judge):
        candidate = changed(DOUBLE_KERNEL, "tl.store(out + at", "tl.store(out + at + 4096 * n")
        verdict = judge(DOUBLE, candidate)
        assert verdict.status == "runtime_error"
        assert "store out of bounds in" in verdict.reason


REFUSED = {
    "a range that is no power of two": (
        DOUBLE,
        DOUBLE_KERNEL,
        ("BLOCK=1024)", "BLOCK=1000)"),
        "power of 2",
    ),
    "an error in a helper": (
        SOFTMAX,
        SOFTMAX_KERNEL,
        ("return tl.exp(v - top)", "return tl.exponential(v - top)"),
        "exponential",
    ),
    "what the interpreter accepts and the compiler does not": (
        DOUBLE,
        DOUBLE_KERNEL,
        ("    v = tl.load", "    for j in range(n):\n        if j > 2: break\n    v = tl.load"),
        "",
    ),
    "more shared memory than there is": (
        MATMUL,
        changed(MATMUL_KERNEL, ', input_precision="ieee"', ""),
        ("BM, BN, BK = 64, 64, 32", "BM, BN, BK = 256, 256, 128"),
        "bytes of shared memory; a block of sm_90 has at most 232,448",
    ),
    "more threads than a block has": (
        DOUBLE,
        DOUBLE_KERNEL,
        ("BLOCK=1024)", "BLOCK=1024, num_warps=64)"),
        "double has num_warps=64, which is 2,048 threads; a block of sm_90 has at most 1,024",
    ),
    "no Python": (DOUBLE, DOUBLE_KERNEL, ("def forward(self, x):", "def forward(self, x:"), ""),
}


GRID = "(triton.cdiv(x.numel(), 1024),)"
BAD_LAUNCHES = {
    "a grid of floats": ((GRID, "(x.numel() / 1024,)"), "TypeError: 'float' object"),
    "a grid too long at full size": (
        (
            "(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)",
            "(1, triton.cdiv(x.numel(), 8))](x, out, x.numel(), BLOCK=8)",
        ),
        "the grid (1, 131072, 1); a GPU takes at most 2,147,483,647 x 65,535 x 65,535",
    ),
    "a cluster too large": (("BLOCK=1024)", "BLOCK=1024, num_ctas=32)"), "num_ctas=32"),
    "warps that are no power of two": (
        ("BLOCK=1024)", "BLOCK=1024, num_warps=3)"),
        "num_warps must be a power of 2",
    ),
}
DESCRIPTOR_KERNEL = changed(
    DOUBLE_KERNEL,
    """    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(out + at, v * 2, mask=at < n)
""",
    """    given = tl.make_tensor_descriptor(x, [n], [1], [BLOCK])
    made = tl.make_tensor_descriptor(out, [n], [1], [BLOCK])
    at = tl.program_id(0) * BLOCK
    made.store([at], given.load([at]) * 2)
""",
)


class TestRefused:
    @pytest.mark.parametrize(
        "how",
        of_which_fast(
            REFUSED,
            "an error in a helper",
            "what the interpreter accepts and the compiler does not",
            "no Python",
        ),
    )
    def test_it_is_a_compile_error(self, judge, how):
        problem, right, change, words = REFUSED[how]
        verdict = judge(problem, changed(right, *change))
        assert verdict.status == "compile_error"
        assert words in verdict.reason
        assert "\n" not in verdict.reason

    @pytest.mark.slow
    def test_a_kernel_that_fits_one_target_may_not_fit_another(self, judge):
        tf32 = changed(MATMUL_KERNEL, ', input_precision="ieee"', "")
        candidate = changed(tf32, "64, 64, 32", "64, 256, 64")  # sm_90 keeps one more stage
        assert judge(MATMUL, candidate, target="sm_80", precision="tf32").status == "passed"
        assert judge(MATMUL, candidate, target="sm_90", precision="tf32").status == "compile_error"

    @pytest.mark.parametrize("how", of_which_fast(BAD_LAUNCHES, "a grid too long at full size"))
    def test_a_launch_that_a_gpu_refuses(self, judge, how):
        change, words = BAD_LAUNCHES[how]
        verdict = judge(DOUBLE, changed(DOUBLE_KERNEL, *change))
        assert verdict.status == "runtime_error"
        assert words in verdict.reason
        assert verdict.feedback.source_line.startswith("double[")

    @pytest.mark.slow
    def test_a_descriptor_made_on_the_device_needs_an_allocator(self, judge):
        verdict = judge(DOUBLE, DESCRIPTOR_KERNEL)
        assert verdict.status == "runtime_error"
        assert "no allocator was set" in verdict.reason
        allocator = "triton.set_allocator(lambda size, *_: torch.empty(size, dtype=torch.int8))\n"
        verdict = judge(DOUBLE, DESCRIPTOR_KERNEL + allocator)
        assert (verdict.status, verdict.labels) == ("passed", ())

    @pytest.mark.slow
    def test_targets_without_hardware_descriptors_need_no_allocator(self, judge):
        assert judge(DOUBLE, DESCRIPTOR_KERNEL, target="sm_80").status == "passed"

    def test_assembly_cannot_be_judged(self, judge):
        call = 'tl.inline_asm_elementwise("add.f32 $0, $1, $1;", "=f,f", [v], tl.float32, True, 1)'
        verdict = judge(DOUBLE, changed(DOUBLE_KERNEL, "v * 2", call))
        assert verdict.status == "rejected"
        assert "inline assembly cannot be interpreted" in verdict.reason

    @pytest.mark.slow
    def test_a_kernel_that_waits_for_another_program_ends(self, judge):
        wait = "    while tl.atomic_add(out, 0.0) < 1e9: pass\n    v = tl.load"
        verdict = judge(DOUBLE, changed(DOUBLE_KERNEL, "    v = tl.load", wait), timeout_s=40.0)
        assert verdict.status == "timeout"
        assert "takes more than the time for a whole launch" in verdict.reason


SPECIALISED = changed(
    DOUBLE_KERNEL,
    "        out = torch.empty_like",
    "        assert x.numel() % 1024 == 0\n        out = torch.empty_like",
)


UNBATCHED = """
import torch
from torch import nn

M = 512
K = 256

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(M, 1))

    def forward(self, a, b):
        return (a @ b) * self.scale

def get_inputs():
    return [torch.randn(M, K), torch.randn(K, M)]
"""
UNBATCHED_KERNEL = changed(
    changed(
        changed(
            changed(
                MATMUL_KERNEL,
                ",\n                    mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)",
                ")",
            ),
            ",\n                    mask=(at[:, None] < K) & (n[None, :] < N), other=0.0)",
            ")",
        ),
        ", total, mask=(m[:, None] < M) & (n[None, :] < N))",
        ", total)",
    ),
    "        return out",
    "        return out * self.scale",
)
UNBATCHED_KERNEL = changed(
    UNBATCHED_KERNEL,
    "    def forward",
    """    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(512, 1))

    def forward""",
)


class TestSpecialised:
    @pytest.mark.slow
    def test_a_candidate_that_refuses_other_sizes_passes_with_a_label(self, judge):
        verdict = judge(DOUBLE, SPECIALISED)
        assert verdict.status == "passed"
        assert verdict.labels == ("specialised-to-its-sizes",)
        assert "right at the sizes of the problem with " in verdict.detail
        assert "elsewhere: AssertionError" in verdict.detail

    @pytest.mark.slow
    def test_a_candidate_for_one_row_length_is_judged_on_fewer_rows(self, judge):
        fixed = changed(SOFTMAX_KERNEL, "rows, cols = x.shape", "rows, cols = x.shape[0], 4096")
        verdict = judge(SOFTMAX, fixed)
        assert verdict.status == "passed"
        assert verdict.labels == ("specialised-to-its-sizes", "verified-with-a-smaller-batch")
        assert "right at the sizes of the problem with rows 2048 as " in verdict.detail
        assert judge(SOFTMAX, changed(fixed, '-float("inf")', "2.0")).status == "passed"
        assert judge(SOFTMAX, changed(fixed, "tl.exp(v", "tl.exp2(v")).status == "wrong_output"

    @pytest.mark.parametrize(
        "mask",
        [
            pytest.param(", mask=at < cols)", id="store"),
            pytest.param(
                ', mask=at < cols, other=-float("inf"))', id="load", marks=pytest.mark.slow
            ),
        ],
    )
    @pytest.mark.slow
    def test_a_mask_that_the_sizes_do_not_need_may_be_missing(self, judge, mask):
        verdict = judge(SOFTMAX, changed(SOFTMAX_KERNEL, mask, ")"))
        assert verdict.status == "passed"
        assert verdict.labels == ("specialised-to-its-sizes", "verified-with-a-smaller-batch")
        assert "right at the sizes of the problem with rows 2048 as " in verdict.detail

    @pytest.mark.slow
    def test_a_kernel_must_compute_the_whole_batch(self, judge):
        bare = changed(SOFTMAX_KERNEL, ", mask=at < cols)", ")")
        blocks = changed(bare, "softmax[(rows,)]", "softmax[(rows // 64 * 64,)]")
        ragged = changed(SOFTMAX, "rows = 2048", "rows = 2047")
        assert judge(ragged, blocks).status == "wrong_output"

    @pytest.mark.slow
    def test_a_candidate_without_a_batch_is_judged_at_full_size(self, judge):
        verdict = judge(UNBATCHED, UNBATCHED_KERNEL)
        assert verdict.status == "passed"
        assert verdict.labels == ("specialised-to-its-sizes",)
        assert "right at the sizes of the problem; elsewhere" in verdict.detail
        wrong = changed(UNBATCHED_KERNEL, "total += tl.dot", "total -= tl.dot")
        assert judge(UNBATCHED, wrong).status == "wrong_output"

    @pytest.mark.slow
    def test_a_candidate_too_slow_to_interpret_gets_that_reason(self, judge):
        large = changed(changed(UNBATCHED, "M = 512", "M = 16384"), "K = 256", "K = 4096")
        verdict = judge(large, changed(UNBATCHED_KERNEL, "512", "16384"))
        assert verdict.status == "runtime_error"
        assert verdict.reason.endswith(
            "at its own sizes it was not judged, which takes the interpreter too long"
        )

    @pytest.mark.slow
    def test_copies_of_the_problems_constants_follow_its_sizes(self, judge):
        copied = changed(
            SOFTMAX_KERNEL, "@triton.jit\ndef shifted", "cols = 4096\n\n@triton.jit\ndef shifted"
        )
        verdict = judge(SOFTMAX, changed(copied, "rows, cols = x.shape", "rows = x.shape[0]"))
        assert (verdict.status, verdict.labels) == ("passed", ())


LOOKING_BACK = """
@triton.jit
def double(x, out, seen, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    while tl.atomic_add(seen, 0) < pid:
        pass
    at = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2.0, mask=at < n)
    tl.atomic_add(seen, 1)

class ModelNew(nn.Module):
    def forward(self, x):
        out, n = torch.empty_like(x), x.numel()
        seen = torch.zeros(1, dtype=torch.int32, device=x.device)
        double[(triton.cdiv(n, 4096),)](x, out, seen, n, BLOCK=4096)
        return out
"""


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ({}, "waits-for-blocks"),
        pytest.param({"allow_waiting": True}, "waits-for-blocks:allowed", marks=pytest.mark.slow),
    ],
)
def test_blocks_that_wait_for_others_are_named(judge, options, label):
    verdict = judge(DOUBLE, HEADER + LOOKING_BACK, **options)
    assert verdict.status == "passed", verdict
    assert label in verdict.labels
