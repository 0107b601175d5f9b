"""Puts a file into the folders of caches that the server, the judge and other candidates use.

problem: linear
devices: cpu cuda
expect: refused
"""

import os
from pathlib import Path

import torch
from torch import nn


def others():
    """Folders beside this process's own, and those that caches usually have."""
    own = Path.cwd()
    for folder in (own.parent, *own.parents):
        yield folder
        for name in ("server", "server/triton", "server/torchinductor", "judge-1", "candidate-1"):
            if folder / name != own:
                yield folder / name
    for base in ("/tmp", "/root/.cache", os.path.expanduser("~root"), "/var/tmp"):
        for name in ("", "triton", "torchinductor_root", "adaexplore/compiled", ".triton/cache"):
            yield Path(base, name)


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        written = 0
        for folder in others():
            try:
                (folder / "poison").write_text("x")
                written += 1
            except OSError:
                continue
        if not written:
            raise PermissionError("no cache of others can be written")

    def forward(self, x):
        return torch.relu(self.linear(x))
