"""The Protocol of a clock that times single calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

Call = Callable[[int], Any]
"""Runs call number `i`, which chooses the inputs, and returns its outputs."""

Sink = Callable[[int, Any], None]
"""Takes the outputs of call number `i`, outside the timed window but before the next call."""

Ready = Callable[[int], None]
"""Gets the inputs of call number `i` once the call before is done; overwrites a GPU's cache."""


class Clock(Protocol):
    """Times single calls on a device."""

    def warm(self, call: Call) -> None:
        """Run calls until the caches, the allocator and the device's clocks have settled."""
        ...

    def block(self, call: Call, count: int, sink: Sink, ready: Ready | None = None) -> list[float]:
        """Time `count` calls; return the microseconds of each, once the device has done them."""
        ...
