"""The devices of a cluster that one process uses, for all of its problems."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from adaexplore.core.errors import (
    AdaExploreError,
    BadInputError,
    ClusterGoneError,
    InfrastructureError,
)
from adaexplore.run.cluster.remote import DeviceLostError, Remote
from adaexplore.sandbox.process import WorkerDiedError

Result = TypeVar("Result")
Tell = Callable[[str], None]

_MOST_TRIES = 3
"""Devices that one piece of work may take down."""
_PAUSES_S = (0.0, 0.5, 2.0)
"""Pauses before the canary of a device is timed, until one is fast enough."""
_REST_S = 60.0
"""Pause before a device that was too slow is tried again."""
_RESTART_S = 2.0
_LOOK_S = 5.0
"""Pause between two looks at the head of the cluster."""
_SILENCE_S = 30.0
"""Silence of the head after which all work ends. Ray would end this process after a minute."""
_CLOSED = "the devices were given back"


class ToughWorkError(InfrastructureError):
    """Work that took down one device after the other."""


class DeviceMaker(Protocol):
    """The cluster as a fleet needs it; see `connection.Cluster`."""

    address: str

    def make(self) -> Remote:
        """Ask for a device."""
        ...

    def longest_us(self, kind: str, device: str, time_us: float) -> float:
        """Note a time of the canary; return the longest that the device may take."""
        ...

    def answers(self) -> bool:
        """Return True where the head of the cluster answers."""
        ...

    def leave(self) -> None:
        """End all calls that wait for the cluster; they raise `DeviceLostError`."""
        ...


class Fleet:
    """Devices of one kind; a thread has a seat of a device while it works there.

    It gets the device with the least work, of those with a seat left. Ray places the devices, as
    many as `want` asks for, and ends them with this process. One that is lost is replaced by the
    next that the cluster has; where several pieces of work were on it, nobody knows whose fault it
    was, and each has its next device to itself. One whose canary takes too long before or after
    timed work rests, and the work is done again elsewhere. Where no device is there for
    `patience_s` seconds, those who wait get a `ClusterGoneError`; where the head of the cluster is
    gone, all do.
    """

    def __init__(self, cluster: DeviceMaker, patience_s: float, rest_s: float = _REST_S) -> None:
        self._cluster = cluster
        self._patience_s = patience_s
        self._rest_s = rest_s
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._over = _CLOSED
        self._wanted = 0
        self._coming = 0  # devices that begin, or rest
        self._taken: dict[Remote, int] = {}  # seats of the devices that are there
        self._resting: dict[Remote, int] = {}  # of those that rest, work on which is not over
        self._waiting_alone = 0  # who wait for a device to themselves: nobody else gets a seat
        self._all: list[Remote] = []
        self._kind = ""
        self._trouble: AdaExploreError | None = None
        self._why = "none is free"
        self._news: list[str] = []
        self._in_background(self._watch)

    def want(self, devices: int) -> None:
        """Ask for this many devices in all."""
        with self._changed:
            more = range(self._wanted, devices)
            self._wanted = max(self._wanted, devices)
            self._coming += len(more)
        for _ in more:
            self._in_background(self._bring)

    def timed(
        self, work: Callable[[Remote], Result], tell: Tell, prefer: Remote | None = None
    ) -> Result:
        """Do work on a device that keeps its time before and after it.

        Raises what the work raises, `ToughWorkError` where it takes several devices down, and
        `ClusterGoneError` where there is no device.
        """
        return self._done(work, tell, prefer, check=self._check_pace)

    def untimed(self, work: Callable[[Remote], Result], tell: Tell) -> Result:
        """Do work that measures nothing; raises as `timed` does."""
        return self._done(work, tell, None, check=lambda _: None)

    def beside(self, work: Callable[[Remote], Result]) -> Result:
        """Do work on a device that may be at work on something else; raises as `timed` does."""
        for _ in range(_MOST_TRIES):
            with self._changed:
                self._wait(lambda: bool(self._taken))
                device = min(self._taken, key=self._taken.__getitem__)
            try:
                return work(device)
            except DeviceLostError as error:
                self._replace(device, str(error), seats=0)
        raise ToughWorkError(f"{_MOST_TRIES} devices failed at the same work: {self._why}")

    def tell_all(self, method: str, *arguments: Any) -> None:
        """Call a method on all devices that are there."""
        with self._changed:
            there = list(self._taken)
        for device in there:
            try:
                device.call(method, *arguments)
            except DeviceLostError:
                continue

    def close(self) -> None:
        """Give all devices back; who waits for one, or for its work, gets an error."""
        for device in self._end(_CLOSED):
            device.kill()

    def _end(self, why: str) -> list[Remote]:
        """End all work, unless it has ended before; return the devices that there were."""
        with self._changed:
            if not self._closed.is_set():
                self._over = why
                self._closed.set()
            devices, self._all, self._taken, self._resting = self._all, [], {}, {}
            self._changed.notify_all()
            return devices

    def _watch(self) -> None:
        """End all work where the head of the cluster is gone."""
        heard = time.monotonic()
        while not self._closed.wait(_LOOK_S):
            if self._cluster.answers():
                heard = time.monotonic()
            elif time.monotonic() - heard > _SILENCE_S:
                self._end(
                    f"the head of the Ray cluster at {self._cluster.address} is gone; name another "
                    "cluster with --ray ADDRESS, or judge on this machine with --ray ''"
                )
                self._cluster.leave()

    def _done(
        self,
        work: Callable[[Remote], Result],
        tell: Tell,
        prefer: Remote | None,
        *,
        check: Callable[[Remote], None],
    ) -> Result:
        tries, alone = 0, False
        while tries < _MOST_TRIES:
            device = self._take(prefer, alone)
            seats = device.seats if alone else 1
            self._pass_on(tell)
            begun = False
            try:
                check(device)
                begun = True
                result = work(device)
                check(device)
            except DeviceLostError as error:
                if self._closed.is_set():
                    raise ClusterGoneError(self._over) from error
                line = f"{error}; its work begins again on another device"
                self._replace(device, line, seats)
                if begun:
                    tries += alone or device.seats == 1
                    alone = True
            except _TooSlowError as error:
                self._rest(device, str(error), seats)
                tries += begun
            except BaseException:
                self._give_back(device, seats)
                raise
            else:
                self._give_back(device, seats)
                return result
            self._pass_on(tell)
        raise ToughWorkError(f"{_MOST_TRIES} devices failed at the same work: {self._why}")

    def _say(self, line: str) -> None:
        """Keep a line for the next who can tell it."""
        with self._changed:
            self._why = line
            self._news.append(line)

    def _pass_on(self, tell: Tell) -> None:
        with self._changed:
            news, self._news = self._news, []
        for line in news:
            tell(line)

    def _take(self, prefer: Remote | None, alone: bool) -> Remote:
        """Wait for a seat, or with `alone` for all seats of a device."""
        with self._changed:
            self._waiting_alone += alone
            try:
                self._wait(lambda: bool(self._free(alone)))
            finally:
                self._waiting_alone -= alone
                self._changed.notify_all()
            free = self._free(alone)
            device = prefer if prefer in free else min(free, key=self._taken.__getitem__)
            assert device is not None
            self._taken[device] += device.seats if alone else 1
            return device

    def _free(self, alone: bool) -> list[Remote]:
        if alone:
            return [device for device, taken in self._taken.items() if not taken]
        if self._waiting_alone:
            return []
        return [device for device, taken in self._taken.items() if taken < device.seats]

    def _wait(self, until: Callable[[], bool]) -> None:
        """Wait for a condition, and not for long while no device is there."""
        deadline = None
        while not until():
            if self._closed.is_set():
                raise ClusterGoneError(self._over)
            if not self._coming and not self._taken:
                raise self._trouble or ClusterGoneError(self._none_left())
            if self._taken:  # all are at work
                deadline = None
            else:
                deadline = deadline or time.monotonic() + self._patience_s
                if time.monotonic() >= deadline:
                    raise ClusterGoneError(self._none_left())
            left_s = None if deadline is None else max(deadline - time.monotonic(), 0.01)
            self._changed.wait(left_s)

    def _none_left(self) -> str:
        return (
            f"no device of the Ray cluster at {self._cluster.address} came within "
            f"{self._patience_s:g} s ({self._why}); look at `ray status`, or wait longer with "
            "--set ray_patience_s"
        )

    def _give_back(self, device: Remote, seats: int) -> None:
        with self._changed:
            for there in (self._taken, self._resting):
                if device in there:  # else it was lost, or all were closed meanwhile
                    there[device] = there.pop(device) - seats  # the last in turn
            self._changed.notify_all()

    def _replace(self, device: Remote, line: str, seats: int) -> None:
        """Take a device that is lost out, and say so, once; another is to come."""
        if self._leave(device, line):
            device.kill()
            self._in_background(self._bring)
        else:  # lost already, or at rest
            self._give_back(device, seats)

    def _rest(self, device: Remote, line: str, seats: int) -> None:
        """Give a device that is too slow back, and take it out, once, until it is not."""
        with self._changed:
            self._give_back(device, seats)
            taken = self._taken.get(device, 0)
            if not self._leave(device, line):
                return
            self._resting[device] = taken
        self._in_background(lambda: self._recover(device))

    def _leave(self, device: Remote, line: str) -> bool:
        """Take a device out; return False where another thread that worked there has done so."""
        with self._changed:
            if device not in self._taken:
                return False
            del self._taken[device]
            self._coming += 1
            self._say(line)
            self._changed.notify_all()
            return True

    def _bring(self) -> None:
        """Ask for devices until one is there; end where that cannot succeed."""
        while not self._closed.is_set():
            device = self._cluster.make()
            with self._changed:
                if self._closed.is_set():  # nobody would give it back
                    device.kill()
                    return
                self._all.append(device)
            try:
                device.begin()
                self._check_kind(device)
                self._check_pace(device)
            except (DeviceLostError, WorkerDiedError, TimeoutError) as error:
                self._why = str(error)
                self._forget(device)
                self._closed.wait(_RESTART_S)
            except _TooSlowError as error:
                self._say(str(error))
                self._recover(device)
                return
            except AdaExploreError as error:
                self._forget(device)
                with self._changed:
                    self._trouble, self._coming = error, self._coming - 1
                    self._changed.notify_all()
                return
            else:
                self._join(device)
                return

    def _recover(self, device: Remote) -> None:
        """Try a device that was too slow again, until it is not."""
        while not self._closed.wait(self._rest_s):
            try:
                self._check_pace(device)
            except _TooSlowError:
                continue
            except DeviceLostError:
                self._forget(device)
                self._bring()
            else:
                self._join(device)
            return

    def _join(self, device: Remote) -> None:
        with self._changed:
            self._coming -= 1
            if not self._closed.is_set():
                self._taken[device] = self._resting.pop(device, 0)
            self._changed.notify_all()

    def _forget(self, device: Remote) -> None:
        with self._changed:
            if device in self._all:
                self._all.remove(device)
            self._resting.pop(device, None)
        device.kill()

    def _check_kind(self, device: Remote) -> None:
        """Raise `BadInputError` for a device whose times cannot be compared with the others'."""
        with self._changed:
            self._kind = self._kind or device.kind
        if device.kind != self._kind:
            raise BadInputError(
                f"{device.name} is a {device.kind}, and this search is on {self._kind}; name a "
                "kind with --set ray_kind"
            )

    def _check_pace(self, device: Remote) -> None:
        for pause_s in _PAUSES_S:
            time.sleep(pause_s)
            time_us = device.canary_us()
            longest_us = self._cluster.longest_us(device.kind, device.id, time_us)
            if time_us <= longest_us:
                return
        raise _TooSlowError(
            f"{device.name} is too slow and times nothing until that ends: its canary took "
            f"{time_us:.0f} us, and {longest_us:.0f} us are the most for it ({device.kind})"
        )

    def _in_background(self, work: Callable[[], None]) -> None:
        threading.Thread(target=work, daemon=True).start()


class _TooSlowError(Exception):
    """A device whose canary takes too long."""
