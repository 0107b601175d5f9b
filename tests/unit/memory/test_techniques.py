from collections import Counter

import pytest

from adaexplore.memory.techniques import TECHNIQUES, technique_for

POINTWISE = "def forward(self, x): return torch.relu(x)"
PRODUCT = "def forward(self, x): return x @ self.weight"


def taken(reference, times, *, on_gpu=True):
    """The names that so many tasks like this get, one after the other."""
    used = Counter()
    for _ in range(times):
        used[technique_for(reference, used, on_gpu=on_gpu).name] += 1
    return used


@pytest.mark.parametrize("reference", [POINTWISE, PRODUCT])
def test_every_technique_that_fits_comes_before_any_comes_again(reference):
    first = taken(reference, 10)
    assert max(first.values()) == 1
    assert max(taken(reference, 200).values()) - min(taken(reference, 200).values()) <= 1


def test_products_are_asked_of_tasks_that_have_one():
    asked = set(taken(POINTWISE, 100))
    assert "warp specialization" not in asked
    assert {"warp specialization", *asked} <= set(taken(PRODUCT, 100))


def test_what_cannot_be_judged_without_a_gpu_is_not_asked_there():
    names = {technique.name for technique in TECHNIQUES if technique.needs_gpu}
    assert names
    assert names & set(taken(PRODUCT, 100))
    assert not names & set(taken(PRODUCT, 100, on_gpu=False))


def test_names_are_their_own():
    assert len({technique.name for technique in TECHNIQUES}) == len(TECHNIQUES)
