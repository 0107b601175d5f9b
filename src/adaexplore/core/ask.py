"""An ask: a step that has been chosen and waits for its proposal; and the calls made for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from adaexplore.core.client import Prompt, Reply
from adaexplore.core.node import StepKind
from adaexplore.core.proposal import Proposal

MANUAL = "ask"
"""The proposer whose prompts are answered by whoever runs `ask` and `tell`."""

AskState = Literal["open", "queued", "done", "expired"]
"""Waits for a reply; has a proposal that waits for its evaluation; is a recorded step; too late."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Where the tree is to grow, and what the proposer is shown.

    Asks are numbered 1, 2, 3, ... in the order they are opened; a step gets a number of its own
    when it is recorded. `pool` and `window` are ids of nodes as in `propose.base.Context`, `seen`
    is how many nodes there were, `seed` the step's own. `proposer` names who answers.
    """

    id: int
    parent_id: int
    step_kind: StepKind
    seed: int
    pool: tuple[int, ...]
    window: tuple[int, ...]
    seen: int
    proposer: str
    opened_at: float


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn of an ask's conversation with a model, `at` seconds since the epoch."""

    ask_id: int
    prompt: Prompt
    reply: Reply
    at: float


@dataclass(frozen=True, slots=True)
class AskRecord:
    """An ask and how far it has come. `proposal` is there while it is queued."""

    ask: Ask
    state: AskState
    proposal: Proposal | None = None
