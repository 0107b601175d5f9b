"""For the fork server to preload where the verdicts matter and the times need not be exact."""

import torch

from adaexplore.evaluate import measure, verdict


def judge_quickly():
    """`torch.compile` hands back the module as it is; measurements end after half a second."""
    torch.compiler.set_stance("force_eager")
    verdict.effort_for = effort_for


def effort_for(device: str) -> measure.Effort:
    block_us = 5000.0 if device == "cpu" else 20_000.0  # on a GPU more could hide in a block
    return measure.Effort(block_us=block_us, other_us=5000.0, max_rounds=9, budget_s=0.5)
