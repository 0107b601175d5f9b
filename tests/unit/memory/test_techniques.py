from collections import Counter

import pytest

from adaexplore.core.problem import LANGUAGES
from adaexplore.languages import DIALECTS
from adaexplore.memory.techniques import technique_demands

POINTWISE = "def forward(self, x): return torch.relu(x)"
PRODUCT = "def forward(self, x): return x @ self.weight"
TAUGHT = [language for language in LANGUAGES if DIALECTS[language].techniques]
TEXTS = {one.name: f"{one.text}." for one in DIALECTS["triton"].techniques}


def taken(reference, times, *, language="triton", on_gpu=True):
    """How often each technique is asked of so many tasks like this."""
    return Counter(technique_demands([reference] * times, language=language, on_gpu=on_gpu))


@pytest.mark.parametrize("reference", [POINTWISE, PRODUCT])
@pytest.mark.parametrize("language", TAUGHT)
def test_every_technique_that_fits_comes_before_any_comes_again(reference, language):
    assert max(taken(reference, 10, language=language).values()) == 1
    often = taken(reference, 200, language=language)
    assert max(often.values()) - min(often.values()) <= 1


def test_products_are_asked_of_tasks_that_have_one():
    asked = set(taken(POINTWISE, 100))
    assert TEXTS["warp specialization"] not in asked
    assert {TEXTS["warp specialization"], *asked} <= set(taken(PRODUCT, 100))


def test_a_second_demand_is_one_of_those_named_and_none_that_the_task_has():
    only = ("asynchronous wgmma", "transposed operand")
    texts = {one.name: f"{one.text}." for one in DIALECTS["gluon"].techniques}
    first = [texts["asynchronous wgmma"]] * 3 + [texts["scan"]] * 4
    second = technique_demands(
        [PRODUCT] * 7, language="gluon", on_gpu=False, only=only, beside=first
    )
    assert second[:3] == [texts["transposed operand"]] * 3
    assert Counter(second) == {texts["transposed operand"]: 3, texts["asynchronous wgmma"]: 4}


def test_what_cannot_be_judged_without_a_gpu_is_not_asked_there():
    techniques = DIALECTS["triton"].techniques
    texts = {TEXTS[technique.name] for technique in techniques if technique.needs_gpu}
    assert texts & set(taken(PRODUCT, 100))
    assert not texts & set(taken(PRODUCT, 100, on_gpu=False))


def test_a_language_has_techniques_of_its_own_or_none():
    assert not set(taken(PRODUCT, 100, language="gluon")) & set(taken(PRODUCT, 100))
    assert technique_demands([PRODUCT], language="helion", on_gpu=False) == [""]


@pytest.mark.parametrize("language", TAUGHT)
def test_names_are_their_own(language):
    techniques = DIALECTS[language].techniques
    assert len({one.name for one in techniques}) == len(techniques)
