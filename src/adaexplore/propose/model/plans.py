"""Plans of a search by steps: their items in a model's reply, and what became of each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from adaexplore.core.node import Node
from adaexplore.core.protocols.proposer import Context
from adaexplore.core.verdict.evaluation import Passed
from adaexplore.propose.model.answers import one_line
from adaexplore.propose.model.kernels import judged_before

_NUMBERED = re.compile(r" {0,3}(?:#+ *)?(?:\*\*)?\d+[.)](?:\*\*)? +(.*)")
_BULLET = re.compile(r"[-*•] +(.*)")

ItemState = Literal["done", "skipped", "now", "later"]


@dataclass(frozen=True, slots=True)
class PlanItem:
    """An item of a plan, numbered from 1, with the attempts at it, oldest first.

    The last attempt at an item that is done is its kernel; all others failed.
    """

    number: int
    text: str
    state: ItemState
    attempts: Sequence[Node] = ()


def read_plan(reply: str, most: int) -> tuple[str, ...]:
    """Return the items of the list in a reply, at most `most`, each in one line.

    The list is numbered, or else one of bullets; a reply without a list is one item.
    """
    for pattern in (_NUMBERED, _BULLET):
        items: list[str] = []
        for line in reply.splitlines():
            if begun := pattern.match(line):
                items.append(begun[1])
            elif items:
                items[-1] += f" {line.strip()}"
        if items:
            return tuple(one_line(item) for item in items[:most])
    return (one_line(reply),)


def progress(context: Context, tries: int) -> list[PlanItem]:
    """Return the items of the plan of the kernel that a small step changes; one of them is next.

    Empty if the kernel belongs to no plan, or the plan is over. The state follows from the recorded
    steps alone, as in the policy `stepwise`: `tries` steps from a working kernel are the attempts
    at the item after that kernel's own, the next `tries` those at the item after it.
    """
    path = _path_from_first_version(context)
    texts = path[0].proposal.plan
    attempts: list[list[Node]] = [[] for _ in texts]
    on_path = {node.id for node in path}
    now = 0
    for base in (node for node in path if isinstance(node.evaluation, Passed)):
        tried = _changes_of(base, context)
        kept = next((i for i, node in enumerate(tried) if node.id in on_path), None)
        if kept is not None:
            tried = tried[: kept + 1]
        for i, node in enumerate(tried):
            item = now + i // tries
            if item < len(texts):
                attempts[item].append(node)
        now += len(tried) // tries if kept is None else kept // tries + 1
    if now >= len(texts):
        return []
    return [
        PlanItem(i + 1, text, _state(i, now, attempts[i], on_path), attempts[i])
        for i, text in enumerate(texts)
    ]


def _path_from_first_version(context: Context) -> list[Node]:
    by_id = {node.id: node for node in context.history}
    path = [context.window[-1]]
    while path[0].step_kind == "small":
        path.insert(0, by_id[path[0].parent_id])
    return path


def _changes_of(base: Node, context: Context) -> list[Node]:
    steps = judged_before(context)
    return [node for node in steps if node.parent_id == base.id and node.step_kind == "small"]


def _state(item: int, now: int, attempts: Sequence[Node], on_path: set[int]) -> ItemState:
    if item >= now:
        return "now" if item == now else "later"
    return "done" if any(node.id in on_path for node in attempts) else "skipped"
