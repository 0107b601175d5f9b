"""Builds its extension when it is first called, for the shapes of that call.

problem: bias_swish
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

extern "C" __global__ void bias_swish(const float* x, const float* bias, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    const float v = x[i] + bias[i % FEATURES];
    out[i] = v / (1.0f + expf(-v));
  }
}

void launch(std::uintptr_t x, std::uintptr_t bias, std::uintptr_t out, int count,
            std::uintptr_t stream) {
  bias_swish<<<(count + 127) / 128, 128, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const float*>(x), reinterpret_cast<const float*>(bias),
      reinterpret_cast<float*>(out), count);
}
"""
BINDING = r"""
#include <pybind11/pybind11.h>
#include <cstdint>

void launch(std::uintptr_t, std::uintptr_t, std::uintptr_t, int, std::uintptr_t);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("launch", &launch); }
"""


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))
        self.kernels = None

    def forward(self, x):
        if self.kernels is None:
            self.kernels = load_inline(
                f"bias_swish_{x.shape[-1]}",
                BINDING,
                CUDA,
                extra_cuda_cflags=[f"-DFEATURES={x.shape[-1]}"],
                no_implicit_headers=True,
            )
        x = x.contiguous()
        out = torch.empty_like(x)
        stream = torch.cuda.current_stream().cuda_stream
        addresses = (x.data_ptr(), self.bias.data_ptr(), out.data_ptr())
        self.kernels.launch(*addresses, x.numel(), stream)
        return out
