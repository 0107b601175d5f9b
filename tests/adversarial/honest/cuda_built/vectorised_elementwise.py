"""A CUDA kernel that reads and writes four neighbouring numbers at once.

problem: elementwise
devices: cuda
language: cuda
timeout_s: 60
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cuda_runtime.h>
#include <cstdint>
#include <stdexcept>

__device__ __forceinline__ float chain(float x, float y) {
  const float gelu = 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
  return tanhf(gelu / (1.0f + expf(-y)) + x);
}

__global__ void __launch_bounds__(256) chain_kernel(
    const float4* __restrict__ x, const float4* __restrict__ y, float4* __restrict__ out,
    int quads) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= quads) return;
  const float4 a = x[i], b = y[i];
  out[i] = make_float4(chain(a.x, b.x), chain(a.y, b.y), chain(a.z, b.z), chain(a.w, b.w));
}

void launch(std::uintptr_t x, std::uintptr_t y, std::uintptr_t out, int count,
            std::uintptr_t stream) {
  if (count % 4) throw std::runtime_error("a multiple of four numbers, please");
  const int quads = count / 4;
  chain_kernel<<<(quads + 255) / 256, 256, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const float4*>(x), reinterpret_cast<const float4*>(y),
      reinterpret_cast<float4*>(out), quads);
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}
"""
BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>

void launch(std::uintptr_t, std::uintptr_t, std::uintptr_t, int, std::uintptr_t);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("launch", &launch); }
"""

kernels = load_inline("chain_float4", BINDING, CUDA, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        stream = torch.cuda.current_stream().cuda_stream
        kernels.launch(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel(), stream)
        return out
