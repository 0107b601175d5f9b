"""Kills the process that started it.

problem: linear
devices: cpu cuda
expect: refused
"""

import os
import signal
import time

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        if os.getppid() <= 1:
            raise PermissionError("no parent to be seen")
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(0.5)
        if os.path.exists(f"/proc/{os.getppid()}"):
            raise PermissionError("the parent lives")

    def work(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        return self.work(x)
