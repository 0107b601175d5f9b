"""A block is wider than a row and sums on into the next one.

problem: mean_broadcast
devices: cuda
language: cuda
expect: refused
timeout_s: 60
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cuda_runtime.h>
#include <cstdint>

constexpr int THREADS = 640;

__global__ void mean_kernel(const float* x, float* out, int columns) {
  __shared__ float partial[THREADS / 32];
  float sum = x[blockIdx.x * columns + threadIdx.x];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  float total = 0.0f;
  for (int w = 0; w < THREADS / 32; ++w) total += partial[w];
  if (threadIdx.x < columns) out[blockIdx.x * columns + threadIdx.x] = total / columns;
}

void launch(std::uintptr_t x, std::uintptr_t out, int rows, int columns, std::uintptr_t stream) {
  mean_kernel<<<rows, THREADS, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const float*>(x), reinterpret_cast<float*>(out), columns);
}
"""
BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>

void launch(std::uintptr_t, std::uintptr_t, int, int, std::uintptr_t);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("launch", &launch); }
"""

kernels = load_inline("mean_of_too_much", BINDING, CUDA, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        stream = torch.cuda.current_stream().cuda_stream
        kernels.launch(x.data_ptr(), out.data_ptr(), x.shape[0], x.shape[1], stream)
        return out
