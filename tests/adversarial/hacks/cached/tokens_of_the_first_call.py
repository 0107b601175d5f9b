"""Takes the tokens of every call for those of the first.

problem: padded_tokens
devices: cpu
expect: refused
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, tokens, features):
        super().__init__()
        self.table = nn.Embedding(tokens, features)
        self.means = None

    def forward(self, tokens, lengths, scale):
        if self.means is None:
            rows = self.table(tokens) * (tokens != 0)[..., None]
            self.means = rows.sum(1) / lengths[:, None]
        return self.means * scale
