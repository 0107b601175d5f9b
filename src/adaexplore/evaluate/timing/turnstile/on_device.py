"""The turnstile on a GPU: the device itself waits for the inputs of a call.

The timed process enqueues a wait, the unsealing of the inputs, the call and the delivery of its
outputs, and the device does them once the judge has put the key into a page that both see. The
device writes to the same page when the outputs are there, with a sum over them. So the judge's
window of a call is the device's time, whatever the hosts do meanwhile; and the device does not wait
for the host.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import select
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING

import torch

from adaexplore.evaluate.timing.turnstile.protocol import (
    HEAD_START_S,
    Left,
    Opened,
    Passages,
    Unseal,
    Used,
    await_passages,
    nothing_sealed,
    nothing_used,
)
from adaexplore.evaluate.timing.turnstile.seals import cache_key_of

if TYPE_CHECKING:
    from adaexplore.evaluate.timing.turnstile.sums import Sums

_AT_GATE, _QUEUED, _ADMITTED, _WAITING, _KEY, _OPENED, _CLOSED, _SUM = range(8)
"""The words of the page, in the order of a passage: the process makes the call next; the call is
enqueued; the device may wait for the key, and it does; the key; the inputs are open; the outputs
are there, and their sum. All but the key and the sum are numbers of calls, which count from 1.

The device waits for admission with no multiprocessor held, so that the judge can use it. It waits
for the key with a kernel, which takes a microsecond to see it.
"""

_WORDS = 8
_ALL = 1 << 62
_STUCK_S = 0.5  # the process may wait for the device, which waits for admission
_SPIN_S = 0.02
_ASLEEP, _WAKING_US = 0.9, 100.0
_PAUSE_S = 1e-4

_AT_LEAST = ctypes.c_uint(0)  # CU_STREAM_WAIT_VALUE_GEQ
_MAPPED = ctypes.c_uint(3)  # portable and mapped


class DeviceTurnstile:
    """The judge's end (see `Turnstile`)."""

    def __init__(self) -> None:
        self.other_end = os.memfd_create(
            "adaexplore-turnstile", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
        )
        os.ftruncate(self.other_end, mmap.PAGESIZE)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.other_end, fcntl.F_ADD_SEALS, seals)
        self._page = _page(self.other_end)
        self.forget_other_end = weakref.finalize(self, os.close, self.other_end)
        self._awaited: tuple[int, int] | None = None
        """The word that the judge's thread waits for, and the number that it has to reach."""

    @contextmanager
    def attended(
        self,
        count: int,
        opened: Opened,
        left: Left | None = None,
        used: Used = nothing_used,  # noqa: ARG002 - keys are opened at once
        *,
        asking: int = 0,  # noqa: ARG002
        telling: int = 0,  # noqa: ARG002 - outputs lie in the judge's memory
        head_start_s: float = HEAD_START_S,
    ) -> Iterator[Passages]:
        """See `Turnstile.attended`."""
        passages, over = Passages(), threading.Event()
        self.begin()
        with ThreadPoolExecutor(1) as threads:
            attending = threads.submit(
                self._attend, count, opened, left, passages, over, head_start_s
            )
            try:
                yield passages
                await_passages(attending, self._has_asked)
            except BaseException as error:  # Ctrl-C too: nobody must wait for ever
                over.set()
                failure = attending.exception()
                self.release()
                if failure and failure is not error:
                    raise failure from None
                raise

    def _attend(
        self,
        count: int,
        opened: Opened,
        left: Left | None,
        passages: Passages,
        over: threading.Event,
        head_start_s: float,
    ) -> None:
        page, now = self._page, time.perf_counter
        try:
            asked = done = now()
            shortest_us = 0.0
            for i in range(count):
                self._reaches(_AT_GATE, i + 1, over, _STUCK_S)
                self._reaches(_QUEUED, i + 1, over, head_start_s)
                page[_ADMITTED] = i + 1
                if not self._reaches(_WAITING, i + 1, over):
                    return
                if i:
                    passages.entering_us.append(1e6 * (now() - done))
                key = opened(i)
                since = now()
                self.open(i, key)
                passages.between_us += 1e6 * (since - asked)
                passages.worked_us.append(0.0)
                self._awaited = _CLOSED, i + 1
                asleep_s = _asleep_s(shortest_us)
                overslept = asleep_s > 0 and not over.wait(asleep_s) and page[_CLOSED] > i
                if not self._reaches(_CLOSED, i + 1, over):
                    return
                passages.sums.append(page[_SUM])  # before the window ends: none comes later
                asked = now()
                passages.windows_us.append(1e6 * (asked - since))
                # After a window that was over before anybody looked, the next is looked at.
                shortest_us = 0.0 if overslept else min(shortest_us or inf, passages.windows_us[-1])
                if left:
                    left(i, ())
                done = now()
        finally:
            if len(passages.windows_us) < count:
                self.release()

    def begin(self) -> None:
        """Begin a block: no call has passed."""
        self._page[:] = [0] * _WORDS

    def open(self, call: int, key: int) -> None:
        """Open the inputs of a call."""
        self._page[_KEY] = key
        self._page[_ADMITTED] = self._page[_OPENED] = call + 1

    def release(self) -> None:
        """Let the device wait for nothing."""
        self._page[_ADMITTED] = self._page[_OPENED] = _ALL

    def _reaches(
        self, word: int, number: int, over: threading.Event, within_s: float = float("inf")
    ) -> bool:
        """Wait until a word of the page reaches a number; return whether it does."""
        page, started = self._page, time.perf_counter()
        self._awaited = word, number
        while page[word] < number:
            waited_s = time.perf_counter() - started
            if over.is_set() or waited_s > within_s:
                return False
            _pause(0.0 if waited_s < _SPIN_S else _PAUSE_S)
        self._awaited = None
        return True

    def _has_asked(self) -> bool:
        word, number = self._awaited or (_CLOSED, 0)
        return self._page[word] >= number


