from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.cli.options import given_config
from adaexplore.core.errors import BadInputError
from adaexplore.core.settings.config import Config
from adaexplore.core.settings.configure import changes, group_of, make_config, parse_settings, words
from adaexplore.core.settings.presets import PRESETS, PresetName

drawn = st.builds(
    Config,
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


class TestKeywords:
    def test_a_field_that_was_not_given_is_the_base(self):
        base = make_config({"seed": 3, "steps": 8})
        assert make_config({"steps": 9}, base) == make_config({"seed": 3, "steps": 9})

    def test_the_given_fields_are_known(self):
        assert make_config({"seed": 0}).model_fields_set == {"seed"}

    def test_a_list_may_be_a_text_with_commas(self):
        assert make_config({"model": "a:b, c:d"}).model == ("a:b", "c:d")
        assert make_config({"device": ["cuda:0", "cuda:1"]}).device == "cuda:0,cuda:1"

    def test_paths_become_absolute(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        made = make_config({"prompts": Path("mine"), "allow": ["data.pt"]})
        assert (made.prompts, made.allow) == (f"{tmp_path}/mine", (f"{tmp_path}/data.pt",))

    def test_a_wrong_value_names_the_keyword(self):
        with pytest.raises(BadInputError, match=r"^steps=0: Input should be greater than"):
            make_config({"steps": 0})

    def test_what_a_field_says_of_a_value_is_said_alone(self):
        with pytest.raises(BadInputError, match=r"^ray='x': write the address as HOST:PORT"):
            make_config({"ray": "x"})

    def test_steps_have_an_upper_bound(self):
        assert make_config({"steps": 10**6}).steps == 10**6
        with pytest.raises(BadInputError, match=r"less than or equal to 1000000$"):
            make_config({"steps": 10**6 + 1})

    def test_an_unknown_keyword_names_the_near_ones(self):
        with pytest.raises(BadInputError, match=r"^step: no such setting; did you mean steps"):
            make_config({"step": 3})

    @pytest.mark.parametrize("budget", ["", "much", "2usd,3usd"])
    def test_a_budget_without_a_limit_is_refused(self, budget):
        with pytest.raises(BadInputError, match="budget"):
            make_config({"budget": budget})

    @pytest.mark.parametrize(
        ("values", "steps"),
        [
            ({}, 20),
            ({"steps": 7}, 7),
            ({"budget": "5steps"}, 5),
            ({"budget": "9steps,1h", "steps": 3}, 3),
        ],
    )
    def test_the_planned_steps_are_the_smaller_limit(self, values, steps):
        assert make_config(values).planned_steps == steps


class TestWords:
    def test_defaults_need_no_words(self):
        assert words(Config()) == []

    def test_options_settings_and_flags_are_written_as_they_are_typed(self):
        made = make_config(
            {"model": ("a:b", "c:d"), "require_custom": True, "c": 0.5, "reviser": False}
        )
        assert words(made) == [
            *("--require-custom", "--model", "a:b", "--model", "c:d"),
            *("--set", "reviser=false", "--set", "c=0.5"),
        ]

    def test_the_folder_of_the_run_is_no_part_of_it(self):
        assert words(make_config({"run": "here"})) == []


class TestParsing:
    def test_nothing_said_is_the_defaults(self):
        assert parse_settings([]) == Config()

    def test_values_become_what_the_setting_is(self):
        chosen = parse_settings(
            ["c=0.5", "small_limit=3", "reward=published", "confirm=false", " window = 7 "]
        )
        assert (chosen.c, chosen.small_limit, chosen.window) == (0.5, 3, 7)
        assert (chosen.reward, chosen.confirm) == ("published", False)

    def test_the_last_of_two_counts(self):
        assert parse_settings(["c=1", "c=2"]).c == 2

    def test_it_builds_on_a_base(self):
        base = Config(c=0.9, window=2)
        assert parse_settings(["window=4"], base) == Config(c=0.9, window=4)

    @given(settings=drawn)
    def test_what_is_written_out_reads_back(self, settings):
        pairs = words(settings)[1::2]
        assert parse_settings(pairs) == settings
        assert Config.model_validate_json(settings.model_dump_json()) == settings


class TestPresets:
    @pytest.mark.parametrize("name", PRESETS)
    def test_the_values_are_given_fields_and_the_name_is_kept(self, name):
        made = make_config({"preset": name})
        assert made.preset == name
        assert made.model_fields_set == {"preset", *PRESETS[name].values}

    def test_every_name_is_a_preset(self):
        assert set(get_args(PresetName)) == set(PRESETS)

    def test_a_value_that_is_given_goes_before_that_of_the_preset(self):
        assert make_config({"preset": "adaexplore-l3", "c": 0.7}).c == 0.7
        assert given_config({"steps": 7}, ["preset=adaexplore", "c=0.7"]).steps == 7
        assert parse_settings(["repair=true"], make_config({"preset": "adaexplore"})).repair

    def test_polca_has_its_summaries_under_the_preset_too(self):
        assert make_config({"preset": "adaexplore", "policy": "polca"}).sums_up
        assert not make_config({"preset": "adaexplore"}).sums_up

    def test_a_preset_goes_before_what_it_builds_on(self):
        base = Config(c=0.9, seed=4)
        assert make_config({"preset": "adaexplore"}, base) == Config(preset="adaexplore", seed=4)

    def test_the_words_are_the_preset_and_what_differs_from_it(self):
        made = make_config({"preset": "adaexplore", "repair": True, "seed": 3})
        assert words(made) == ["--seed", "3", "--set", "repair=true", "--preset", "adaexplore"]

    @given(settings=drawn, name=st.sampled_from([None, *PRESETS]))
    def test_what_differs_makes_the_same_configuration(self, settings, name):
        made = settings.model_copy(update={"preset": name})
        assert Config(**changes(made)) == made
        assert Config.model_validate_json(made.model_dump_json()) == made

    def test_an_unknown_one_is_told_all_names(self):
        text = complaint("preset=ada")
        assert text.startswith("--set preset=ada: Input should be 'adaexplore', 'adaexplore-l2'")


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
        assert all(name in text for name in Config.model_fields)

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
            "pool_size=-1",
            "extra_p=1",
            "reward=best",
            "confirm=perhaps",
        ],
    )
    def test_a_value_out_of_bounds_names_the_setting_and_the_value(self, pair):
        key, _, value = pair.partition("=")
        assert complaint(pair).startswith(f"--set {key}={value}: Input should be ")


def test_an_unknown_policy_is_told_all_names():
    text = complaint("policy=foo")
    assert all(name in text for name in ("auto", "archive", "uct", "islands"))


def test_every_field_has_a_group():
    assert {group_of(name) for name in Config.model_fields} == {
        *("problem", "model", "search", "campaign", "limits", "output")
    }


def test_settings_never_change():
    with pytest.raises(ValueError, match="frozen"):
        Config().c = 1.0


def test_every_setting_is_explained():
    assert all(field.description for field in Config.model_fields.values())


def test_the_published_reward_asks_for_the_published_search():
    assert Config().chosen_policy == "archive"
    assert Config(reward="published").chosen_policy == "uct"
    assert Config(reward="published", policy="beam").chosen_policy == "beam"


@pytest.mark.parametrize(
    ("given", "calls"), [({}, 8), ({"parallel": 32}, 32), ({"parallel": 32, "concurrency": 2}, 2)]
)
def test_as_many_calls_are_in_flight_as_steps_unless_a_setting_bounds_them(given, calls):
    assert Config(**given).calls_at_once == calls
