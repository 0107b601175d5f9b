import pytest

from adaexplore.core.problem import LANGUAGES, Checks, Problem
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.propose.model.kinds import kind_of

CONVOLUTIONS = "self.convs = nn.ModuleList(nn.Conv2d(8, 8, 3) for _ in range(9))"
ATTENTION = "self.heads = nn.MultiheadAttention(64, 8)"
LAUNCHES = {"overhead-bound": "launching cost 300 of eager's 577 µs"}


def kind(source, language="triton", layers=1, labels=None, **checks):
    problem = Problem("a", source, language, "cuda:0", checks=Checks(**checks))
    return kind_of(problem, ReferenceFacts(layers=layers, labels=labels or {}))


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("self.conv = nn.Conv2d(3, 64, 3)", "convolution"),
        ("F.conv_transpose3d(x, w)", "convolution"),
        ("torch.cumsum(x, dim=1)", "scan"),
        ("class Mamba2(nn.Module): ...  # heads: number of attention heads", "scan"),
        ("F.scaled_dot_product_attention(q, k, v)", "attention"),
        (f"self.patches = nn.Conv2d(3, 64, 16); {ATTENTION}", "attention"),
        ("nn.Linear(3, 4)", ""),
        ("convert(x); self.conversation", ""),
        ("nn.LSTM(3, 4)", ""),
    ],
)
def test_the_kind_is_that_of_the_operations_named(source, named):
    assert kind(source) == named


@pytest.mark.parametrize(
    ("source", "labels", "named"),
    [
        (CONVOLUTIONS, {}, "network"),
        (ATTENTION, {}, "attention"),
        (ATTENTION, LAUNCHES, "network"),
        ("nn.Linear(3, 4)", {}, ""),
        ("nn.Linear(3, 4)", LAUNCHES, "network"),
    ],
)
def test_many_layers_are_a_network_with_convolutions_or_where_launching_costs_most(
    source, labels, named
):
    assert kind(source, layers=20, labels=labels) == named
    assert kind(source, layers=10, labels=labels) != "network"


@pytest.mark.parametrize("check", ["require_custom", "backward"])
def test_no_network_is_shown_where_its_example_would_be_refused(check):
    assert kind(CONVOLUTIONS, layers=20, **{check: True}) == "convolution"


def test_a_language_without_an_example_for_the_kind_shows_its_general_one():
    others = [language for language in LANGUAGES if language != "triton"]
    assert {kind(CONVOLUTIONS, language, layers=n) for language in others for n in (1, 20)} == {""}
