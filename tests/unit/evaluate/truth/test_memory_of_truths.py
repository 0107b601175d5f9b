"""The memory that verification takes beside inputs and outputs, by the peak of a process."""

import json
import os
import subprocess
import sys

import pytest

ELEMENTS = 1 << 22
FLOAT32 = 4 * ELEMENTS
EVERY_RUN = 15  # by the reckoning in `docs/evaluator.md`, in sizes of the input

HEADER = """
import json, resource, sys, torch
from pathlib import Path
from adaexplore.core.problem import Problem, Tolerance
from adaexplore.evaluate.truth import mismatch
from adaexplore.evaluate.truth.device_memory import pieces
from adaexplore.evaluate.truth.compare import Deviation, Truth, deviation, near, share_within
from adaexplore.evaluate.truth.error_scale import error_scale_of
from adaexplore.evaluate.truth.mismatch import find_mismatch
from adaexplore.evaluate.truth.runs import ReferenceRuns
from adaexplore.evaluate.truth.truth import Truths
from adaexplore.sandbox.user.user_code import Instance

torch.set_num_threads(1)
pieces.ON_CPU = 1 << 16  # pieces so large that malloc gives their memory back
mismatch.DESCRIBED = 1 << 14

def growth(call):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    call()
    return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""

ELU = '''
SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.nn.functional.elu(x)

def get_inputs():
    return [torch.randn({rows}, 256)]
"""

def elu(rows):
    source = SOURCE.format(rows=rows)
    problem = Problem("elu", source, "triton", "cpu", target="sm_90")
    instance = Instance.load(
        source, "Model", device="cpu", seed=0, mode="as-built", folder=Path(sys.argv[1])
    )
    Truths(ReferenceRuns(problem, instance, instance.inputs(0)), [], fewest=True)

elu(64)
'''

COMPARISONS = {
    "scale": "error_scale_of(truth)",
    "deviation": "deviation(out, truth)",
    "tolerance": "share_within(out, Truth('output', truth, {}), Tolerance(1e-3, 1e-3, 'a', 0.99))",
    "glance": "near(out, out, Deviation(1e-6, 1e-6))",
    "close": "find_mismatch(out, truth, output='output', inputs='own')",
    "wrong": "find_mismatch(none, truth, output='output', inputs='own', others={'b': truth})",
}

TRUTH = f"""
truth = torch.randn({ELEMENTS // 256}, 256, dtype=torch.float64)
out = truth.float()
deviation(out[:512], truth[:512])  # loads what it needs
none = torch.zeros(()).expand(out.shape)
"""


def run(folder, *parts):
    """What a process prints last."""
    command = [sys.executable, "-c", "\n".join(parts), str(folder)]
    mapped = os.environ | {"MALLOC_MMAP_THRESHOLD_": "131072"}  # what is freed is given back
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=mapped)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def growths(tmp_path_factory):
    calls = ", ".join(f"{name!r}: growth(lambda: {c})" for name, c in COMPARISONS.items())
    return run(tmp_path_factory.mktemp("calls"), HEADER, TRUTH, f"print(json.dumps({{{calls}}}))")


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_a_comparison_takes_a_small_part_of_an_outputs_memory(growths, comparison):
    assert growths[comparison] < FLOAT32 / 2


@pytest.mark.slow
def test_truths_take_no_more_than_their_runs_hold(tmp_path):
    grown = run(tmp_path, HEADER, ELU, f"print(growth(lambda: elu({ELEMENTS // 512})))")
    assert grown < (EVERY_RUN + 1) * FLOAT32 / 2
