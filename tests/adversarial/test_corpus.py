"""Every case gets the verdict it must get."""

from collections import Counter

import pytest

from shared_fixtures import BorrowedServer

from .bench import Judges, bystander, in_order, key_of
from .corpus import Case, cases

CASES = cases()
LONG = {
    "hacks/harm/too_much_memory",
    "honest/concurrency/threads_for_a_call",
    "honest/dtype/float64_inside",
}


HONEST = {"plain"}
"""Families of honest kernels in the fast set; of hacks, every family is."""


def _fast() -> set[str]:
    """One case of a family for the CPU, where possible on problems that other families share."""
    families: dict[tuple[str, str], list[Case]] = {}
    for case in in_order(CASES, "cpu"):
        if case.kind == "hacks" or case.family in HONEST:
            families.setdefault((case.kind, case.family), []).append(case)
    sharing = Counter(key for group in families.values() for key in set(map(key_of, group)))

    def cost(case: Case) -> tuple[bool, int, int]:
        return case.whole or case.id in LONG, -sharing[key_of(case)], case.path.stat().st_size

    return {min(group, key=cost).id for group in families.values()}


def _parameters(device: str, *marks: pytest.MarkDecorator) -> list:
    """All cases of a device; on the CPU all but one of each family are slow."""
    fast = _fast()
    parameters = []
    for case in in_order(CASES, device):
        slow = [pytest.mark.slow] if device == "cpu" and case.id not in fast else []
        parameters.append(pytest.param(case, id=case.id, marks=[*marks, *slow]))
    return parameters


@pytest.fixture(scope="module")
def judges_on(server):
    """Judges by device; those on the CPU use the shared server."""
    made = {}

    def judges_on(device: str) -> Judges:
        if device not in made:
            shared = BorrowedServer(server) if device == "cpu" else None
            made[device] = Judges(device, quick=True, server=shared)
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


def test_cases_are_chosen_by_several_globs():
    chosen = cases("hacks/timer/clock_*", "session_by_gc")
    assert {case.family for case in chosen} == {"timer", "prefetched"}
    assert len(cases()) == len(cases("hacks/*", "honest/*")) == len(CASES)
