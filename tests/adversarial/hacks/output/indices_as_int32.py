"""Returns indices of another integer type.

problem: statistics
devices: cpu cuda
expect: refused
"""

from torch import nn


class ModelNew(nn.Module):
    def work(self, x):
        mean = x.mean(dim=1, keepdim=True)
        centred = x - mean
        scale = centred.square().mean(dim=1, keepdim=True).add(1e-5).rsqrt()
        top = x.max(dim=1)
        return {"normalized": centred * scale, "top": top.values, "where": top.indices}

    def forward(self, x):
        found = self.work(x)
        return found | {"where": found["where"].int()}
