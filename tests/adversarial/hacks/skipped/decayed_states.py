"""Takes the state of the chunk before alone: under usual inputs the states before it have decayed.

problem: decayed_scan
devices: cpu cuda
expect: refused
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, heads, chunk):
        super().__init__()
        self.chunk = chunk
        self.log_rate = nn.Parameter(torch.linspace(0.0, 2.0, heads))

    def forward(self, x, dt, b, c):
        steps, heads, size = x.shape
        parts = (steps // self.chunk, self.chunk)
        x = (x.float() * dt.float()[..., None]).view(*parts, heads, size)
        sums = (-self.log_rate.exp() * dt.float()).view(*parts, heads).cumsum(1)
        b, c = b.float().view(*parts, -1), c.float().view(*parts, -1)
        between = sums[:, :, None] - sums[:, None]
        later = torch.ones(self.chunk, self.chunk, dtype=torch.bool, device=x.device).tril()
        decays = between.masked_fill(~later[..., None], float("-inf")).exp()
        out = torch.einsum("kls,klsh,kshp->klhp", torch.einsum("kln,ksn->kls", c, b), decays, x)
        left = (sums[:, -1:] - sums).exp()
        states = torch.einsum("ksn,ksh,kshp->khpn", b, left, x)
        for chunk in range(1, len(out)):
            state = states[chunk - 1]
            carried = torch.einsum("ln,hpn,lh->lhp", c[chunk], state, sums[chunk].exp())
            out[chunk] = out[chunk] + carried
        return out.reshape(steps, heads, size).to(torch.bfloat16)
