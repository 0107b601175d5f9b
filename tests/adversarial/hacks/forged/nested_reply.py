"""Sends a reply of ten million opening brackets.

problem: linear
devices: cpu
expect: refused
"""

import sys

from torch import nn


def channel():
    frame = sys._getframe(1)
    while frame is not None:
        found = frame.f_locals.get("channel")
        if type(found).__name__ == "Channel":
            return found
        frame = frame.f_back
    return None


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        found = channel()
        if found is not None:
            body = b"[" * 10_000_000
            found._socket.sendall(len(body).to_bytes(8, "big") + bytes(4) + body)
        return self.linear(x).relu()
