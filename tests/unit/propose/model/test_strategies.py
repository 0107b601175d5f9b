import pytest

from adaexplore.core.problem import LANGUAGES
from adaexplore.languages import DIALECTS
from adaexplore.propose.model.strategies import CATALOGUE, find_strategy, strategies_for


def test_names_are_distinct_and_found_in_a_reply():
    names = [s.name for s in CATALOGUE]
    assert len(set(names)) == len(names)
    assert [find_strategy(f"{name}: do it. It saves time.") for name in names] == names


@pytest.mark.parametrize(
    ("reply", "name"),
    [
        ("**Algebraic Rewrite**: fold it into the tiling.", "algebraic rewrite"),
        ("one pass reduction - read once", "one-pass reduction"),
        ("I choose software_pipelining.", "software pipelining"),
        ("confusion reigns", None),
        ("", None),
    ],
)
def test_finds_a_name_in_any_spelling(reply, name):
    assert find_strategy(reply) == name


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_a_language_advises_on_strategies_that_it_can_express(dialect):
    of_language = {s.name for s in CATALOGUE if dialect.name in s.languages}
    assert {*dialect.strategies, *dialect.since} <= of_language


def test_every_strategy_has_languages_and_every_language_strategies():
    assert all(set(s.languages) <= set(LANGUAGES) and s.languages for s in CATALOGUE)
    assert all(len(strategies_for(language)) >= 8 for language in LANGUAGES)
    assert "warp specialisation" not in {s.name for s in strategies_for("cpp")}
