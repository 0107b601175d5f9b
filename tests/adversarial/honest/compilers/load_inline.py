"""A C++ extension, compiled when the model is made.

problem: elementwise
devices: cpu
timeout_s: 120
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor chain(torch::Tensor x, torch::Tensor y) {
  x = x.contiguous();
  y = y.contiguous();
  auto out = torch::empty_like(x);
  const float* px = x.data_ptr<float>();
  const float* py = y.data_ptr<float>();
  float* po = out.data_ptr<float>();
  at::parallel_for(0, x.numel(), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float gelu = 0.5f * px[i] * (1.0f + std::erf(px[i] * 0.70710678118654752f));
      po[i] = std::tanh(gelu / (1.0f + std::exp(-py[i])) + px[i]);
    }
  });
  return out;
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.extension = load_inline(
            "chain_elementwise", SOURCE, functions=["chain"], extra_cflags=["-O3"]
        )

    def forward(self, x, y):
        return self.extension.chain(x, y)
