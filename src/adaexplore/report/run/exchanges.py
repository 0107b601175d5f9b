"""Which calls were made for which step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from adaexplore.core.ask import Exchange
from adaexplore.core.client import Message
from adaexplore.core.node import Node

Conversation = tuple[Exchange, ...]
"""A step's calls, first to last."""


def conversations(nodes: Iterable[Node], calls: Iterable[Exchange]) -> Mapping[int, Conversation]:
    """Return the exchanges of each step that has any, by the id of the step."""
    exchanges: dict[int, list[Exchange]] = defaultdict(list)
    for call in calls:
        exchanges[call.ask_id].append(call)
    return {node.id: tuple(exchanges[node.ask_id]) for node in nodes if node.ask_id in exchanges}


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
