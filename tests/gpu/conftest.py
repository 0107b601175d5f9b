"""Judges on a real GPU, of one problem; a module says in which `LANGUAGE`."""

import pytest
from on_gpu import DEVICE, REFERENCE

from adaexplore.core.problem import Checks, Problem
from adaexplore.evaluate.judge.evaluators.local import LocalEvaluator
from adaexplore.sandbox.lock import device_lock


@pytest.fixture
def shared_gpu():
    """Work on the GPU in the test's process while no judge of another test times it."""
    with device_lock(DEVICE, exclusive=False):
        yield


@pytest.fixture(scope="module")
def evaluator_of(request, server):
    """Makes a brief judge of the problem with other options, one for all tests of a module."""
    made = {}

    def evaluator_of(**options):
        key = tuple(options.items())
        if key not in made:
            problem = Problem(
                "example", REFERENCE, request.module.LANGUAGE, DEVICE, checks=Checks(**options)
            )
            made[key] = LocalEvaluator(
                server, problem, timeout_s=120.0, memory_bytes=1 << 34, brief=True
            )
            made[key].prepare()
        return made[key]

    yield evaluator_of
    for evaluator in made.values():
        evaluator.close()


@pytest.fixture(scope="module")
def judge(evaluator_of):
    return evaluator_of()
