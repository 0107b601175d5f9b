"""Making a `Config` from texts and keywords, and the words that it is written in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from adaexplore.core.errors import BadInputError
from adaexplore.core.settings.config import Config
from adaexplore.core.settings.config_fields import Group
from adaexplore.core.settings.policies import PARAMETERS, join_policy, split_policy
from adaexplore.core.text.hints import near


def words(config: Config) -> list[str]:
    """Return the command-line options that give this configuration, without the `run` folder."""
    found: list[str] = []
    for name, value in changes(config).items():
        if group_of(name) == "output":
            continue
        for one in value if isinstance(value, tuple) else (value,):
            found += _words(name, one)
    return found


def changes(config: Config) -> dict[str, Any]:
    """Return the fields that differ from those of the preset alone, or else the defaults.

    The preset itself is among them. `Config(**changes(config))` equals `config`.
    """
    base = Config(preset=config.preset).model_copy(update={"preset": None})
    fields = {name: getattr(config, name) for name in Config.model_fields}
    return {name: value for name, value in fields.items() if value != getattr(base, name)}


def option_fields(*groups: Group) -> list[str]:
    """Return the fields of these groups that are options of their own."""
    return [name for name in Config.model_fields if is_option(name) and group_of(name) in groups]


def is_option(name: str) -> bool:
    """True for a field that has a command-line option of its own."""
    return bool(_extra(name)["option"])


def group_of(name: str) -> Group:
    """Return the group of a field."""
    group: Group = _extra(name)["group"]
    return group


def metavar_of(name: str) -> str | None:
    """Return the placeholder of an option's value in `--help`, None for the type's own."""
    return _extra(name).get("metavar") or None


def _extra(name: str) -> dict[str, Any]:
    extra = Config.model_fields[name].json_schema_extra
    assert isinstance(extra, dict)
    return extra


def _words(name: str, value: object) -> list[str]:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if not is_option(name):
        return ["--set", f"{name}={text}"]
    option = option_name(name)
    return [option] if value is True else [option, text]


def option_name(name: str) -> str:
    """Return the command-line option of a field."""
    return f"--{name.replace('_', '-')}"


def as_keyword(name: str, value: object) -> str:
    """Spell a field and its value as a keyword argument."""
    return f"{name}={value!r}"


def as_setting(name: str, value: object) -> str:
    """Spell a field and its value as `--set` has them."""
    return f"--set {name}={value}"


def as_option(name: str, value: object) -> str:
    """Spell a field and its value as the command line has them."""
    return f"{option_name(name)} {value}" if is_option(name) else as_setting(name, value)


Spelling = Callable[[str, object], str]


def make_config(
    values: Mapping[str, Any], base: Config | None = None, *, spelling: Spelling = as_keyword
) -> Config:
    """Return `base`, or the defaults, with `values` in place of some fields.

    Raises `BadInputError` for an unknown field (it names the near ones) or a value out of bounds,
    in one line that spells the field as `spelling` does.
    """
    values = _unfolded(values)
    for name in values:
        if name not in Config.model_fields:
            raise BadInputError(f"{_unknown(name, spelling)}: no such setting; {near_fields(name)}")
    try:
        given = Config.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        message = first["msg"].removeprefix("Value error, ")  # so pydantic begins those of our own
        raise BadInputError(f"{spelling(name, values[name])}: {message}") from None
    return given.over(base or Config())


def _unfolded(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values with the settings in a policy's text (`uct:c=0.5`) as fields of their own.

    Raises `BadInputError` for a setting that is given twice.
    """
    text = values.get("policy")
    if not isinstance(text, str):
        return values
    name, pairs = split_policy(text)
    of_policy = PARAMETERS.get(name, {})  # the queue of polca has a `memory`, and a run has one
    settings = {
        key: value
        for key, value in pairs.items()
        if key in Config.model_fields and key not in of_policy
    }
    if twice := [key for key in settings if key in values]:
        raise BadInputError(f"policy {text}: {twice[0]} is given beside the policy too; write one")
    own = {key: value for key, value in pairs.items() if key not in settings}
    return {**values, **settings, "policy": join_policy(name, own)}


def near_fields(name: str) -> str:
    """Return a hint for the unknown field `name`: the fields that resemble it, or else all."""
    return near(name, Config.model_fields)


def _unknown(name: str, spelling: Spelling) -> str:
    return f"--set {name}" if spelling is as_setting else name


def parse_settings(pairs: Iterable[str], base: Config | None = None) -> Config:
    """Return `base`, or the defaults, with `key=value` texts in place of some fields.

    Raises `BadInputError` for a text without `=`, and as `make_config` does.
    """
    return make_config(parse_pairs(pairs), base, spelling=as_setting)


def parse_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """Return keys with their values, the last of a key; `BadInputError` for a text without `=`."""
    found = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign:
            raise BadInputError(f"--set {pair!r}: write it as key=value, for example --set c=0.5")
        found[key.strip()] = value.strip()
    return found
