import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.config import Settings, parse_settings
from adaexplore.core.errors import BadInputError

drawn = st.builds(
    Settings,
    c=st.floats(0, 100),
    alpha=st.floats(0, 1),
    p_large=st.floats(0, 1),
    small_limit=st.integers(0, 100),
    pool_size=st.integers(1, 100),
    extra_p=st.floats(0.01, 0.99),
    reward=st.sampled_from(["log", "published"]),
    timeout_s=st.floats(0.001, 1e6),
    confirm=st.booleans(),
)


def complaint(*pairs: str) -> str:
    with pytest.raises(BadInputError) as caught:
        parse_settings(pairs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestParsing:
    def test_nothing_said_is_the_defaults(self):
        assert parse_settings([]) == Settings()

    def test_values_become_what_the_setting_is(self):
        chosen = parse_settings(
            ["c=0.5", "small_limit=3", "reward=published", "confirm=false", " window = 7 "]
        )
        assert (chosen.c, chosen.small_limit, chosen.window) == (0.5, 3, 7)
        assert (chosen.reward, chosen.confirm) == ("published", False)

    def test_the_last_of_two_counts(self):
        assert parse_settings(["c=1", "c=2"]).c == 2

    def test_it_builds_on_a_base(self):
        base = Settings(c=0.9, window=2)
        assert parse_settings(["window=4"], base) == Settings(c=0.9, window=4)

    @given(settings=drawn)
    def test_what_is_written_out_reads_back(self, settings):
        pairs = [f"{key}={value}" for key, value in settings.model_dump().items()]
        assert parse_settings(pairs) == settings
        assert Settings.model_validate_json(settings.model_dump_json()) == settings


class TestComplaints:
    def test_a_missing_sign(self):
        assert complaint("c") == "--set 'c': write it as key=value, for example --set c=0.5"

    @pytest.mark.parametrize(
        ("wrong", "meant"),
        [("timeout", "timeout_s"), ("poolsize", "pool_size"), ("p_larg", "p_large")],
    )
    def test_an_unknown_key_names_the_near_ones(self, wrong, meant):
        text = complaint(f"{wrong}=1")
        assert f"--set {wrong}: no such setting; did you mean" in text
        assert meant in text

    def test_a_key_like_no_other_names_them_all(self):
        text = complaint("qqqq=1")
        assert all(name in text for name in Settings.model_fields)

    @pytest.mark.parametrize(
        "pair",
        [
            "c=-1",
            "c=much",
            "c=",
            "c=nan",
            "timeout_s=inf",
            "timeout_s=1e30",
            "memory_gb=1e30",
            "alpha=1.5",
            "small_limit=2.5",
            "pool_size=0",
            "extra_p=1",
            "reward=best",
            "confirm=perhaps",
        ],
    )
    def test_a_value_out_of_bounds_names_the_setting_and_the_value(self, pair):
        key, _, value = pair.partition("=")
        assert complaint(pair).startswith(f"--set {key}={value}: Input should be ")


def test_settings_never_change():
    with pytest.raises(ValueError, match="frozen"):
        Settings().c = 1.0


def test_every_setting_is_explained():
    assert all(field.description for field in Settings.model_fields.values())


def test_the_published_reward_asks_for_the_published_search():
    assert Settings().chosen_policy == "archive"
    assert Settings(reward="published").chosen_policy == "uct"
    assert Settings(reward="published", policy="beam").chosen_policy == "beam"
