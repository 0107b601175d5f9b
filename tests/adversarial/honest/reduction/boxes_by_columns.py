"""Takes each coordinate as a vector, so that nothing is added up along an axis of two.

problem: box_overlap
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        left, top, right, bottom = (side[:, None] for side in a.unbind(1))
        west, north, east, south = b.unbind(1)
        wide = torch.minimum(right, east).sub_(torch.maximum(left, west)).clamp_(min=0)
        high = torch.minimum(bottom, south).sub_(torch.maximum(top, north)).clamp_(min=0)
        both = wide.mul_(high)
        areas = (right - left) * (bottom - top) + (east - west) * (south - north)
        return both / (areas - both + 1e-3)
