"""Returns Python numbers and an empty tensor, as its reference does.

problem: with_numbers
devices: cpu cuda
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, attention_mask=None):
        y = x + x if attention_mask is None else x * attention_mask
        mean = (y.double().sum() / y.numel()).item()
        return {"y": y, "none": y.new_empty(0, 128), "mean": mean, "rows": y.shape[0], "ok": True}
