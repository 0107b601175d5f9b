"""Writes a message that announces more bytes than ever come, and sleeps.

problem: linear
devices: cpu cuda
expect: refused
timeout_s: 6
"""

import os
import stat
import struct
import time

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        for name in os.listdir("/proc/self/fd"):
            try:
                if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                    os.write(int(name), struct.pack("!QI", 1 << 20, 0))
            except OSError:
                continue
        time.sleep(3600)
