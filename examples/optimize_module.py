"""Optimize a live module and call the result on unseen inputs."""

from typing import Any

import torch
from torch import nn

import adaexplore


class Block(nn.Module):
    """A pre-norm feed-forward block with a residual."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def main(**options: Any) -> adaexplore.Run:
    block = Block().eval()
    run = adaexplore.optimize(block, (torch.randn(16, 128),), **{"steps": 8, **options})
    print(run)
    fast = run.best_module()
    unseen = torch.randn(16, 128)
    with torch.no_grad():
        print(f"largest difference: {(fast(unseen) - block(unseen)).abs().max():.1e}")
    return run


if __name__ == "__main__":
    main()
