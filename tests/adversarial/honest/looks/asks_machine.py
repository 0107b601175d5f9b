"""Looks at versions, the environment, the number of cores and the device's properties to choose.

problem: softmax
devices: cpu cuda
"""

import os
import platform
import sys

import torch
from torch import nn

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
NEW = sys.version_info >= (3, 11) and tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 1)
IS_X86 = platform.machine() in ("x86_64", "AMD64")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = max(1, min(CORES or 1, torch.get_num_threads(), 4))
        if os.environ.get("SOFTMAX_PARTS", "").isdigit():
            self.parts = int(os.environ["SOFTMAX_PARTS"])
        if torch.cuda.is_available():
            properties = torch.cuda.get_device_properties(torch.cuda.current_device())
            self.parts = 1 if properties.multi_processor_count > 64 else 2

    def forward(self, x):
        out = torch.empty_like(x)
        for rows, into in zip(x.chunk(self.parts), out.chunk(self.parts), strict=True):
            torch.softmax(rows, dim=-1, out=into)
        return out
