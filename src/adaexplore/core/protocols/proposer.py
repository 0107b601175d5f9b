"""Contract of a proposer: its context and its proposal."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from adaexplore.core.environment import Environment
from adaexplore.core.node import Node, StepKind
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import Prompt, Reply
from adaexplore.core.verdict.facts import ReferenceFacts


@dataclass(frozen=True, slots=True)
class Outline:
    """A structure for one of several large steps that are asked for at once.

    `name` is a short name, `text` says in some sentences what to write.
    """

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Context:
    """Question that one step puts to a proposer.

    A large step sees `pool`, the representative kernels to beat (with some policies also failed
    ones); a small step sees `window`, the recent path, oldest first, whose last node is the one to
    change. `history` is every node recorded so far (a proposer without a model uses it to avoid
    repetition), `in_flight` the number of other steps in flight. `seed` is this step's own seed:
    the same context and seed give the same proposal. `facts` is the run's record of the reference,
    `environment` its record of the machine.

    `others` says of other large steps in flight, as far as it is known, what they write. Of several
    large steps that are asked for at once, the first has their number as `outlines`: it asks for as
    many outlines and carries out the first. Each of the others has its own as `outline`.
    """

    problem: Problem
    step_kind: StepKind
    seed: int
    window: Sequence[Node] = ()
    pool: Sequence[Node] = ()
    history: Sequence[Node] = field(default=(), repr=False)
    in_flight: int = 0
    others: Sequence[str] = ()
    outlines: int = 0
    outline: Outline | None = None
    facts: ReferenceFacts = field(default_factory=ReferenceFacts, repr=False)
    environment: Environment = field(default_factory=Environment, repr=False)

    def given(self, outlines: Sequence[Outline], index: int) -> Context:
        """Return this context with an outline of several; without one if there are too few."""
        own = outlines[index] if index < len(outlines) else None
        others = (outline.name for outline in outlines if outline is not own)
        return replace(self, others=(*self.others, *others), outlines=0, outline=own)


Dialogue = Generator[Prompt, Reply, Proposal]
"""Exchange of one step with a model: a generator that yields prompts, receives replies and returns
the proposal.

The same context and the same replies give the same prompts and the same proposal. An interrupted
dialogue is therefore resumed, on any machine, by sending it the replies so far.
"""


OutlineFlow = Generator[Prompt, Reply, tuple[Outline, ...]]
"""Exchange in which a model names structures; it returns them."""


@runtime_checkable
class NamesOutlines(Protocol):
    """A proposer that can name different structures for steps that are asked for at once."""

    def outline(self, context: Context) -> OutlineFlow:
        """Return the exchange with which the dialogue of this step begins.

        It returns at most `context.outlines` outlines, and none for replies without any.
        """
        ...


class Proposer(Protocol):
    """Turns a context into one proposal.

    A dialogue does not raise for a bad idea or a broken reply: a proposal without a usable
    candidate says so in `failure`. It raises `InfrastructureError` if the processes behind it are
    lost.
    """

    def begin(self, context: Context) -> Dialogue:
        """Return the dialogue of this step.

        A proposer without a model may take seconds to minutes before it returns its proposal.
        """
        ...

    def close(self) -> None:
        """End worker processes; the proposer is not used afterwards."""
        ...
