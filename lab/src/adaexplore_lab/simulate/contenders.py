"""Policies with their settings, as texts such as `uct:reward=published,c=0.5`."""

from __future__ import annotations

from dataclasses import dataclass

from adaexplore.core import BadInputError, Config, changes, group_of, make_config
from adaexplore.search import Policy, make_policy


@dataclass(frozen=True, slots=True)
class Contender:
    """A policy with its settings; `name` is the text that asked for it."""

    name: str
    settings: Config

    def policy(self) -> Policy:
        """The policy, with nothing recorded yet."""
        return make_policy(self.settings)


def parse_contender(text: str) -> Contender:
    """`NAME` or `NAME:KEY=VALUE,...`, as the setting `policy` has it.

    Raises `BadInputError` for a policy, a key or a value that there is not, and for a setting that
    only changes prompts.
    """

    def spelled(name: str, value: object) -> str:
        return f"--policy {text}: {name}={value}"

    settings = make_config({"policy": text}, spelling=spelled)
    for name in changes(settings):
        if group_of(name) == "model":
            raise BadInputError(
                f"--policy {text}: {name} cannot be simulated: it changes prompts alone, and "
                "landscapes read none"
            )
    return Contender(text, settings)
