"""What every proposer is given and what it must answer."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from adaexplore.core.client import Prompt, Reply
from adaexplore.core.environment import Environment
from adaexplore.core.facts import ReferenceFacts
from adaexplore.core.node import Node, StepKind
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal


@dataclass(frozen=True, slots=True)
class Context:
    """One step's question.

    A large step sees `pool`, the representative kernels to beat; a small step sees `window`, the
    recent path, oldest first, whose last node is the one to change. `history` is every node
    recorded so far (a proposer without a model uses it to avoid repetition), `in_flight`
    the number of other steps in flight. `seed` is this step's own seed: the same context and seed
    give the same proposal. `facts` is the run's record of the reference, `environment` its record
    of the machine.
    """

    problem: Problem
    step_kind: StepKind
    seed: int
    window: Sequence[Node] = ()
    pool: Sequence[Node] = ()
    history: Sequence[Node] = field(default=(), repr=False)
    in_flight: int = 0
    facts: ReferenceFacts = field(default_factory=ReferenceFacts, repr=False)
    environment: Environment = field(default_factory=Environment, repr=False)


Dialogue = Generator[Prompt, Reply, Proposal]
"""One step's talk with a model: yields what to ask, is sent the replies, returns the proposal.

The same context and the same replies give the same prompts and the same proposal, so that a talk
that was interrupted, or goes on elsewhere, is picked up by sending it the replies so far.
"""


class Proposer(Protocol):
    """Turns a context into one proposal.

    A dialogue never raises for a bad idea or a broken reply: a proposal that came to nothing says
    so in `failure`. It raises `InfrastructureError` when the machinery behind it is gone.
    """

    def begin(self, context: Context) -> Dialogue:
        """The dialogue of this step; one that asks nobody may take seconds to minutes to start."""
        ...

    def close(self) -> None:
        """Ends worker processes; the proposer is not used afterwards."""
        ...
