"""Recorded runs below a folder, as trainers need them: steps with their conversations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from adaexplore.core.ask import Exchange
from adaexplore.core.errors import BadInputError
from adaexplore.core.node import ROOT_ID, Node, best_correct
from adaexplore.core.protocols.client import Message
from adaexplore.core.protocols.store import RunRecord
from adaexplore.store import read_run
from adaexplore.store.directory import DATABASE_NAME, URL_NAME, holds_run
from adaexplore.store.exported import SUFFIX

UNKNOWN_LICENCE = "unknown"
_LICENCE = re.compile(r"^\s*#\s*SPDX-License-Identifier:\s*(\S.*?)\s*$", re.MULTILINE)

Conversation = tuple[Message, ...]
"""Messages of a prompt; a conversation that was answered ends with the assistant's."""


@dataclass(frozen=True)
class RecordedRun:
    """A run: its record, its steps in order, and the exchanges of each ask."""

    name: str
    record: RunRecord
    nodes: Sequence[Node]
    exchanges: Mapping[int, Sequence[Exchange]]

    @property
    def licence(self) -> str:
        """The SPDX identifier in the source of the problem."""
        found = _LICENCE.search(self.record.problem.source)
        return found[1] if found else UNKNOWN_LICENCE

    @cached_property
    def by_id(self) -> Mapping[int, Node]:
        """The steps by number."""
        return {node.id: node for node in self.nodes}

    def path_to_best(self) -> list[Node]:
        """Return the steps from the first to the best correct one; none where all are wrong."""
        best = best_correct({node.id: node.evaluation for node in self.nodes})
        path: list[Node] = []
        at = best or ROOT_ID
        while at != ROOT_ID:
            path.append(self.by_id[at])
            at = self.by_id[at].parent_id
        return path[::-1]

    def prompt(self, node: Node) -> Conversation:
        """Return the prompt whose reply is the step's candidate; empty where none is recorded."""
        exchange = self._last(node)
        return exchange.prompt.messages if exchange else ()

    def conversation(self, node: Node) -> Conversation:
        """Return the prompt and the reply; empty where no model answered, or none is recorded."""
        exchange = self._last(node)
        if exchange is None or not exchange.prompt.messages:
            return ()
        return (*exchange.prompt.messages, Message("assistant", exchange.reply.text))

    def _last(self, node: Node) -> Exchange | None:
        exchanges = self.exchanges.get(node.ask_id or 0, ())
        answered = [one for one in exchanges if one.reply.text == node.proposal.reply]
        return answered[-1] if answered else None


def recorded_runs(path: Path) -> list[RecordedRun]:
    """Read the run in `path`, or all runs below it, in order of their names.

    Raises `BadInputError` where there is none.
    """
    places = [path] if holds_run(path) else _below(path)
    if not places:
        raise BadInputError(f"{path}: no run there, and none below it")
    return [_read(place, path) for place in places]


def _below(path: Path) -> list[Path]:
    if not path.is_dir():
        return []
    databases = [file for name in (DATABASE_NAME, URL_NAME) for file in path.rglob(name)]
    return sorted({*(file.parent for file in databases), *path.rglob(f"*{SUFFIX}")})


def _read(place: Path, root: Path) -> RecordedRun:
    name = root.resolve().name if place == root else place.relative_to(root).as_posix()
    with read_run(place) as directory:
        store = directory.store
        exchanges: dict[int, list[Exchange]] = {}
        for exchange in store.calls():
            exchanges.setdefault(exchange.ask_id, []).append(exchange)
        return RecordedRun(name, store.run(), store.nodes(), exchanges)
