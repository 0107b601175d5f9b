"""Completing a reference beside searches that time on its device."""

import threading
import time

import pytest

from adaexplore.core.problem import Problem
from adaexplore.evaluate.judge.reference import Reference
from adaexplore.evaluate.judge.workload import JudgedWorkload
from adaexplore.evaluate.timing.baselines.built import Baselines
from adaexplore.sandbox.lock import LOCKS, device_lock, is_wanted

SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.randn(4, 4)]
"""


@pytest.mark.parametrize(
    ("owner", "part"), [(Baselines, "build"), (JudgedWorkload, "prepare_timing")]
)
def test_who_waits_to_time_waits_for_one_part_only(tmp_path, monkeypatch, owner, part):
    monkeypatch.setenv(LOCKS, str(tmp_path))
    done, do = [], getattr(owner, part)

    def time_alone():
        with device_lock("cpu", exclusive=True):
            done.append("timed")

    timing = threading.Thread(target=time_alone)

    def do_while_another_waits(*args):
        if not timing.ident:
            timing.start()
            while not is_wanted("cpu"):
                time.sleep(0.01)
        try:
            return do(*args)
        finally:
            done.append(part)

    reference = Reference(Problem("example", SOURCE, "cpp", "cpu"), tmp_path)
    monkeypatch.setattr(owner, part, do_while_another_waits)
    with device_lock("cpu", exclusive=False):
        reference.complete()
        done.append("complete")
    timing.join()
    others = done.index("timed")
    assert part in done[:others]
    assert others < done.index("complete")
