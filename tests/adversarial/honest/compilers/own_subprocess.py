"""Runs g++ itself, in a temporary folder of its own, and loads the library with `ctypes`.

problem: recurrence
devices: cpu
timeout_s: 120
"""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cmath>
extern "C" void scan(
    const float* gate, const float* x, float* out, long batch, long length, long n) {
  for (long b = 0; b < batch; ++b)
    for (long t = 0; t < length; ++t)
      for (long i = 0; i < n; ++i) {
        const long at = (b * length + t) * n + i;
        const float g = 1.0f / (1.0f + std::exp(-gate[at]));
        out[at] = g * (t ? out[at - n] : 0.0f) + (1.0f - g) * x[at];
      }
}
"""


def compiled():
    folder = Path(tempfile.mkdtemp(prefix="scan-"))
    (folder / "scan.cpp").write_text(SOURCE)
    command = ["g++", "-O2", "-shared", "-fPIC", "scan.cpp", "-o", "scan.so"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
    library = ctypes.CDLL(str(folder / "scan.so"))
    pointer, number = ctypes.c_void_p, ctypes.c_long
    library.scan.argtypes = [pointer, pointer, pointer, number, number, number]
    library.scan.restype = None
    return library.scan


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scan = compiled()

    def forward(self, gate, x):
        gate, x = gate.contiguous(), x.contiguous()
        out = torch.empty_like(x)
        self.scan(gate.data_ptr(), x.data_ptr(), out.data_ptr(), *x.shape)
        return out
