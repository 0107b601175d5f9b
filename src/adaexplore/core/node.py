"""A node: one step of a search, as recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from adaexplore.core.candidate import Candidate
from adaexplore.core.evaluation import Evaluation, Passed, rank
from adaexplore.core.proposal import Proposal

StepKind = Literal["large", "small", "tune"]
"""Another structure; one change; other numbers in the same source, which no model is asked for."""

ROOT_ID = 0
"""The empty placeholder every tree starts from; the first step is node 1."""


@dataclass(frozen=True, slots=True)
class Node:
    """A step: its number, the node it grew from, and what came of it.

    `started_at` is seconds since the epoch. `propose_s` is the wall time of the proposal in
    seconds; the evaluation carries its own cost. `reused` is true where an identical candidate had
    been evaluated before in this run and its evaluation was taken over instead of measured again.
    `repeats` are all evaluations of a candidate that was evaluated several times before it was
    recorded, in order; `evaluation` is the one that counts, at the cost of all.
    """

    id: int
    parent_id: int
    step_kind: StepKind
    proposal: Proposal
    evaluation: Evaluation
    started_at: float = 0.0
    propose_s: float = 0.0
    reused: bool = False
    repeats: tuple[Evaluation, ...] = ()

    @property
    def candidate(self) -> Candidate:
        """The candidate this step produced."""
        return self.proposal.candidate


def searched(nodes: Sequence[Node]) -> list[Node]:
    """The steps that were planned: variants that the tuner makes come besides."""
    return [node for node in nodes if node.step_kind != "tune"]


def busy_s(nodes: Sequence[Node]) -> list[float]:
    """For how long any of these steps had been under way by the end of each.

    Those that were so together count once, and the time between sessions does not.
    """
    found = [0.0] * len(nodes)
    before_s = began = until = 0.0
    for i in sorted(range(len(nodes)), key=lambda i: nodes[i].started_at):
        node = nodes[i]
        end = node.started_at + node.propose_s + node.evaluation.cost.wall_s
        if node.started_at > until:
            before_s += until - began
            began = until = node.started_at
        found[i] = before_s + end - began
        until = max(until, end)
    return found


def best_correct(evaluations: Mapping[int, Evaluation]) -> int | None:
    """The id of the best correct one, the first of equals; None where none is correct."""
    right = [name for name, evaluation in evaluations.items() if isinstance(evaluation, Passed)]
    return max(right, key=lambda name: rank(evaluations[name]), default=None)
