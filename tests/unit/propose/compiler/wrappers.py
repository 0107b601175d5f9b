"""Wrapper sources in the forms of TorchInductor for a GPU, with short kernels of our own."""

POINTWISE = """
import triton
import triton.language as tl

from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math
from torch._inductor.runtime.hints import AutotuneHint, ReductionHint, TileHint, DeviceProperties
triton_helpers.set_driver_to_gpu()

@triton_heuristics.pointwise(
    size_hints={'x': 8192},
    filename=__file__,
    triton_meta={'signature': {'in_ptr0': '*fp32', 'out_ptr0': '*fp32', 'xnumel': 'i32'}},
    inductor_meta={'grid_type': 'Grid1D'},
    min_elem_per_thread=0
)
@triton.jit
def triton_poi_fused_exp_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 6400
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    value = tl.load(in_ptr0 + (xindex), xmask)
    tl.store(out_ptr0 + (xindex), libdevice.exp(value), xmask)  # a comment stays
"""

REDUCTION = """
import triton
import triton.language as tl

from torch._inductor.runtime import triton_helpers, triton_heuristics

@triton.jit
def _helper(left, right):
    return left + right

@triton_heuristics.reduction(
    size_hints={'x': 64, 'r0_': 128},
    reduction_hint=ReductionHint.INNER,
    filename=__file__,
    triton_meta={}, inductor_meta={}
)
@triton.jit
def triton_red_fused_sum_1(
    in_ptr0, out_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr, R0_BLOCK : tl.constexpr
):
    total = _helper(tl.load(in_ptr0), 1)
    tl.store(out_ptr0, total)
"""

TEMPLATE = """
import triton
import triton.language as tl

@triton_heuristics.template(num_stages=3, num_warps=8, triton_meta={}, inductor_meta={})
@triton.jit
def triton_tem_fused_mm_2(arg_A, arg_B, out_ptr0):
    BLOCK_M : tl.constexpr = 64
    tl.store(out_ptr0, tl.load(arg_A) + tl.load(arg_B))
"""


def wrapper(stream: str, conversion: str) -> str:
    """A module in Inductor's form; versions differ in the stream's name and in alignment checks."""
    return f"""
from math import inf, nan
import torch
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.select_algorithm import extern_kernels
import triton
import triton.language as tl
from torch._C import _cuda_getCurrentRawStream as get_raw_stream

aten = torch.ops.aten
assert_size_stride = torch._C._dynamo.guards.assert_size_stride
empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda
reinterpret_tensor = torch._C._dynamo.guards._reinterpret_tensor
async_compile = AsyncCompile()

triton_poi_fused_exp_0 = async_compile.triton('triton_poi_fused_exp_0',
'''{POINTWISE}''', device_str='cuda')

triton_red_fused_sum_1 = async_compile.triton('triton_red_fused_sum_1',
'''{REDUCTION}''', device_str='cuda')

triton_tem_fused_mm_2 = async_compile.triton('triton_tem_fused_mm_2',
'''{TEMPLATE}''', device_str='cuda')

async_compile.wait(globals())
del async_compile

def call(args):
    arg0_1, arg1_1 = args
    args.clear()
    assert_size_stride(arg0_1, (64, 100), (100, 1))
    with torch.cuda._DeviceGuard(0):
        torch.cuda.set_device(0)
        {conversion}
        buf0 = empty_strided_cuda((64, 100), (100, 1), torch.float32)
        # Topologically Sorted Source Nodes: [exp], Original ATen: [aten.exp]
        {stream} = get_raw_stream(0)
        triton_poi_fused_exp_0.run(arg0_1, buf0, 6400, stream={stream})
        del arg0_1
        buf1 = empty_strided_cuda((64, 100), (100, 1), torch.float32)
        extern_kernels.mm(buf0, reinterpret_tensor(arg1_1, (100, 100), (1, 100), 0), out=buf1)
        del arg1_1
        buf2 = buf0; del buf0  # reuse
        triton_tem_fused_mm_2.run(buf1, buf2, buf2, 5, 1, 1, stream={stream})
        buf3 = empty_strided_cuda((64, ), (1, ), torch.float32)
        triton_red_fused_sum_1.run(buf2, buf3, 64, 100, stream={stream})
        del buf1
    return (buf3, reinterpret_tensor(buf2, (6400, ), (1, ), 0), )
"""


TORCH_2_11 = wrapper("stream0", "pass")
TORCH_2_13 = wrapper("raw_stream0", "arg0_1 = copy_if_misaligned(arg0_1)")
