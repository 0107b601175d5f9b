import pytest

from adaexplore.core.problem import LANGUAGES
from adaexplore.propose.model.kinds import kind_of


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("self.conv = nn.Conv2d(3, 64, 3)", "convolution"),
        ("F.conv_transpose3d(x, w)", "convolution"),
        ("torch.cumsum(x, dim=1)", "scan"),
        ("class Mamba2(nn.Module): ...", "scan"),
        ("F.scaled_dot_product_attention(q, k, v)", "attention"),
        (
            "self.patches = nn.Conv2d(3, 64, 16); self.heads = nn.MultiheadAttention(64, 8)",
            "attention",
        ),
        ("nn.Linear(3, 4)", ""),
        ("convert(x); self.conversation", ""),
        ("nn.LSTM(3, 4)", ""),
    ],
)
def test_the_kind_is_that_of_the_operations_named(source, kind):
    assert kind_of(source, "triton") == kind


def test_a_language_without_an_example_for_the_kind_shows_its_general_one():
    others = [language for language in LANGUAGES if language != "triton"]
    assert {kind_of("nn.Conv2d(3, 64, 3)", language) for language in others} == {""}
