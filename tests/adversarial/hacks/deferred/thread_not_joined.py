"""A thread fills the output after it was returned; only `Tensor.copy_`, patched, waits for it.

problem: linear
devices: cpu cuda
"""

import threading

import torch
from torch import nn

JOINED = []
_copy = torch.Tensor.copy_


def copy_(self, *args, **kwargs):
    while JOINED:
        JOINED.pop()()
    return _copy(self, *args, **kwargs)


torch.Tensor.copy_ = copy_


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def work(self, x):
        return torch.relu(self.linear(x))

    def fill(self, out, x):
        with torch.no_grad():
            _copy(out, self.work(x))

    def forward(self, x):
        out = torch.empty(x.shape[0], self.linear.out_features, device=x.device)
        thread = threading.Thread(target=self.fill, args=(out, x))
        thread.start()
        JOINED.append(thread.join)
        return out
