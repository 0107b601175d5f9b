"""The times of the canary on the devices of a cluster, and the judgement of a new one."""

from __future__ import annotations

from statistics import median_low

TOLERANCE = 1.3
"""A device that takes this many times as long as it should is too slow to time anything."""


class KnownTimes:
    """The best time of the canary on each device, by kind; it outlives the searches of a cluster.

    A device should be as fast as it was at its best, and as the median device of its kind.
    """

    def __init__(self) -> None:
        self._best_us: dict[str, dict[str, float]] = {}

    def note(self, kind: str, device: str, time_us: float) -> float:
        """Take a time of a device; return the longest that this device may take."""
        best_us = self._best_us.setdefault(kind, {})
        best_us[device] = min(time_us, best_us.get(device, time_us))
        return TOLERANCE * min(best_us[device], median_low(best_us.values()))