def _asleep_s(shortest_us: float) -> float:
    """Return for how long a window is surely open, by the shortest so far.

    A thread that polls may slow the one that launches, where they share a core.
    """
    return max(_ASLEEP * shortest_us - _WAKING_US, 0.0) / 1e6


class DeviceGate:
    """The timed process's end (see `Gate`); its work is enqueued on the current stream."""

    def __init__(self, descriptor: int, device: str) -> None:
        self._page = _page(descriptor)
        self._cache_key = cache_key_of(torch.device(device))
        self._driver = _CudaDriver()
        self._address = ctypes.addressof(self._page)
        self._driver.register(self._address, mmap.PAGESIZE)
        weakref.finalize(self, self._driver.unregister, self._address)

    def enter(
        self,
        call: int,
        addresses: Sequence[int] = (),  # noqa: ARG002
        unseal: Unseal = nothing_sealed,
    ) -> None:
        """See `Gate.enter`; the device waits, and the host if it is two calls ahead."""
        while self._page[_CLOSED] < call - 1:
            _pause(0.0)  # the queue of the device is not endless
        self._driver.wait(self._of(_ADMITTED), call + 1)
        waiting, opened, source = map(self._of, (_WAITING, _OPENED, _KEY))
        self._cache_key.await_key(waiting, opened, source, call + 1)
        unseal()  # before the head start begins: what surrounds a call is no part of it
        self._page[_AT_GATE] = call + 1

    def delivered(self, call: int, sums: Sums | None = None) -> None:
        """See `Gate.delivered`."""
        assert sums is not None
        sums.tell(call, self._cache_key.key, self._of(_SUM), self._of(_CLOSED), call + 1)
        self._page[_QUEUED] = call + 1

    def leave(self, addresses: Sequence[int] = ()) -> None:
        """See `Gate.leave`; nothing is left to say."""

    def _of(self, word: int) -> int:
        return self._address + ctypes.sizeof(ctypes.c_int64) * word


class _CudaDriver:
    """The functions of CUDA's driver that PyTorch does not offer; raises `OSError` for errors."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")

    def register(self, address: int, size: int) -> None:
        """Let the device read and write memory of the host."""
        self._call("cuMemHostRegister_v2", _pointer(address), ctypes.c_size_t(size), _MAPPED)

    def unregister(self, address: int) -> None:
        """End what `register` began."""
        self._call("cuMemHostUnregister", _pointer(address))

    def wait(self, address: int, least: int) -> None:
        """Let the current stream wait until the word there is at least so large."""
        self._call("cuStreamWaitValue64_v2", _stream(), *_word(address, least), _AT_LEAST)

    def _call(self, name: str, *arguments: object) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            raise OSError(f"{name} fails with CUDA's error {code}")


def _pause(seconds: float) -> None:
    """Let other threads run; unlike `time.sleep`, a pause of zero ends at once."""
    select.select((), (), (), seconds)


def _pointer(address: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(address)


def _word(address: int, value: int) -> tuple[ctypes.c_uint64, ctypes.c_uint64]:
    return ctypes.c_uint64(address), ctypes.c_uint64(value)


def _stream() -> ctypes.c_void_p:
    return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)


def _page(descriptor: int) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * _WORDS).from_buffer(mmap.mmap(descriptor, mmap.PAGESIZE))
