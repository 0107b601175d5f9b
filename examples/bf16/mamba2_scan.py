"""The scan of a Mamba2 layer in chunks: 2,048 steps, 24 heads of 64, 128 states; bf16."""

import torch
from torch import nn

BATCH, STEPS, HEADS, SIZE, STATES, CHUNK = 4, 2048, 24, 64, 128, 256


def decays(logs):
    """Return exp of the sums of `logs` from each step (columns) to each later one (rows)."""
    sums = logs.cumsum(-1)
    between = sums[..., :, None] - sums[..., None, :]
    later = torch.ones(logs.shape[-1], logs.shape[-1], dtype=torch.bool, device=logs.device).tril()
    return between.masked_fill(~later, float("-inf")).exp()


class Model(nn.Module):
    def __init__(self, heads, chunk):
        super().__init__()
        self.chunk = chunk
        self.log_rate = nn.Parameter(torch.linspace(0.0, 2.0, heads))

    def forward(self, x, dt, b, c):
        batch, steps, heads, size = x.shape
        parts = (batch, steps // self.chunk, self.chunk)
        x = (x.float() * dt.float()[..., None]).view(*parts, heads, size)
        logs = (-self.log_rate.exp() * dt.float()).view(*parts, heads).permute(0, 3, 1, 2)
        b, c = b.float().view(*parts, -1), c.float().view(*parts, -1)
        within = torch.einsum("bkln,bksn,bhkls,bkshp->bklhp", c, b, decays(logs), x)
        sums = logs.cumsum(-1)
        left = (sums[..., -1:] - sums).exp()
        states = torch.einsum("bksn,bhks,bkshp->bkhpn", b, left, x)
        whole, state, before = sums[..., -1].exp(), torch.zeros_like(states[:, 0]), []
        for chunk in range(parts[1]):
            before.append(state)
            state = state * whole[:, :, chunk, None, None] + states[:, chunk]
        across = torch.einsum("bkln,bkhpn,bhkl->bklhp", c, torch.stack(before, 1), sums.exp())
        return (within + across).reshape(batch, steps, heads, size).to(torch.bfloat16)


def get_inputs():
    x = torch.randn(BATCH, STEPS, HEADS, SIZE, dtype=torch.bfloat16)
    dt = torch.nn.functional.softplus(torch.randn(BATCH, STEPS, HEADS) - 3).to(torch.bfloat16)
    b, c = (torch.randn(BATCH, STEPS, STATES, dtype=torch.bfloat16) for _ in range(2))
    return [x, dt, b, c]


def get_init_inputs():
    return [HEADS, CHUNK]
