"""The kernel gives the original's outputs and gradients, and runs only where it was verified."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from adaexplore.runtime import ops
from adaexplore.runtime.compare import relative_error
from adaexplore.runtime.inputs import inputs_of
from adaexplore.runtime.kernel import state_of_package
from adaexplore.runtime.loaded import SPEC
from adaexplore.runtime.spec import VerifiedWorkload
from adaexplore.runtime.verify import error_of, gradient_error

DEVICE = torch.device(SPEC.device)
WORKLOADS = [pytest.param(workload, id=workload.name) for workload in SPEC.workloads]

pytestmark = pytest.mark.skipif(
    DEVICE.type == "cuda" and not torch.cuda.is_available(), reason="needs the GPU of the kernel"
)


def call(inputs: list[Tensor], state: list[Tensor]) -> list[Tensor]:
    """Call the operation."""
    found: list[Tensor] = ops.forward(inputs, state)
    return found


@pytest.mark.parametrize("workload", WORKLOADS)
def test_outputs_are_the_original_s_on_other_inputs_and_weights(workload: VerifiedWorkload) -> None:
    assert error_of(workload) <= SPEC.error


def test_compiled_without_a_graph_break() -> None:
    inputs, state = inputs_of(SPEC.workloads[0], DEVICE), state_of_package(DEVICE)
    with torch.no_grad():
        compiled = torch.compile(call, fullgraph=True)(inputs, state)
        assert relative_error(compiled, call(inputs, state)) <= SPEC.error


def test_gradients_are_the_original_s() -> None:
    inputs, state = inputs_of(SPEC.workloads[0], DEVICE), state_of_package(DEVICE)
    assert gradient_error(inputs, state) <= SPEC.error


def test_the_operation_keeps_the_rules_of_torch() -> None:
    inputs, state = inputs_of(SPEC.workloads[0], DEVICE), state_of_package(DEVICE)
    torch.library.opcheck(
        ops.forward, (inputs, state), test_utils=("test_schema", "test_faketensor")
    )
