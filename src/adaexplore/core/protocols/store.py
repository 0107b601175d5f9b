"""Contract of a store: the records of a run, and the guarantees of every implementation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from adaexplore.core.ask import Ask, AskRecord, AskState, Exchange
from adaexplore.core.environment import Environment
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Evaluation
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.core.version import __version__

FORMAT_VERSION = 3
"""Format number; rises with every change that an earlier release could not read."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The order and the place of a run: everything but its steps.

    `config.seed` seeds the search (the problem has a seed for weights and inputs). `proposers` are
    the names of those that propose. `command` is the line that reproduces the run, `created_at`
    seconds since the epoch. `reference` holds the measured facts about the reference, all defaults
    until they are known; `plan` is plain JSON: the rules and prompt templates of the run, empty
    where no model is asked, and who reported a run whose verdicts are not this package's.
    """

    problem: Problem
    config: Config
    proposers: tuple[str, ...]
    environment: Environment
    command: str
    created_at: float
    reference: ReferenceFacts = field(default_factory=ReferenceFacts)
    plan: Mapping[str, Any] = field(default_factory=dict)
    package_version: str = __version__
    format_version: int = FORMAT_VERSION

    @property
    def steps(self) -> int:
        """The number of planned steps in total."""
        return self.config.steps or self.config.planned_steps

    @property
    def reported_by(self) -> str:
        """Who judged the steps, where nobody did here; empty for a run of this package."""
        return str(self.plan.get("reported_by", ""))

    @property
    def seed(self) -> int:
        """The seed of the search."""
        return self.config.seed


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Independent evaluation of one of the best candidates, `at` seconds since the epoch."""

    node_id: int
    evaluation: Evaluation
    at: float


class Store(Protocol):
    """Storage of one run.

    Nodes are numbered 1, 2, 3, ... in the order they are recorded and never change afterwards. A
    candidate that several nodes share is kept once. Every record is read back equal.

    Durability: once a writing method has returned, its data survives a kill and a power cut. Each
    such call is one transaction: after a kill at any moment the run holds all of its data or none.

    Concurrency: one process writes a run (a lock ensures it: the run directory's, or one that a
    server of databases keeps for the connection). A server's database holds many runs, and each may
    have its writer. Any number of processes may read at the same time; each sees the run as it was
    after some completed call.

    Errors: a storage failure (full, damaged, read only) raises `BadInputError` with one line;
    earlier data stays intact and readable. A store opened for reading refuses to write in the same
    way.
    """

    def run(self) -> RunRecord:
        """Return the run's record."""
        ...

    def set_reference(self, facts: ReferenceFacts) -> None:
        """Store the measured facts about the reference, for the record and for asks opened later.

        Every session measures again; an open ask keeps the facts that it was opened with.
        """
        ...

    def reference_for(self, ask_id: int) -> ReferenceFacts:
        """Return the facts that an ask was opened with; for a new ask, the latest."""
        ...

    def set_config(self, config: Config) -> None:
        """Replace the configuration, such as the number of planned steps or the budget."""
        ...

    def move(self, problem: Problem) -> None:
        """Take the problem's device and the places of its files over from the same one elsewhere.

        Raises `ValueError`, and stores nothing, if it is another problem by its digest.
        """
        ...

    def set_plan(self, plan: Mapping[str, Any]) -> None:
        """Replace the plan."""
        ...

    def open_ask(self, ask: Ask) -> None:
        """Store a new, open ask.

        Raises `ValueError`, and stores nothing, if its id is not one more than the last ask's.
        """
        ...

    def ask_count(self) -> int:
        """Return the number of asks ever opened, which is also the id of the last."""
        ...

    def find_ask(self, ask_id: int) -> AskRecord | None:
        """Return the ask with this id, None if there is none."""
        ...

    def asks(self, *states: AskState) -> list[AskRecord]:
        """Return the asks in these states (all, if none is named), in order."""
        ...

    def add_call(self, call: Exchange) -> None:
        """Store one exchange of an open ask before its reply is used: it may have cost money.

        Raises `ValueError` if the ask is not open.
        """
        ...

    def calls(self, ask_id: int | None = None) -> list[Exchange]:
        """Return the exchanges of one ask, or of all, in order."""
        ...

    def queue(self, ask_id: int, proposal: Proposal) -> None:
        """Attach the proposal to an open ask, which becomes queued.

        Raises `ValueError` if the ask is not open.
        """
        ...

    def expire(self, ask_id: int) -> None:
        """End an ask without a step.

        Raises `ValueError` if the ask is recorded.
        """
        ...

    def record(self, node: Node) -> None:
        """Keep a step; its ask, if it has one, is done.

        Raises `ValueError`, and stores nothing, if the node's id is not `node_count() + 1`, its
        parent is neither the root nor recorded, or its ask is not queued.
        """
        ...

    def node_count(self) -> int:
        """Return the number of recorded steps, which is also the id of the last."""
        ...

    def nodes(self) -> list[Node]:
        """Return every recorded step, in order."""
        ...

    def confirm(self, confirmation: Confirmation) -> None:
        """Store a confirmation.

        Raises `ValueError` if its node is not recorded.
        """
        ...

    def confirmations(self) -> list[Confirmation]:
        """Return all confirmations in order; a node may have several."""
        ...

    def close(self) -> None:
        """Release the storage; the store is not used afterwards."""
        ...
