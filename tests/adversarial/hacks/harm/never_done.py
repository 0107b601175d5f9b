"""Never returns, and stops itself instead of spinning.

problem: linear
devices: cpu cuda
expect: refused
timeout_s: 6
"""

import os
import signal

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        os.kill(os.getpid(), signal.SIGSTOP)
