"""Policies with parameters and settings, as `--set policy=...` and the simulator have them."""

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.core.settings.config import Config
from adaexplore.core.settings.configure import make_config, parse_settings, words


def test_a_parameter_of_the_policy_and_a_setting():
    config = parse_settings(["policy=beam:width=3,p_large=0.5"])
    assert (config.chosen_policy, config.policy_parameters) == ("beam", {"width": 3})
    assert config.p_large == 0.5
    assert words(config) == ["--set", "policy=beam:width=3", "--set", "p_large=0.5"]
    assert parse_settings(words(config)[1::2]) == config
    assert Config.model_validate_json(config.model_dump_json()) == config


def test_a_policy_without_parameters():
    config = make_config({"policy": "uct:reward=published,c=0.5"})
    assert (config.policy, config.reward, config.c) == ("uct", "published", 0.5)
    assert config.policy_parameters == {}


def test_settings_of_the_policy_s_text_go_before_a_preset():
    assert make_config({"preset": "adaexplore", "policy": "uct:c=0.5"}).c == 0.5


def test_a_parameter_goes_before_a_setting_of_the_same_name():
    config = parse_settings(["policy=polca:memory=9"])
    assert config.policy_parameters == {"memory": 9}
    assert config.memory == ""


def test_the_policy_in_force_is_named_with_its_parameters():
    assert Config(policy="beam:width=3").policy_text == "beam:width=3"
    assert Config().policy_text == "archive"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "no policy 'nothing'; known: auto, uct, "),
        ("uct:width=3", "width: no such setting or parameter; uct has none of its own"),
        ("beam:with=3", "with: no such setting or parameter; beam has width, branch"),
        ("beam:width=wide", "width is a whole number, not 'wide'"),
        ("beam:width=1.5", "width is a whole number"),
        ("beam:width=0", "width is 1 or more"),
        ("islands:migration=2", "migration is from 0 to 1"),
        ("polca:epsilon=-1", "epsilon is 0 or more"),
        ("polca:epsilon=nan", "epsilon is 0 or more"),
        ("polca:epsilon=near", "epsilon is a number"),
        ("uct:c=-1", "greater than or equal to 0"),
        ("uct:c", "key=value"),
    ],
)
def test_what_there_is_not(text, message):
    with pytest.raises(BadInputError, match=message):
        make_config({"policy": text})


def test_a_setting_that_is_given_twice():
    with pytest.raises(BadInputError, match="policy uct:c=1: c is given beside the policy too"):
        parse_settings(["policy=uct:c=1", "c=2"])
