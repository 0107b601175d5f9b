"""Any function from a prompt to a text is a model; this one has a single answer."""

from pathlib import Path
from typing import Any

import adaexplore

ANSWER = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, head_size):
        super().__init__()
        self.scale = head_size**-0.5

    def forward(self, scores, lengths):
        padded = torch.arange(scores.shape[-1]) >= lengths.view(-1, 1, 1, 1)
        return torch.softmax((scores * self.scale).masked_fill_(padded, -torch.inf), dim=-1)
"""


def answer(prompt: adaexplore.Prompt) -> str:
    print(f"asked for a {prompt.label} step in {len(prompt.messages)} messages")
    return f"```python{ANSWER}```"


def main(**options: Any) -> adaexplore.Run:
    problem = Path(__file__).parent / "problems/softmax.py"
    run = adaexplore.optimize(problem, **{"model": answer, "steps": 2, **options})
    for node in run.nodes:
        print(node.id, node.step_kind, node.evaluation.status)
    return run


if __name__ == "__main__":
    main()
