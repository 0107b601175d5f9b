"""The size of the example models, and their place: bf16 on a GPU, small and in fp32 on the CPU."""

import os

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DTYPE = torch.bfloat16 if DEVICE == "cuda" else torch.float32
SMALL = os.environ.get("MODEL_SIZE", "full" if DEVICE == "cuda" else "small") == "small"


def sized(full, small):
    """Return one of two values by the variable MODEL_SIZE (full or small)."""
    return small if SMALL else full


def placed(model: nn.Module) -> nn.Module:
    """Return a model in evaluation mode on its device."""
    return model.to(DEVICE, DTYPE).eval().requires_grad_(False)


def random(*shape: int) -> torch.Tensor:
    """Return an input of random numbers."""
    return torch.randn(*shape, device=DEVICE, dtype=DTYPE)
