"""Every case gets the verdict it must get."""

import pytest

from .bench import Judges, bystander, in_order
from .corpus import cases

CASES = cases()


def _parameters(device: str, *marks: pytest.MarkDecorator) -> list:
    """All cases of a device; on the CPU all but the first of each family are slow."""
    seen, parameters = set(), []
    for case in in_order(CASES, device):
        family = (case.kind, case.family)
        slow = [pytest.mark.slow] if device == "cpu" and family in seen else []
        seen.add(family)
        parameters.append(pytest.param(case, id=case.id, marks=[*marks, *slow]))
    return parameters


@pytest.fixture(scope="module")
def judges_on():
    """Judges by device."""
    made = {}

    def judges_on(device: str) -> Judges:
        if device not in made:
            made[device] = Judges(device, quick=True)
        return made[device]

    with bystander():
        yield judges_on
    for judges in made.values():
        judges.close()


@pytest.mark.parametrize("case", _parameters("cpu"))
def test_on_the_cpu(judges_on, case):
    outcome = judges_on("cpu").judge(case)
    assert outcome.right, (outcome.evaluation.status, outcome.reason, outcome.speedup)


@pytest.mark.parametrize("case", _parameters("cuda", pytest.mark.gpu))
def test_on_a_gpu(judges_on, case):
    outcome = judges_on("cuda:0").judge(case)
    assert outcome.right, (outcome.evaluation.status, outcome.reason, outcome.speedup)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("kind", ["hacks", "honest"])
def test_there_are_enough(kind, device):
    assert sum(case.kind == kind for case in CASES if case.runs_on(device)) >= 60
