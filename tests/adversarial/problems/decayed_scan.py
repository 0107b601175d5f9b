"""A scan with decay in chunks, in half with float32 between: a chunk later, most has decayed."""

import torch
from torch import nn

STEPS, HEADS, SIZE, STATES, CHUNK = 512, 4, 32, 32, 128


class Model(nn.Module):
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
        states, state = torch.einsum("ksn,ksh,kshp->khpn", b, left, x), 0.0
        for chunk in range(1, len(out)):
            state = state * sums[chunk - 1, -1].exp()[:, None, None] + states[chunk - 1]
            carried = torch.einsum("ln,hpn,lh->lhp", c[chunk], state, sums[chunk].exp())
            out[chunk] = out[chunk] + carried
        return out.reshape(steps, heads, size).to(torch.bfloat16)


def get_inputs():
    x = torch.randn(STEPS, HEADS, SIZE, dtype=torch.bfloat16)
    dt = torch.nn.functional.softplus(torch.randn(STEPS, HEADS) - 3).to(torch.bfloat16)
    b, c = (torch.randn(STEPS, STATES, dtype=torch.bfloat16) for _ in range(2))
    return [x, dt, b, c]


def get_init_inputs():
    return [HEADS, CHUNK]
