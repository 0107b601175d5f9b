"""Random searches, with brute-force versions of the tree's queries."""

from dataclasses import dataclass

from hypothesis import strategies as st

from adaexplore.core.node import ROOT_ID, StepKind
from adaexplore.search import Tree


@dataclass(frozen=True)
class Step:
    id: int
    parent_id: int
    kind: StepKind
    reward: float
    rank: tuple[bool, bool, float, float]


@st.composite
def steps(draw: st.DrawFn, max_size: int = 40) -> list[Step]:
    """Draw a valid sequence of steps with ids 1, 2, ...

    Rewards are multiples of 1/64: sums are exact in any order, and ties between nodes are common.
    """
    sequence = []
    for step_id in range(1, draw(st.integers(0, max_size)) + 1):
        parent_id = draw(st.integers(ROOT_ID, step_id - 1))
        kind = "large" if parent_id == ROOT_ID else draw(st.sampled_from(["large", "small"]))
        reward = draw(st.integers(0, 128)) / 64
        rank = draw(
            st.sampled_from([(False, False, 0.0, 0.0), (True, False, 0.0, 0.0)])
            | st.sampled_from([(True, True, speedup, 0.0) for speedup in (0.5, 1.0, 2.0, 900.0)])
            | st.sampled_from([(True, True, 0.0, estimate) for estimate in (-9.0, -2.0)])
        )
        sequence.append(Step(step_id, parent_id, kind, reward, rank))
    return sequence


def grow(sequence: list[Step]) -> Tree:
    tree = Tree()
    for step in sequence:
        tree.add(step.id, step.parent_id, step.kind, step.reward, step.rank)
    return tree


def subtree(sequence: list[Step], top: int, small_only: bool = False) -> set[int]:
    """Return the ids of `top` and everything below it, by repeated scanning."""
    found = {top}
    while True:
        more = {
            step.id
            for step in sequence
            if step.parent_id in found and (step.kind == "small" or not small_only)
        }
        if more <= found:
            return found
        found |= more


def ancestors(sequence: list[Step], node_id: int) -> list[int]:
    """Return the ids from `node_id` (included) up to the root (left out)."""
    parents = {step.id: step.parent_id for step in sequence}
    chain = []
    while node_id != ROOT_ID:
        chain.append(node_id)
        node_id = parents[node_id]
    return chain
