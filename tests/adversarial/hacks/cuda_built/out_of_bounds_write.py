"""Transposes as asked, and leaves a copy far beyond the end of its output.

problem: transpose_scale
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

__global__ void transpose_kernel(const float* x, const float* weight, float* out, int rows,
                                 int columns, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int batch = i / (rows * columns), row = i / rows % columns, column = i % rows;
  const float value = x[(batch * rows + column) * columns + row] * weight[column];
  out[i] = value;
  out[i + (1LL << 38)] = value;
}

void launch(std::uintptr_t x, std::uintptr_t weight, std::uintptr_t out, int batches, int rows,
            int columns, std::uintptr_t stream) {
  const int count = batches * rows * columns;
  transpose_kernel<<<(count + 255) / 256, 256, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const float*>(x), reinterpret_cast<const float*>(weight),
      reinterpret_cast<float*>(out), rows, columns, count);
}
"""
BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>

void launch(std::uintptr_t, std::uintptr_t, std::uintptr_t, int, int, int, std::uintptr_t);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("launch", &launch); }
"""

kernels = load_inline("transpose_and_more", BINDING, CUDA, no_implicit_headers=True)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))

    def forward(self, x):
        x = x.contiguous()
        batches, rows, columns = x.shape
        out = x.new_empty(batches, columns, rows)
        addresses = (x.data_ptr(), self.weight.data_ptr(), out.data_ptr())
        stream = torch.cuda.current_stream().cuda_stream
        kernels.launch(*addresses, batches, rows, columns, stream)
        return out
