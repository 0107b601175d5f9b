"""Every case gets the verdict it must get."""

import pytest

from .bench import Judges, key_of, running_server
from .corpus import cases

CASES = sorted(cases(), key=lambda case: (key_of(case), case.id))


def _parameters(device: str, *marks: pytest.MarkDecorator) -> list:
    return [pytest.param(case, id=case.id, marks=marks) for case in CASES if case.runs_on(device)]


@pytest.fixture(scope="module")
def judges_on():
    """Judges by device, behind one server each."""
    made, servers = {}, []

    def judges_on(device: str) -> Judges:
        if device not in made:
            servers.append(running_server(device, quick=True))
            made[device] = Judges(servers[-1].__enter__(), device)
        return made[device]

    yield judges_on
    for judges in made.values():
        judges.close()
    for server in servers:
        server.__exit__(None, None, None)


@pytest.mark.parametrize("case", _parameters("cpu"))
def test_on_the_cpu(judges_on, case):
    outcome = judges_on("cpu").judge(case)
    assert outcome.right, (outcome.evaluation.status, outcome.reason, outcome.speedup)


@pytest.mark.parametrize("case", _parameters("cuda", pytest.mark.gpu))
def test_on_a_gpu(judges_on, case):
    outcome = judges_on("cuda:0").judge(case)
    assert outcome.right, (outcome.evaluation.status, outcome.reason, outcome.speedup)
