"""A line on the terminal while another program has the device."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from adaexplore.report.text import one_line
from adaexplore.sandbox.family import family
from adaexplore.sandbox.lock import holders

_LOOK_S = 2.0
_LONGEST = 60


class DeviceWatch:
    """Tells once of each other program that has a device while no process of ours has it.

    Only of those that have it at two looks in a row: timings of others are short.
    """

    def __init__(self, device: str, tell: Callable[[str], None]) -> None:
        self._device = device
        self._tell = tell
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Tell nothing more."""
        self._over.set()

    def _watch(self) -> None:
        before: set[int] = set()
        told: set[int] = set()
        while not self._over.wait(_LOOK_S):
            found = holders(self._device)
            others = set() if found.intersection(family(os.getpid())) else found
            for pid in sorted((others & before) - told):
                self._tell(f"waiting for {self._device}: {_in_words(pid)} has it")
                told.add(pid)
            before = others


def _in_words(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        words = []
    command = one_line(" ".join(words), _LONGEST)
    return f"process {pid} ({command})" if command else f"process {pid}"
