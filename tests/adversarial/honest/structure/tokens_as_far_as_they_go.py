"""Adds the embeddings of a row's first tokens, as many as its length says.

problem: padded_tokens
devices: cpu
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, tokens, features):
        super().__init__()
        self.table = nn.Embedding(tokens, features)

    def forward(self, tokens, lengths, scale):
        inside = torch.arange(tokens.shape[1]) < lengths[:, None]
        begins = lengths.cumsum(0) - lengths
        means = nn.functional.embedding_bag(tokens[inside], self.table.weight, begins, mode="mean")
        return means * scale
