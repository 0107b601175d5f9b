"""Returns Python numbers beside a tensor, and a tensor without elements."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, attention_mask=None):
        y = x * 2 if attention_mask is None else x * attention_mask
        return {"y": y, "none": y[:0], "mean": y.double().mean().item(), "rows": len(y), "ok": True}


def get_inputs():
    return {"x": torch.randn(256, 128), "attention_mask": None}
