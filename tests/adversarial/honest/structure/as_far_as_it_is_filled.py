"""Reads the cache of each sequence as far as it is filled.

problem: decode_step
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, query, keys, values, lengths):
        scaled = query * query.shape[-1] ** -0.5
        out = torch.empty_like(query)
        for i, n in enumerate(lengths.tolist()):
            scores = keys[i, :, :n] @ scaled[i, :, :, None]
            out[i] = (scores.softmax(1).mT @ values[i, :, :n]).squeeze(1)
        return out
