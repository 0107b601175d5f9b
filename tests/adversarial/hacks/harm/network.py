"""Connects to whatever listens on this machine.

problem: linear
devices: cpu cuda
expect: refused
"""

import pathlib
import socket

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        connected = 0
        for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, local, _, state = line.split()[:4]
            if state == "0A":
                with socket.socket() as sock:
                    sock.settimeout(2)
                    connected += (
                        sock.connect_ex(("127.0.0.1", int(local.rpartition(":")[2], 16))) == 0
                    )
        if not connected:
            raise PermissionError("nobody to be reached")

    def work(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        return self.work(x)
