"""The contract of a store: what a run keeps, and what may be relied on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from adaexplore.core.ask import Ask, AskRecord, AskState, Exchange
from adaexplore.core.config import Config
from adaexplore.core.environment import Environment
from adaexplore.core.evaluation import Evaluation
from adaexplore.core.facts import ReferenceFacts
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.version import __version__

FORMAT_VERSION = 1
"""Rises with every change that an earlier release could not read."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What a run was asked to do and where it ran; everything but its steps.

    `seed` is the search's own (the problem has one for weights and inputs). `steps` is how many are
    planned in total.
    `command` is the line that reproduces the run, `created_at` seconds since the epoch. `reference`
    holds the measured facts about the reference, all defaults until they are known; `plan` is plain
    JSON about the models: budget, prompt templates and the like, empty where no model is asked.
    """

    problem: Problem
    config: Config
    seed: int
    proposer: str
    steps: int
    environment: Environment
    command: str
    created_at: float
    reference: ReferenceFacts = field(default_factory=ReferenceFacts)
    plan: Mapping[str, Any] = field(default_factory=dict)
    package_version: str = __version__
    format_version: int = FORMAT_VERSION


@dataclass(frozen=True, slots=True)
class Confirmation:
    """An independent evaluation of one of the best, `at` seconds since the epoch."""

    node_id: int
    evaluation: Evaluation
    at: float


class Store(Protocol):
    """One run, kept.

    Nodes are numbered 1, 2, 3, ... in the order they are recorded and never change afterwards. A
    candidate that several nodes share is kept once. Whatever goes in comes out equal.

    Durability: when a method that writes returns, what it wrote survives a kill and a power cut.
    Each such call is one transaction: after a kill at any moment the run holds all of it or none.

    Concurrency: one process writes (the run directory's lock sees to it); any number may read at
    the same time and see a run as it was after some completed call.

    Errors: trouble with the storage (full, damaged, read only) raises `BadInputError` in one line,
    and what was kept before stays intact and readable. A store opened for reading refuses to write
    in the same way.
    """

    def run(self) -> RunRecord:
        """The run's record."""
        ...

    def set_reference(self, facts: ReferenceFacts) -> None:
        """Keeps what was measured about the reference: for the record, and asks opened from now on.

        Every session measures anew, and an ask goes on with what it was begun with.
        """
        ...

    def reference_for(self, ask_id: int) -> ReferenceFacts:
        """What was known about the reference when an ask was opened, or is now for one to come."""
        ...

    def set_steps(self, steps: int) -> None:
        """Changes how many steps are planned in total."""
        ...

    def set_plan(self, plan: Mapping[str, Any]) -> None:
        """Replaces the plan."""
        ...

    def open_ask(self, ask: Ask) -> None:
        """Keeps a new ask, open.

        Raises `ValueError`, and keeps nothing, if its id is not one more than the last ask's.
        """
        ...

    def ask_count(self) -> int:
        """How many asks were ever opened, which is also the id of the last."""
        ...

    def find_ask(self, ask_id: int) -> AskRecord | None:
        """The ask of that number, None if there is none."""
        ...

    def asks(self, *states: AskState) -> list[AskRecord]:
        """The asks in these states (all, if none is named), in order."""
        ...

    def add_call(self, call: Exchange) -> None:
        """Keeps one turn of an open ask; it may have cost money, so it is kept before it is used.

        Raises `ValueError` if the ask is not open.
        """
        ...

    def calls(self, ask_id: int | None = None) -> list[Exchange]:
        """The turns of one ask, or of all, in order."""
        ...

    def queue(self, ask_id: int, proposal: Proposal) -> None:
        """Gives an open ask its proposal.

        Raises `ValueError` if the ask is not open.
        """
        ...

    def expire(self, ask_id: int) -> None:
        """Ends an ask without a step.

        Raises `ValueError` if it is recorded.
        """
        ...

    def record(self, node: Node) -> None:
        """Keep a step; its ask, if it has one, is done.

        Raises `ValueError`, and keeps nothing, if the node's id is not `node_count() + 1`, its
        parent is neither the root nor recorded, or its ask is not queued.
        """
        ...

    def node_count(self) -> int:
        """How many steps are recorded, which is also the id of the last."""
        ...

    def nodes(self) -> list[Node]:
        """Every recorded step, in order."""
        ...

    def confirm(self, confirmation: Confirmation) -> None:
        """Keeps a confirmation.

        Raises `ValueError` if its node is not recorded.
        """
        ...

    def confirmations(self) -> list[Confirmation]:
        """All confirmations, in the order they were kept; a node's last one counts."""
        ...

    def close(self) -> None:
        """Releases the storage; the store is not used afterwards."""
        ...
