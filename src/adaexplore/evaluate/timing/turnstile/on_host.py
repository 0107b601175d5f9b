"""The turnstile on the CPU: the timed process asks by a socket, and sleeps until it is answered."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import time
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from adaexplore.evaluate.timing.turnstile.protocol import (
    HEAD_START_S,
    Left,
    MissedPassageError,
    Opened,
    Passages,
    Unseal,
    Used,
    await_passages,
    nothing_sealed,
    nothing_used,
)

if TYPE_CHECKING:
    from adaexplore.evaluate.timing.turnstile.sums import Sums

_ASKED = b"?"
_KEY = struct.Struct("=q")

_SETTLING_S = 300e-6  # GNU OpenMP's threads spin for some 100 us before they sleep
_LOOK_S = 10e-6


class HostTurnstile:
    """The judge's end (see `Turnstile`)."""

    def __init__(self) -> None:
        self._socket, other = socket.socketpair()
        self.other_end = other.detach()
        weakref.finalize(self, self._socket.close)
        self.forget_other_end = weakref.finalize(self, os.close, self.other_end)
        self._listens = False

    @contextmanager
    def attended(
        self,
        count: int,
        opened: Opened,
        left: Left | None = None,
        used: Used = nothing_used,
        *,
        asking: int = 0,
        telling: int = 0,
        head_start_s: float = HEAD_START_S,  # noqa: ARG002 - a call is made when it may begin
    ) -> Iterator[Passages]:
        """See `Turnstile.attended`."""
        passages = Passages()
        with ThreadPoolExecutor(1) as threads:
            attending = threads.submit(
                self._attend, count, opened, left, used, passages, asking, telling
            )
            try:
                yield passages
                await_passages(attending, self._has_asked)
                if len(passages.windows_us) < count:
                    raise MissedPassageError
            except BaseException as error:
                self._socket.shutdown(socket.SHUT_RDWR)
                failure = attending.exception()
                if failure and failure is not error:
                    raise failure from None
                raise

    def _has_asked(self) -> bool:
        poll = select.poll()  # select() takes no descriptor above 1023
        poll.register(self._socket, select.POLLIN)
        return not self._listens or bool(poll.poll(0))

    def _attend(
        self,
        count: int,
        opened: Opened,
        left: Left | None,
        used: Used,
        passages: Passages,
        asking: int,
        telling: int,
    ) -> None:
        since, question = 0, _question(telling)
        try:
            for i in range(count + 1):
                self._listens = True
                told = self._socket.recv(question.size, socket.MSG_WAITALL)
                self._listens = False
                asked = time.perf_counter_ns()
                if len(told) < question.size:
                    return
                if i == 0:
                    _sit_beside(asking)
                if i > 0:
                    passages.windows_us.append((asked - since) / 1000.0)
                    if left:
                        left(i - 1, question.unpack(told)[1:])
                if i < count:
                    used_us, began = _settled(used), time.perf_counter_ns()
                    key = opened(i)
                    worked_us = used() - used_us
                    since = time.perf_counter_ns()
                    passages.between_us += (since - asked) / 1000.0
                    passages.worked_us.append(min(worked_us, (since - began) / 1000.0))
                    self._socket.sendall(_KEY.pack(key))
        except OSError:
            return  # the other end is closed: its process has ended
        except BaseException:
            self._socket.shutdown(socket.SHUT_RDWR)  # the timed process must not wait for ever
            raise


def _sit_beside(asking: int) -> None:
    """Move this thread to the processors of the thread that asks.

    The two work in turns. A thread on another processor, which sleeps between two passages, takes
    much longer to wake: for baselines and candidates the same, wherever their threads are.
    """
    with contextlib.suppress(OSError):  # it has ended
        os.sched_setaffinity(0, os.sched_getaffinity(asking))


def _question(outputs: int) -> struct.Struct:
    return struct.Struct(f"=c{outputs}Q")


def _settled(used: Used) -> float:
    """Wait until threads that have nothing to do are asleep; return the CPU time by then.

    What a process does while its inputs are opened is work, then: it may read them meanwhile.
    """
    if used is nothing_used:
        return 0.0
    deadline, before_us = time.perf_counter() + _SETTLING_S, -1.0
    while (now_us := used()) != before_us and time.perf_counter() < deadline:
        before_us = now_us
        time.sleep(_LOOK_S)
    return now_us


class HostGate:
    """The timed process's end (see `Gate`)."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def enter(
        self,
        call: int,  # noqa: ARG002
        addresses: Sequence[int] = (),
        unseal: Unseal = nothing_sealed,  # noqa: ARG002 - the judge copies what it opens
    ) -> None:
        """See `Gate.enter`."""
        self.leave(addresses)
        if len(os.read(self._descriptor, _KEY.size)) < _KEY.size:
            raise ConnectionError("the judge has closed the turnstile")

    def delivered(self, call: int, sums: Sums | None = None) -> None:
        """See `Gate.delivered`; the next question says so."""

    def leave(self, addresses: Sequence[int] = ()) -> None:
        """See `Gate.leave`."""
        os.write(self._descriptor, _question(len(addresses)).pack(_ASKED, *addresses))
