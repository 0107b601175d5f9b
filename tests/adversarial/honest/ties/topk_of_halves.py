"""Takes the eight largest of the even and of the odd columns, then of these.

problem: saturated_topk
devices: cpu cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        clipped = nn.functional.hardtanh(2 * x)
        odd, even = clipped[:, 1::2].topk(8, dim=-1), clipped[:, ::2].topk(8, dim=-1)
        values = torch.cat([odd.values, even.values], dim=-1)
        places = torch.cat([2 * odd.indices + 1, 2 * even.indices], dim=-1)
        best = values.topk(8, dim=-1)
        return best.values, places.gather(-1, best.indices)
