"""The turnstile: a timed process gets the inputs of a call after the outputs of the one before.

Before each timed call the process asks for its inputs. The judge, on a thread of its own, notes the
time, looks at the outputs of the call before, opens the inputs and answers. So no call can do the
work of another, and the judge's own clock has a window for every call. Baselines pass a turnstile
too, so that what a passage costs is measured on them.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

_ASKED = b"?"
_KEY = struct.Struct("=q")
_LAST_S = 1.0  # after the block, for the passage after its last call

Opened = Callable[[int], int]
"""Opens the inputs of call number `i`; returns the key for the timed process, or 0."""

Left = Callable[[int, Sequence[int]], None]
"""Looks at the outputs of call number `i`, made at these addresses of the timed process."""

Used = Callable[[], float]
"""Returns the CPU time that the timed process has used so far, in microseconds."""


_SETTLING_S = 300e-6  # GNU OpenMP's threads spin for some 100 us before they sleep
_LOOK_S = 10e-6


def nothing_used() -> float:
    """Return zero: nobody looks at the CPU time, and waits for threads to sleep."""
    return 0.0


class MissedPassageError(Exception):
    """The timed process has not passed after every call."""


@dataclass(slots=True)
class Passages:
    """The judge's clock at the passages of a block.

    `windows_us` are the times from the opening of a call's inputs to the next question;
    `between_us` is the time in which the judge opened inputs and took outputs. `worked_us` has for
    each call the CPU time that the timed process used while its inputs were being opened, at most
    as long as that took.
    """

    windows_us: list[float] = field(default_factory=list)
    between_us: float = 0.0
    worked_us: list[float] = field(default_factory=list)


class Turnstile:
    """The judge's end; `other_end` is a descriptor for the `Gate` of the timed process."""

    def __init__(self) -> None:
        self._socket, other = socket.socketpair()
        self.other_end = other.detach()
        weakref.finalize(self, self._socket.close)
        self.forget_other_end = weakref.finalize(self, os.close, self.other_end)

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
    ) -> Iterator[Passages]:
        """Attend to the passages of `count` calls, which are made in the body.

        Where the thread `asking` makes them, the passages are attended to on its processors. With
        each question comes so many addresses as `telling` says, of the outputs of the call before.

        Raises `MissedPassageError` where the body ends before the last of them. After an exception
        nobody can pass again.
        """
        passages = Passages()
        with ThreadPoolExecutor(1) as threads:
            attending = threads.submit(
                self._attend, count, opened, left, used, passages, asking, telling
            )
            try:
                yield passages
                _finish(attending)
                if len(passages.windows_us) < count:
                    raise MissedPassageError
            except BaseException as error:
                self._socket.shutdown(socket.SHUT_RDWR)
                failure = attending.exception()
                if failure and failure is not error:
                    raise failure from None
                raise

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
                told = self._socket.recv(question.size, socket.MSG_WAITALL)
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


def _finish(attending: Future[None]) -> None:
    try:
        attending.result(_LAST_S)
    except TimeoutError:
        raise MissedPassageError from None


class Gate:
    """The timed process's end of a turnstile, by its descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def enter(self, addresses: Sequence[int] = ()) -> int:
        """Ask for the inputs of the next call; return the key that opens them.

        The outputs of the call before, made at these addresses, must have been delivered.
        """
        self.leave(addresses)
        answer = os.read(self._descriptor, _KEY.size)
        if len(answer) < _KEY.size:
            raise ConnectionError("the judge has closed the turnstile")
        key: int = _KEY.unpack(answer)[0]
        return key

    def leave(self, addresses: Sequence[int] = ()) -> None:
        """Say that the outputs of the last call, made at these addresses, have been delivered."""
        os.write(self._descriptor, _question(len(addresses)).pack(_ASKED, *addresses))
