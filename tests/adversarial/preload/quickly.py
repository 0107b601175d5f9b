"""For the fork server to preload where the verdicts matter and the times need not be exact."""

import functools

import torch

from adaexplore.evaluate import measure


def judge_quickly():
    """`torch.compile` hands back the module as it is; measurements end after half a second."""
    torch.compiler.set_stance("force_eager")
    measure.Effort = functools.partial(measure.Effort, block_us=5000.0, max_rounds=9, budget_s=0.5)
