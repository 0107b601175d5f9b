"""Returns float16 where float32 is asked.

problem: matmul
devices: cpu cuda
expect: refused
"""

from torch import nn


class ModelNew(nn.Module):
    def work(self, a, b):
        return a @ b

    def forward(self, a, b):
        return self.work(a, b).half()
