"""Proposal: a candidate together with its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adaexplore.core.candidate import Candidate


@dataclass(frozen=True, slots=True)
class Proposal:
    """Answer of a proposer for one step.

    `origin` names the proposer ("compiler", "manual", a model's name). `settings` is plain JSON
    that the proposer needs to build on this candidate in a later small step. `note` describes the
    change in one line. `prompt` and `reply` are empty where no model was asked. `failure` is empty,
    or one line that says why there is no usable candidate; the source may then be empty.
    """

    candidate: Candidate
    origin: str
    note: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = ""
    reply: str = ""
    failure: str = ""

    @property
    def plan(self) -> tuple[str, ...]:
        """Items of the plan that this candidate begins; small steps carry them out one by one."""
        return tuple(self.settings.get("plan", ()))
