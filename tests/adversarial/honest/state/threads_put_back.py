"""Works with one thread, and puts their number back.

problem: matmul
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return a @ b
        finally:
            torch.set_num_threads(threads)
