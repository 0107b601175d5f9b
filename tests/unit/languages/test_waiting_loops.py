"""Kernels that wait for other blocks, by their source."""

import textwrap

import pytest

from adaexplore.languages.waiting import waiting_kernels

TRITON = """
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, flag_ptr, n):
    pid = tl.program_id(0)
{body}

def forward(x, flag):
    kernel[(132,)](x, flag, 4{launch})
"""
CUDA = """
SOURCE = r'''
__device__ void helper(int* flag, int n) {{ {helper} }}
__global__ void kernel(float* x, int* flag, int* other, int n) {{
    {body}
}}
void launch(float* x, int* flag) {{ {launch} }}
'''
"""
PLAIN_LAUNCH = "kernel<<<132, 256>>>(x, flag, flag, 4);"
COOPERATIVE_LAUNCH = "cudaLaunchCooperativeKernel((void*)kernel, 132, 256, args, 0, stream);"

WAITING_TRITON = {
    "a barrier by an atomic read": """
        tl.atomic_add(flag_ptr, 1)
        while tl.atomic_add(flag_ptr, 0) < n:
            pass
    """,
    "an exchange for the same": """
        while tl.atomic_cas(flag_ptr, 1, 1) != 1:
            pass
    """,
    "an exchange for its end": """
        while tl.atomic_cas(flag_ptr, n, 0) != n:
            pass
    """,
    "a look back by volatile loads": """
        ready = 0
        while ready == 0:
            ready = tl.load(flag_ptr + pid - 1, volatile=True)
    """,
    "a plain load of the same place": """
        while tl.load(flag_ptr) == 0:
            pass
    """,
    "assembly": """
        seen = 0
        while seen < n:
            seen = tl.inline_asm_elementwise(
                "ld.acquire.gpu.u32 $0, [$1];", "=r,l", [flag_ptr], dtype=tl.int32,
                is_pure=False, pack=1)
    """,
}
PROGRESSING_TRITON = {
    "a lock": """
        while tl.atomic_cas(flag_ptr, 0, 1) == 1:
            pass
    """,
    "a queue of tiles": """
        tile = tl.atomic_add(flag_ptr, 1)
        while tile < n:
            tile = tl.atomic_add(flag_ptr, 1)
    """,
    "a retried update": """
        old = tl.load(flag_ptr)
        done = False
        while not done:
            found = tl.atomic_cas(flag_ptr, old, old + 1)
            done = found == old
            old = found
    """,
    "a list": """
        here = tl.load(flag_ptr)
        while here != 0:
            here = tl.load(flag_ptr + here)
    """,
    "the last block to come": """
        count = tl.atomic_add(flag_ptr, 1)
        if count == n - 1:
            tl.store(x_ptr, 0.0)
    """,
    "a loop over loads": """
        for i in range(n):
            tl.store(x_ptr + i, tl.load(x_ptr + i, volatile=True))
    """,
}
WAITING_CUDA = {
    "a barrier by atomics": "atomicAdd(flag, 1); while (atomicAdd(flag, 0) < n) {}",
    "a barrier by volatile": "while (*(volatile int*)flag < n) __nanosleep(20);",
    "a volatile name": "volatile int* seen = flag; while (seen[0] == 0);",
    "do and while": "int seen; do { seen = atomicOr(flag, 0); } while (seen != n);",
    "a loop with a way out": "while (true) { if (atomicAdd(flag, 0) >= n) break; }",
    "for": "for (int i = 0; atomicCAS(flag, 1, 1) != 1; ++i) {}",
    "an atomic reference": "cuda::atomic_ref<int> a(*flag); while (a.load() < n) {}",
    "a grid's barrier": "cooperative_groups::this_grid().sync();",
    "a helper": "helper(flag, n);",
}
PROGRESSING_CUDA = {
    "a lock": "while (atomicCAS(flag, 0, 1) != 0) {} atomicExch(flag, 0);",
    "a queue of tiles": "int t; while ((t = atomicAdd(flag, 1)) < n) x[t] = 0;",
    "a retried update": "int old = *flag, was;"
    "do { was = old; old = atomicCAS(flag, was, was + 1); } while (was != old);",
    "the last block to come": "if (atomicAdd(flag, 1) == n - 1) { x[0] = 0; }",
    "a stride": "for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = other[i];",
    "a comment": "/* while (atomicAdd(flag, 0) < n) {} */ x[0] = 0;",
    "a block's barrier": "auto block = cooperative_groups::this_thread_block(); block.sync();",
}


def triton(body, launch=""):
    body = textwrap.indent(textwrap.dedent(body), " " * 4)
    return TRITON.format(body=body, launch=launch)


def cuda(body, launch=PLAIN_LAUNCH):
    helper = "while (atomicAdd(flag, 0) < n) {}"
    return CUDA.format(body=body, launch=launch, helper=helper)


@pytest.mark.parametrize("how", WAITING_TRITON)
def test_triton_kernels_that_wait(how):
    assert waiting_kernels(triton(WAITING_TRITON[how])) == ("kernel",)


@pytest.mark.parametrize("how", PROGRESSING_TRITON)
def test_triton_kernels_that_do_not(how):
    assert waiting_kernels(triton(PROGRESSING_TRITON[how])) == ()


@pytest.mark.parametrize("how", WAITING_CUDA)
def test_cuda_kernels_that_wait(how):
    assert waiting_kernels(cuda(WAITING_CUDA[how])) == ("kernel",)
    assert waiting_kernels(cuda(WAITING_CUDA[how], COOPERATIVE_LAUNCH)) == ()


@pytest.mark.parametrize("how", PROGRESSING_CUDA)
def test_cuda_kernels_that_do_not(how):
    assert waiting_kernels(cuda(PROGRESSING_CUDA[how])) == ()


@pytest.mark.parametrize(
    ("launch", "found"),
    [
        (", launch_cooperative_grid=True", ()),
        (", launch_cooperative_grid=False", ("kernel",)),
        (", num_warps=4", ("kernel",)),
    ],
)
def test_a_cooperative_launch_leaves_nothing_to_luck(launch, found):
    barrier = WAITING_TRITON["a barrier by an atomic read"]
    assert waiting_kernels(triton(barrier, launch)) == found


def test_a_helper_that_waits_makes_its_kernel_wait():
    source = triton("wait(flag_ptr, n)").replace(
        "@triton.jit\ndef kernel",
        "@triton.jit\ndef wait(flag_ptr, n):\n"
        "    while tl.atomic_add(flag_ptr, 0) < n:\n        pass\n\n@triton.jit\ndef kernel",
    )
    assert waiting_kernels(source) == ("kernel",)


def test_text_that_is_no_python_has_no_kernels():
    assert waiting_kernels("while (:") == ()
