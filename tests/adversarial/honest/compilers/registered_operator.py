"""A C++ extension that registers an operator with PyTorch's dispatcher.

problem: rms_norm_residual
devices: cpu
timeout_s: 120
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>
#include <tuple>

std::tuple<at::Tensor, at::Tensor> forward(at::Tensor x, at::Tensor r, at::Tensor w) {
  const int64_t n = x.size(-1), rows = x.numel() / n;
  auto normed = at::empty_like(x), total = at::empty_like(x);
  const float *px = x.data_ptr<float>(), *pr = r.data_ptr<float>(), *pw = w.data_ptr<float>();
  float *pn = normed.data_ptr<float>(), *pt = total.data_ptr<float>();
  for (int64_t i = 0; i < rows; ++i) {
    double sum = 0.0;
    for (int64_t j = i * n; j < (i + 1) * n; ++j) {
      pt[j] = px[j] + pr[j];
      sum += double(pt[j]) * pt[j];
    }
    const float scale = 1.0 / std::sqrt(sum / n + 1e-6);
    for (int64_t j = 0; j < n; ++j) pn[i * n + j] = pt[i * n + j] * scale * pw[j];
  }
  return {normed, total};
}

TORCH_LIBRARY(honest_norm, m) {
  m.def("forward(Tensor x, Tensor r, Tensor w) -> (Tensor, Tensor)");
}
TORCH_LIBRARY_IMPL(honest_norm, CPU, m) { m.impl("forward", forward); }
"""


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(features) + 0.5)
        load_inline("honest_norm", SOURCE, is_python_module=False, extra_cflags=["-O2"])

    def forward(self, x, residual):
        x, residual = x.contiguous(), residual.contiguous()
        normed, total = torch.ops.honest_norm.forward(x, residual, self.weight)
        return {"normed": normed, "residual": total}
