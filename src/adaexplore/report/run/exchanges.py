"""The exchanges with models for each step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from adaexplore.core.ask import Exchange
from adaexplore.core.node import Node
from adaexplore.core.protocols.client import Message

Exchanges = tuple[Exchange, ...]
"""The exchanges of a step, in order."""


def exchanges_by_step(nodes: Iterable[Node], calls: Iterable[Exchange]) -> Mapping[int, Exchanges]:
    """Return the exchanges of each step that has any, by the step's id."""
    exchanges: dict[int, list[Exchange]] = defaultdict(list)
    for call in calls:
        exchanges[call.ask_id].append(call)
    return {node.id: tuple(exchanges[node.ask_id]) for node in nodes if node.ask_id in exchanges}


def new_messages(exchanges: Exchanges) -> list[tuple[Message, ...]]:
    """Return the messages of each prompt that are neither in the prompt before nor in its reply."""
    news: list[tuple[Message, ...]] = []
    before: tuple[Message, ...] = ()
    for call in exchanges:
        messages = call.prompt.messages
        goes_on = bool(before) and messages[: len(before)] == before
        news.append(messages[len(before) + 1 :] if goes_on else messages)
        before = messages
    return news
