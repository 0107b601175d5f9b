"""Instructions of kernels that are compiled for an absent GPU."""

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from adaexplore.evaluate.kernels.instructions import code_of, of_kernel, of_source


@triton.jit
def double(x, size: tl.constexpr):
    at = tl.arange(0, size)
    tl.store(x + at, tl.load(x + at) * 2)


@triton.jit
def twice(pointer, count: tl.constexpr):
    """The same under other names."""
    where = tl.arange(0, count)
    value = tl.load(pointer + where)  # once
    tl.store(pointer + where, value * 2)


@triton.jit
def triple(x, size: tl.constexpr):
    at = tl.arange(0, size)
    tl.store(x + at, tl.load(x + at) * 3)


@triton.jit
def product(x, size: tl.constexpr):
    at = tl.arange(0, size)[:, None] * size + tl.arange(0, size)[None, :]
    v = tl.load(x + at).to(tl.float16)
    tl.atomic_add(x, tl.sum(tl.dot(v, v)))


def compiled(function, size=64, **options):
    pointer, constant = function.arg_names
    source = ASTSource(function, {pointer: "*fp32", constant: "constexpr"}, {constant: size})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)


def code(function, size=64, **options):
    kernel = compiled(function, size, **options)
    return code_of(kernel.asm["ptx"], kernel.metadata._asdict())


def test_names_comments_and_lines_are_not_in_the_code():
    assert code(double) == code(twice)


def test_constants_sizes_and_launches_are():
    others = [code(triple), code(double, 128), code(double, num_warps=8), code(double, num_ctas=2)]
    assert len({code(double), *others}) == 5


def test_instructions_of_a_compiled_kernel():
    assert of_kernel(compiled(double).asm) == set()
    assert of_kernel(compiled(product).asm) >= {"tensor-core", "dot", "atomic", "reduction"}


@pytest.mark.parametrize(
    ("line", "used"),
    [
        ("acc = tl.dot(a, b)", {"dot"}),
        ("tl.atomic_add(p, v)", {"atomic"}),
        ("desc = tl.make_tensor_descriptor(p, shape=s)", {"tma"}),
        ("atomicAdd(&out[i], v);", {"atomic"}),
        ("wmma::mma_sync(c, a, b, c);", {"tensor-core"}),
        (
            'asm volatile("cp.async.ca.shared.global [%0], [%1], 16;");',
            {"inline-asm", "async-copy"},
        ),
        ("#pragma omp parallel for simd reduction(+:sum)", {"vector", "reduction"}),
        ("v = self.dot(x)  # atomics of a kind", set()),
    ],
)
def test_instructions_that_a_source_names(line, used):
    assert of_source(line) == used
