"""Shared waiting for an unreachable model."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from adaexplore.core.protocols.client import ModelClient, ModelOutageError, Prompt, Reply
from adaexplore.llm.wrapping import WrappingClient

_FIRST_WAIT_S, _LONGEST_WAIT_S = 5.0, 300.0


class OutageTolerantClient(WrappingClient):
    """Client that waits out a model's outages, for `patience_s` seconds each.

    The first call that finds the model unreachable retries at growing intervals, and all other
    calls wait for its result. `waiting` is called at each wait, from the waiting thread, with the
    reason and the seconds to wait. Once the patience is used up, every call raises
    `ModelOutageError`.
    """

    def __init__(
        self,
        client: ModelClient,
        patience_s: float,
        waiting: Callable[[str, float], None],
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(client)
        self._patience_s = patience_s
        self._waiting = waiting
        self._sleep = sleep
        self._outage = threading.Lock()
        self._ended = 0
        self._lost = ""

    def ask(self, prompt: Prompt) -> Reply:
        """Return the client's reply, after waiting for the end of an outage within the patience."""
        while True:
            with self._outage:
                before = self._ended
            try:
                return self._client.ask(prompt)
            except ModelOutageError as error:
                with self._outage:
                    if self._lost:
                        raise ModelOutageError(self._lost) from error
                    if self._ended == before:
                        return self._retry(prompt, error)

    def _retry(self, prompt: Prompt, error: ModelOutageError) -> Reply:
        wait_s, patience_s = _FIRST_WAIT_S, self._patience_s
        try:
            while patience_s > 0:
                self._waiting(str(error), wait_s)
                self._sleep(wait_s)
                patience_s -= wait_s
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
                try:
                    return self._client.ask(prompt)
                except ModelOutageError as latest:
                    error = latest
            self._lost = str(error)
            raise error
        finally:
            self._ended += 1
