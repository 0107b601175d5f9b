"""Ask: a selected step that waits for its proposal, and the exchanges made for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from adaexplore.core.node import START, StepKind
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import Prompt, Reply

MANUAL = "manual"
"""Name of the proposer whose prompts a person or an agent answers, by `ask` and `tell`."""

AskState = Literal["open", "queued", "done", "expired"]
"""Waiting for a reply; waiting for the evaluation of its proposal; recorded as a step; ended
without a step."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Place where the tree is to grow, and context that the proposer is shown.

    Asks are numbered 1, 2, 3, ... in the order they are opened; a step gets its own number when it
    is recorded. `pool` and `window` are ids of nodes as in `proposer.Context`, `seen` is the number
    of nodes recorded before, `seed` the step's own seed. `proposer` names the proposer that
    answers. `opened_at` is in seconds since the epoch.

    Asks that are opened at once share a `batch`, the id of the first of them; it is 0 for an ask
    that is opened alone. `others` says what other large steps in flight write, as far as it is
    known when the ask is opened.
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
    batch: int = 0
    others: tuple[str, ...] = ()

    @property
    def is_planned(self) -> bool:
        """True for an ask of a planned step (see `Node.is_planned`)."""
        return self.step_kind != "tune" and self.proposer != START


@dataclass(frozen=True, slots=True)
class Exchange:
    """One prompt of an ask and the model's reply, `at` seconds since the epoch."""

    ask_id: int
    prompt: Prompt
    reply: Reply
    at: float


@dataclass(frozen=True, slots=True)
class AskRecord:
    """An ask and its state. `proposal` is set while the ask is queued."""

    ask: Ask
    state: AskState
    proposal: Proposal | None = None
