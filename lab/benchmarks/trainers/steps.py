"""The problem and the twenty kernels that every client sends, with the verdict that each must get.

This module imports nothing: clients run in environments of their own.
"""

REFERENCE = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x).cumsum(0) * torch.sigmoid(x).amax(1, keepdim=True)


def get_inputs():
    return [torch.randn(64, 256)]
"""
KERNEL = """import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return {body}
"""
RIGHT = "torch.tanh(x).cumsum(0) * torch.sigmoid(x.amax(1, keepdim=True))"
BODIES = {
    "passed": RIGHT,
    "wrong_output": f"{RIGHT} + 1",
    "runtime_error": "x.no_such_method()",
    "compile_error": "(",
}


def steps(count: int = 20) -> list[tuple[str, str]]:
    """Return kernels and their statuses; half of them are right, and no two are equal."""
    statuses = ["passed", "wrong_output", "passed", "runtime_error", "passed", "compile_error"]
    chosen = [statuses[i % len(statuses)] for i in range(count)]
    return [
        (KERNEL.format(body=BODIES[status]) + f"# step {number}\n", status)
        for number, status in enumerate(chosen)
    ]
