"""Threads for slow calls, whose results one thread collects for the coroutines that wait."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeVar

from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import ContextTooLongError, ModelClient, Prompt, Reply
from adaexplore.core.protocols.listener import Event
from adaexplore.core.protocols.proposer import Dialogue

Key = TypeVar("Key")

Work = Callable[[], Any]
Script = Generator[Event | Work, Any, None]
"""A step as a coroutine: it yields events, and work for a thread; it is sent the work's result."""


@dataclass(frozen=True, slots=True)
class Landed(Generic[Key]):
    """A finished call: its result, or the exception that it raised."""

    key: Key
    result: Any = None
    error: BaseException | None = None


class Workers(Generic[Key]):
    """Runs calls in threads of its own and hands the results to the thread that calls `next`.

    The threads are daemons: the process ends without waiting for them.
    """

    def __init__(self) -> None:
        self._landed: queue.SimpleQueue[Landed[Key]] = queue.SimpleQueue()

    def begin(self, key: Key, work: Callable[[], Any]) -> None:
        """Start a call; `next` returns its result under this key."""
        threading.Thread(target=self._run, args=(key, work), daemon=True).start()

    def put(self, landed: Landed[Key]) -> None:
        """Make `next` return this; any thread may call it."""
        self._landed.put(landed)

    def next(self) -> Landed[Key]:
        """Wait for the next finished call, and return it."""
        return self._landed.get()

    def _run(self, key: Key, work: Callable[[], Any]) -> None:
        try:
            landed = Landed(key, work())
        except BaseException as error:  # noqa: BLE001 - raised again in the other thread
            landed = Landed(key, error=error)
        self._landed.put(landed)


def advance(script: Script, landed: Landed[Any]) -> Generator[Event, None, Work | None]:
    """Send a script the result of its work; yield its events, and return its next work.

    None at its end. The exception of the work is raised in the script.
    """
    try:
        wanted = script.throw(landed.error) if landed.error else script.send(landed.result)
        while not callable(wanted):
            yield wanted
            wanted = next(script)
        return wanted
    except StopIteration:
        return None


def map_parallel(
    items: Iterable[Key], work: Callable[[Key], Any], parallel: int
) -> Iterator[Landed[Key]]:
    """Call `work` on every item, `parallel` at once; yield the results as they finish.

    An item is taken from the iterable when its call can begin.
    """
    workers: Workers[Key] = Workers()
    left, under_way = iter(items), 0
    while True:
        for item in islice(left, parallel - under_way):
            workers.begin(item, partial(work, item))
            under_way += 1
        if not under_way:
            return
        yield workers.next()
        under_way -= 1


def next_reply(
    dialogue: Dialogue, replies: Sequence[Reply | None], client: ModelClient | None
) -> tuple[Prompt, Reply] | Proposal:
    """Take a dialogue to its next reply, or to its end."""
    try:
        for reply in replies:
            prompt = next(dialogue) if reply is None else dialogue.send(reply)
    except StopIteration as end:
        proposal: Proposal = end.value
        return proposal
    assert client
    try:
        return prompt, client.ask(prompt)
    except ContextTooLongError:
        return prompt, Reply("", client.model, "too_long")
