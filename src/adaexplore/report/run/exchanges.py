"""Which calls were made for which step."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping

from adaexplore.core.ask import Ask, AskRecord, Exchange
from adaexplore.core.client import Message
from adaexplore.core.node import Node

Conversation = tuple[Exchange, ...]
"""A step's calls, first to last."""


def asks_of(nodes: Iterable[Node], asks: Iterable[AskRecord]) -> Mapping[int, Ask]:
    """The ask of each step that has one, by the step's id.

    A step begins when its ask is opened, at a place in the tree: that is how they find together.
    """
    done: dict[tuple[float, int], deque[Ask]] = defaultdict(deque)
    for record in asks:
        if record.state == "done":
            done[record.ask.opened_at, record.ask.parent_id].append(record.ask)
    found: dict[int, Ask] = {}
    for node in nodes:
        same = done[node.started_at, node.parent_id]
        if same:
            found[node.id] = same.popleft()
    return found


def conversations(
    nodes: Iterable[Node], asks: Iterable[AskRecord], calls: Iterable[Exchange]
) -> Mapping[int, Conversation]:
    """The calls of each step that any were made for, by the step's id."""
    said: dict[int, list[Exchange]] = defaultdict(list)
    for call in calls:
        said[call.ask_id].append(call)
    found = asks_of(nodes, asks)
    return {step: tuple(said[ask.id]) for step, ask in found.items() if ask.id in said}


def new_messages(conversation: Conversation) -> list[tuple[Message, ...]]:
    """What each prompt says that stands neither in the one before it nor in the reply to that."""
    news: list[tuple[Message, ...]] = []
    before: tuple[Message, ...] = ()
    for call in conversation:
        messages = call.prompt.messages
        goes_on = bool(before) and messages[: len(before)] == before
        news.append(messages[len(before) + 1 :] if goes_on else messages)
        before = messages
    return news
