"""Waiting for a model that is out of reach, together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from adaexplore.core.client import Client, ModelOutageError, Prompt, Reply

_FIRST_WAIT_S, _LONGEST_WAIT_S = 5.0, 300.0


class OutageTolerantClient:
    """A client that waits out a model's outages, for `patience_s` seconds each.

    Whoever finds the model out of reach first asks again, at growing intervals, and all others wait
    until that call came through. `waiting` is told why and for how long at each wait, from whatever
    thread it is. Raises `ModelOutageError` for everybody once the patience is gone.
    """

    def __init__(
        self,
        client: Client,
        patience_s: float,
        waiting: Callable[[str, float], None],
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._patience_s = patience_s
        self._waiting = waiting
        self._sleep = sleep
        self._outage = threading.Lock()
        self._ended = 0
        self._lost = ""

    @property
    def model(self) -> str:
        """The client's model."""
        return self._client.model

    def ask(self, prompt: Prompt) -> Reply:
        """The client's reply, however long its provider is out of reach within the patience."""
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
                        return self._ask_again(prompt, error)

    def close(self) -> None:
        """Closes the client."""
        self._client.close()

    def _ask_again(self, prompt: Prompt, error: ModelOutageError) -> Reply:
        wait_s, patience_s = _FIRST_WAIT_S, self._patience_s
        try:
            while patience_s > 0:
                self._waiting(str(error), wait_s)
                self._sleep(wait_s)
                patience_s -= wait_s
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
                try:
                    return self._client.ask(prompt)
                except ModelOutageError as again:
                    error = again
            self._lost = str(error)
            raise error
        finally:
            self._ended += 1
