from collections import Counter

import pytest

from adaexplore.memory.techniques import TECHNIQUES, technique_demands

POINTWISE = "def forward(self, x): return torch.relu(x)"
PRODUCT = "def forward(self, x): return x @ self.weight"
TEXTS = {technique.name: f"{technique.text}." for technique in TECHNIQUES}


def taken(reference, times, *, on_gpu=True):
    """How often each technique is asked of so many tasks like this."""
    return Counter(technique_demands([reference] * times, on_gpu=on_gpu))


@pytest.mark.parametrize("reference", [POINTWISE, PRODUCT])
def test_every_technique_that_fits_comes_before_any_comes_again(reference):
    assert max(taken(reference, 10).values()) == 1
    often = taken(reference, 200)
    assert max(often.values()) - min(often.values()) <= 1


def test_products_are_asked_of_tasks_that_have_one():
    asked = set(taken(POINTWISE, 100))
    assert TEXTS["warp specialization"] not in asked
    assert {TEXTS["warp specialization"], *asked} <= set(taken(PRODUCT, 100))


def test_what_cannot_be_judged_without_a_gpu_is_not_asked_there():
    texts = {TEXTS[technique.name] for technique in TECHNIQUES if technique.needs_gpu}
    assert texts & set(taken(PRODUCT, 100))
    assert not texts & set(taken(PRODUCT, 100, on_gpu=False))


def test_names_are_their_own():
    assert len(TEXTS) == len(TECHNIQUES)
