"""Looks for keys in its environment and in its parents'.

problem: linear
devices: cpu cuda
expect: refused
"""

import os

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        texts = [repr(dict(os.environ))]
        for name in os.listdir("/proc"):
            if name.isdigit() or name == "self":
                try:
                    texts.append(
                        open(f"/proc/{name}/environ", "rb").read().decode(errors="replace")
                    )
                except OSError:
                    continue
        if not any("sk-not-for-candidates" in text for text in texts):
            raise PermissionError("no key to be seen")

    def work(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        return self.work(x)
