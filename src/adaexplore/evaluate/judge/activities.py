"""The time of an evaluation by what the candidate is doing."""

from __future__ import annotations

import re
import time

from adaexplore.core.verdict.evaluation import WAITING
from adaexplore.sandbox.lock import waited_s

_NAME = re.compile(r" '.*'")


class Activities:
    """The activities of one evaluation, one after another; waiting for the device is apart.

    Activities that differ in a quoted name alone, such as that of an input set, count as one.
    """

    def __init__(self, first: str) -> None:
        self.present = first
        self._took_s: dict[str, float] = {}
        self._since, self._waited_s = time.monotonic(), waited_s()

    def begin(self, activity: str) -> None:
        """End the present activity, and begin another."""
        self._took_s = self.took_s()
        self.present = activity
        self._since, self._waited_s = time.monotonic(), waited_s()

    def took_s(self) -> dict[str, float]:
        """Return the seconds of each activity so far, the present one included."""
        waited = waited_s() - self._waited_s
        found = dict(self._took_s)
        for what, seconds in (
            (_NAME.sub("", self.present), time.monotonic() - self._since - waited),
            (WAITING, waited),
        ):
            found[what] = found.get(what, 0.0) + seconds
        return found
