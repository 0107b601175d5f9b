"""Threads that wait for what takes its time, so that one thread can do all the rest."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeVar

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Landed(Generic[Key]):
    """What became of a piece of work: its result, or what it raised."""

    key: Key
    result: Any = None
    error: BaseException | None = None


class Workers(Generic[Key]):
    """Runs work in threads of its own and hands the results to the thread that asks for them.

    The threads end with the process: nobody waits for those that are still at work.
    """

    def __init__(self) -> None:
        self._landed: queue.SimpleQueue[Landed[Key]] = queue.SimpleQueue()

    def begin(self, key: Key, work: Callable[[], Any]) -> None:
        """Starts a piece of work; its result comes out of `next` under this key."""
        threading.Thread(target=self._run, args=(key, work), daemon=True).start()

    def put(self, landed: Landed[Key]) -> None:
        """Have `next` return this; any thread may call it."""
        self._landed.put(landed)

    def next(self) -> Landed[Key]:
        """Wait for the next piece of work that is done, and return it."""
        return self._landed.get()

    def _run(self, key: Key, work: Callable[[], Any]) -> None:
        try:
            landed = Landed(key, work())
        except BaseException as error:  # noqa: BLE001 - raised again in the other thread
            landed = Landed(key, error=error)
        self._landed.put(landed)


def map_parallel(
    items: Iterable[Key], work: Callable[[Key], Any], parallel: int
) -> Iterator[Landed[Key]]:
    """What became of work on items, as they are done, so many of which are under way at once.

    An item is taken when its work can begin: whoever makes the items may end them at any time.
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
