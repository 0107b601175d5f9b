"""Node: one recorded step of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from adaexplore.core.candidate import Candidate
from adaexplore.core.proposal import Proposal
from adaexplore.core.verdict.evaluation import Evaluation, Passed, rank

StepKind = Literal["large", "small", "tune"]
"""A new structure; one change; other constants in the same source, without a model."""

START = "start"
"""Origin of the kernels that a search starts from, which are no steps of its plan."""

ROOT_ID = 0
"""Id of the empty placeholder that every tree starts from; the first step is node 1."""


@dataclass(frozen=True, slots=True)
class Node:
    """One step: its number, its parent node, its proposal and its evaluation.

    `started_at` is in seconds since the epoch. `propose_s` is the wall time of the proposal in
    seconds; the evaluation carries its own cost. `reused` is true if the run had already evaluated
    an identical candidate and this step took over that evaluation. `repeats` holds, in order, all
    evaluations of a candidate that was evaluated several times before it was recorded; `evaluation`
    is then the one that counts, with the cost of all.
    `ask_id` is the ask that the step answers, None for a step that was recorded without an ask.
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
    ask_id: int | None = None

    @property
    def candidate(self) -> Candidate:
        """Candidate that this step produced."""
        return self.proposal.candidate

    @property
    def is_planned(self) -> bool:
        """True for a planned step: no variant of the tuner, and no starting kernel."""
        return self.step_kind != "tune" and self.proposal.origin != START


def planned_steps(nodes: Sequence[Node]) -> list[Node]:
    """Return the planned steps, without starting kernels and the variants of the tuner."""
    return [node for node in nodes if node.is_planned]


def busy_s(nodes: Sequence[Node]) -> list[float]:
    """Return, for every step, the time in seconds that the search had been busy by its end.

    Steps that overlap count once; the time between sessions does not count.
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
    """Return the id of the best correct evaluation, the first of equals; None without any."""
    correct = [i for i, evaluation in evaluations.items() if isinstance(evaluation, Passed)]
    return max(correct, key=lambda i: rank(evaluations[i]), default=None)
