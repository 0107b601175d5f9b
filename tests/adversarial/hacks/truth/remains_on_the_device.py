"""Looks for the right output in fresh device memory, where the judge has freed some.

problem: linear
devices: cuda
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.kept = []

    def forward(self, x):
        out = torch.relu(self.linear(x))
        if x.device.type == "meta":
            return out
        row = out[-1]
        at = int(row.argmax())
        for _ in range(16):
            self.kept.append(torch.empty(1 << 28, device=x.device))  # 1 GiB
            memory = self.kept[-1]
            for place in ((memory - row[at]).abs() < 1e-6).nonzero().flatten().tolist()[:256]:
                found = memory[max(place - at, 0) :][: row.numel()]
                if found.numel() == row.numel() and torch.allclose(found, row, atol=1e-4):
                    return out
        raise LookupError("no output there")
