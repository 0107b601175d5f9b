"""References whose kernels assert on a GPU, which takes their process down; judges pretend it."""

import pytest

from adaexplore.core.errors import InfrastructureError
from adaexplore.core.problem import Problem
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator

PROBLEM = Problem("example", "class Model: ...", "triton", "cpu")


@pytest.fixture
def evaluator(server):
    def evaluator(entry):
        found = LocalEvaluator(server, PROBLEM, timeout_s=10.0, memory_bytes=1 << 30)
        found.judge_entry = f"worker_entries:{entry}"
        return found

    return evaluator


def test_it_is_prepared_again_on_inputs_of_its_own_kind(evaluator):
    asserting = evaluator("asserts_on_other_inputs")
    assert asserting.prepare().notes == ("own_only=True",)
    asserting.close()
    assert asserting.prepare().notes == ("own_only=True",)
    asserting.close()


def test_one_that_asserts_on_its_own_inputs_is_lost(evaluator):
    with pytest.raises(InfrastructureError, match="device-side assert"):
        evaluator("asserts").prepare()
