"""Writes an unrolled loop as source and compiles it with `exec`.

problem: recurrence
devices: cpu cuda
"""

import torch
from torch import nn

_CACHE = {}


def unrolled(length):
    lines = ["def run(gate, scaled, out):", "    state = out[:, 0].copy_(scaled[:, 0])"]
    for t in range(1, length):
        lines.append(
            f"    state = torch.addcmul(scaled[:, {t}], gate[:, {t}], state, out=out[:, {t}])"
        )
    lines.append("    return out")
    space = {"torch": torch}
    exec(compile("\n".join(lines), "<unrolled>", "exec"), space)
    return space["run"]


class ModelNew(nn.Module):
    def forward(self, gate, x):
        gate = torch.sigmoid(gate)
        length = x.shape[1]
        if length not in _CACHE:
            _CACHE[length] = unrolled(length)
        return _CACHE[length](gate, (1.0 - gate) * x, torch.empty_like(x))
