"""A device of the cluster as its searches see it."""

from __future__ import annotations

import threading
import time
from typing import Any, Protocol

from adaexplore.core.errors import InfrastructureError
from adaexplore.core.version import __version__
from adaexplore.run.cluster.device import MOST_AT_ONCE, JudgingOrder, longest_canary_s

_BEGIN_S = 900.0  # once it is placed: importing torch from a cold network disk takes minutes
_SHORT_S = 300.0
_LOOK_S = 2.0
"""Time after which a call that waits looks whether the cluster is still there, in seconds."""


class DeviceLostError(Exception):
    """A device whose process or machine is gone, or does not answer."""


class Remote(Protocol):
    """A device that a fleet may use; `name`, `id`, `kind`, `seats` are known once it has begun.

    It does so many pieces of work at once as it has seats: candidates are compiled while another is
    timed. Every method raises `DeviceLostError` where the device is gone.
    """

    name: str
    id: str
    kind: str
    seats: int

    def begin(self) -> None:
        """Wait until the device is there, however long the cluster takes."""
        ...

    def canary_us(self) -> float:
        """Return the time of the canary."""
        ...

    def call(self, method: str, *arguments: Any, timeout_s: float = _SHORT_S) -> Any:
        """Call a method of `Device`; raises what it raises."""
        ...

    def kill(self) -> None:
        """End the device's process; any thread may call it."""
        ...


def result_of(
    ray: Any, reference: Any, gone: threading.Event, timeout_s: float | None = None
) -> Any:
    """Return the result of a call, or raise what the call raises.

    Raises Ray's `GetTimeoutError` after `timeout_s`, and `DeviceLostError` once `gone` is set.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while not gone.is_set():
        left_s = _LOOK_S if deadline is None else deadline - time.monotonic()
        try:
            return ray.get(reference, timeout=max(min(left_s, _LOOK_S), 0.0))
        except ray.exceptions.GetTimeoutError:
            if left_s <= _LOOK_S and deadline is not None:
                raise
    raise DeviceLostError("the cluster is gone")


class RayDevice:
    """A `Remote` behind a Ray actor, which is made for the first order of a search.

    Once `gone` is set, every call ends: the cluster answers none any more.
    """

    def __init__(self, ray: Any, actor: Any, order: JudgingOrder, gone: threading.Event) -> None:
        self._ray = ray
        self._actor = actor
        self._order = order
        self._gone = gone
        self.name, self.id, self.kind = "a device that was to come", "", ""
        self.seats = 1

    def begin(self) -> None:
        """See `Remote.begin`."""
        self._get(self._actor.__ray_ready__.remote(), None)  # placed
        found = self.call("begin", self._order, __version__, timeout_s=_BEGIN_S)
        self.name, self.id, self.kind = found["name"], found["id"], found["kind"]
        self.seats = found["seats"]

    def canary_us(self) -> float:
        """See `Remote.canary_us`."""
        try:
            limit_s = MOST_AT_ONCE * longest_canary_s(self._order) + _SHORT_S
            time_us: float = self.call("canary_us", self._order, timeout_s=limit_s)
        except InfrastructureError as error:
            raise DeviceLostError(f"{self.name} fails: {error}") from error
        return time_us

    def call(self, method: str, *arguments: Any, timeout_s: float = _SHORT_S) -> Any:
        """See `Remote.call`."""
        return self._get(getattr(self._actor, method).remote(*arguments), timeout_s)

    def kill(self) -> None:
        """See `Remote.kill`."""
        if not self._gone.is_set():
            self._ray.kill(self._actor, no_restart=True)

    def _get(self, reference: Any, timeout_s: float | None) -> Any:
        errors = self._ray.exceptions
        try:
            return result_of(self._ray, reference, self._gone, timeout_s)
        except errors.RayTaskError as error:  # raised by the method itself
            if isinstance(error.cause, Exception):
                raise error.cause from None
            last = str(error).strip().splitlines()[-1]
            raise InfrastructureError(f"{self.name}: {last}") from error
        except errors.GetTimeoutError as error:
            raise DeviceLostError(f"{self.name} did not answer in {timeout_s:g} s") from error
        except errors.RayError as error:
            raise DeviceLostError(f"{self.name} is gone") from error
