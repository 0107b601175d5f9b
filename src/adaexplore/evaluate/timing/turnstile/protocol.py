"""The protocols of the two ends of a turnstile.

Before each timed call the process asks for its inputs. The judge, on a thread of its own, notes the
time, looks at the outputs of the call before, opens the inputs and answers. So no call can do the
work of another, and the judge's own clock has a window for every call. Baselines pass a turnstile
too, so that the cost of a passage is measured on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from adaexplore.evaluate.timing.turnstile.sums import Sums

HEAD_START_S = 2e-4
"""The time to launch some twenty kernels, before a GPU may begin with a call.

What is launched after a call, to deliver its outputs, has a time of its own (see `Own`).
"""

_LAST_S = 1.0
_LOOK_S = 0.01

Opened = Callable[[int], int]
"""Opens the inputs of call number `i`; returns the key for the timed process, or 0."""

Left = Callable[[int, Sequence[int]], None]
"""Looks at the outputs of call number `i`, made at these addresses of the timed process."""

Used = Callable[[], float]
"""Returns the CPU time that the timed process has used so far, in microseconds."""


Unseal = Callable[[], object]
"""Enqueues the work that takes the seals off the inputs of a call."""


def nothing_sealed() -> None:
    """Do nothing: the inputs come without seals."""


def nothing_used() -> float:
    """Return zero: nobody looks at the CPU time, and waits for threads to sleep."""
    return 0.0


class MissedPassageError(Exception):
    """The timed process has not passed after every call."""


def await_passages(attending: Future[None], has_asked: Callable[[], bool]) -> None:
    """Wait for the judge's thread, which attends to the last passages of a block whose body ended.

    On a busy machine the thread may take long. `has_asked` returns whether it has something to
    attend to; where it has nothing for `_LAST_S` seconds in all, `MissedPassageError` is raised: a
    process that asks now and then must not hold the judge for longer.
    """
    idle_looks = 0
    while wait([attending], timeout=_LOOK_S).not_done:
        idle_looks += not has_asked()
        if _LOOK_S * idle_looks > _LAST_S:
            raise MissedPassageError
    attending.result()


@dataclass(slots=True)
class Passages:
    """The judge's clock at the passages of a block.

    `windows_us` are the times from the opening of a call's inputs to the next question;
    `between_us` is the time in which the judge opened inputs and took outputs. `worked_us` has for
    each call the CPU time that the timed process used while its inputs were being opened, at most
    as long as that took. On a GPU, `sums` has for each call the sum over its outputs that the timed
    process gave with its notice, and `entering_us` for each call but the first the time from the
    end of the passage before until the device waited for the key: what a process launches in it is
    in no window. A baseline's is the time in which its host asked for the inputs.
    """

    windows_us: list[float] = field(default_factory=list)
    between_us: float = 0.0
    worked_us: list[float] = field(default_factory=list)
    sums: list[int] = field(default_factory=list)
    entering_us: list[float] = field(default_factory=list)


class Turnstile(Protocol):
    """The judge's end."""

    @property
    def other_end(self) -> int:
        """A descriptor for the `Gate` of the timed process."""
        ...

    def forget_other_end(self) -> object:
        """Close `other_end` in this process; the timed process has its own copy."""
        ...

    def attended(
        self,
        count: int,
        opened: Opened,
        left: Left | None = None,
        used: Used = nothing_used,
        *,
        asking: int = 0,
        telling: int = 0,
        head_start_s: float = HEAD_START_S,
    ) -> AbstractContextManager[Passages]:
        """Attend to the passages of `count` calls, which are made in the body.

        On the CPU the passages are attended to on the processors of the thread `asking`, which
        makes the calls, and `telling` addresses come with each question, of the outputs of the call
        before. On a GPU, a call and what follows it have `head_start_s` seconds to be enqueued
        before the call begins. Raises `MissedPassageError` where the body ends before the last
        passage. After an exception nobody can pass again.
        """
        ...


class Gate(Protocol):
    """The timed process's end."""

    def enter(
        self, call: int, addresses: Sequence[int] = (), unseal: Unseal = nothing_sealed
    ) -> None:
        """Ask for the inputs of a call, and wait for them or let the device wait.

        The outputs of the call before, made at these addresses, have been delivered. `unseal` is
        called before the call may begin.
        """
        ...

    def delivered(self, call: int, sums: Sums | None = None) -> None:
        """Say that the outputs of a call are delivered once the work so far is done.

        A GPU needs the `sums` over the delivered outputs of the block's calls, and proves it.
        """
        ...

    def leave(self, addresses: Sequence[int] = ()) -> None:
        """End a block; the outputs of its last call were made at these addresses."""
        ...


def turnstile_for(device: str) -> Turnstile:
    """Make a turnstile for calls on a device."""
    if device.startswith("cuda"):
        from adaexplore.evaluate.timing.turnstile.on_device import DeviceTurnstile

        return DeviceTurnstile()
    from adaexplore.evaluate.timing.turnstile.on_host import HostTurnstile

    return HostTurnstile()


def gate_for(device: str, descriptor: int) -> Gate:
    """Open the other end of a turnstile for calls on a device."""
    if device.startswith("cuda"):
        from adaexplore.evaluate.timing.turnstile.on_device import DeviceGate

        return DeviceGate(descriptor, device)
    from adaexplore.evaluate.timing.turnstile.on_host import HostGate

    return HostGate(descriptor)


def own_ends(device: str) -> tuple[Turnstile, Gate]:
    """Make both ends of a turnstile in this process, for calls on a device."""
    if device.startswith("cuda"):
        from adaexplore.evaluate.timing.turnstile.in_process import OwnDevicePassage

        passage = OwnDevicePassage(device)
        return passage, passage
    turnstile = turnstile_for(device)
    return turnstile, gate_for(device, turnstile.other_end)
