"""Keeps its settings in a dataclass, has its own tests at the end, and annotations as text.

problem: matmul
devices: cpu cuda
"""

from __future__ import annotations

import dataclasses

import torch
from torch import nn


@dataclasses.dataclass(frozen=True)
class Config:
    tile: int = 128
    names: tuple[str, ...] = ("a", "b")


class ModelNew(nn.Module):
    def __init__(self, config: Config | None = None) -> None:
        super().__init__()
        self.config = config or Config()

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.cat([a @ part for part in b.split(self.config.tile, dim=1)], dim=1)


def check() -> None:
    a, b = torch.randn(256, 512), torch.randn(512, 512)
    torch.testing.assert_close(ModelNew()(a, b), a @ b)
    print("PASSED")


if __name__ == "__main__":
    check()
