"""Repeats the shared heads, and multiplies and adds up itself.

problem: grouped_attention
devices: cpu cuda
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, query, key, value):
        shared = query.shape[1] // key.shape[1]
        key, value = (t.repeat_interleave(shared, 1) for t in (key, value))
        scores = query @ key.mT * query.shape[-1] ** -0.5
        return scores.softmax(-1) @ value
