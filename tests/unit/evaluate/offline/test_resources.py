"""Real compilations for absent GPUs."""

import pytest
import triton
import triton.language as tl
from triton.compiler import ASTSource
from triton.runtime.errors import OutOfResources

from adaexplore.evaluate.kernels.capture import CapturedKernel
from adaexplore.evaluate.kernels.resources import compile_any, compile_for
from adaexplore.evaluate.kernels.targets import TARGETS


@triton.jit
def product(a, b, out, size: tl.constexpr):
    rows, columns = tl.arange(0, size)[:, None], tl.arange(0, size)[None, :]
    at = rows * size + columns
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@triton.jit
def unknown(out, size: tl.constexpr):
    tl.store(out + tl.arange(0, size), tl.no_such_function(size))


def kernel(function, size, **options):
    names = [name for name in function.arg_names if name != "size"]
    signature = dict.fromkeys(names, "*fp32") | {"size": "constexpr"}
    attributes = {(i,): [["tt.divisibility", 16]] for i in range(len(names))}
    source = ASTSource(function, signature, {"size": size}, attributes)
    return CapturedKernel(source, options, f"{function.__name__}-{size}-{options}")


class TestCompileFor:
    @pytest.mark.parametrize("target", TARGETS)
    def test_the_resources_are_those_of_the_machine_code(self, target):
        found = compile_for(kernel(product, 64, num_warps=8), TARGETS[target])
        assert (found.kernel, found.num_warps) == ("product", 8)
        assert found.shared_bytes >= 2 * 64 * 64 * 4  # both operands
        assert 16 <= found.registers <= 255
        assert found.spill_bytes == 0

    @pytest.mark.slow
    def test_values_beyond_the_registers_are_spilled(self):
        assert compile_for(kernel(product, 128, num_warps=1), TARGETS["sm_80"]).spill_bytes > 0

    def test_too_much_shared_memory_is_refused(self):
        with pytest.raises(OutOfResources, match="product needs 524,288 bytes of shared memory"):
            compile_for(kernel(product, 256), TARGETS["sm_90"])

    def test_the_error_of_the_compiler_gives_its_reason(self):
        with pytest.raises(Exception, match="no_such_function"):
            compile_for(kernel(unknown, 64), TARGETS["sm_90"])


class TestCompileAny:
    def test_configurations_that_do_not_fit_are_skipped(self):
        kernels = [kernel(product, 256), kernel(product, 32)]
        assert compile_any(kernels, TARGETS["sm_90"]).shared_bytes < 20_000

    @pytest.mark.slow
    def test_the_first_failure_is_raised_if_no_configuration_fits(self):
        kernels = [kernel(product, 256), kernel(product, 512)]
        with pytest.raises(OutOfResources, match="524,288"):
            compile_any(kernels, TARGETS["sm_90"])

    def test_an_error_of_the_source_is_not_skipped(self):
        with pytest.raises(Exception, match="no_such_function"):
            compile_any([kernel(unknown, 64), kernel(product, 32)], TARGETS["sm_90"])
