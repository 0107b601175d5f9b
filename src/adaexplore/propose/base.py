"""What every proposer is given and what it must answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from adaexplore.node import Node, StepKind
from adaexplore.problem import Problem
from adaexplore.proposal import Proposal


@dataclass(frozen=True, slots=True)
class Context:
    """One step's question.

    A large step sees `pool`, the representative kernels to beat; a small step sees `window`, the
    recent path, oldest first, whose last node is the one to change. `history` is every node
    recorded so far (a proposer without a model avoids repeating itself by it). `seed` is this
    step's own seed: the same context and seed give the same proposal.
    """

    problem: Problem
    step_kind: StepKind
    seed: int
    window: Sequence[Node] = ()
    pool: Sequence[Node] = ()
    history: Sequence[Node] = field(default=(), repr=False)


class Proposer(Protocol):
    """Turns a context into one proposal.

    `propose` never raises for a bad idea: a proposal that came to nothing says so in `failure`. It
    raises `InfrastructureError` when the machinery behind it is gone.
    """

    def propose(self, context: Context) -> Proposal:
        """One proposal for this step; may take seconds to minutes."""
        ...

    def close(self) -> None:
        """Ends worker processes; the proposer is not used afterwards."""
        ...
