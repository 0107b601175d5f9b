"""Which processes write runs, as readers see it without a lock of their own."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from adaexplore.core.errors import BadInputError
from adaexplore.store.directory import URL_NAME, holder_of, read_url
from adaexplore.store.postgres import names_of_holders, pid_here

_LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class Holder:
    """Process that writes a run; `pid` is None for one that this process cannot signal."""

    name: str
    pid: int | None


class Holders:
    """The processes that write runs; asks a database at most once a second. Thread-safe."""

    def __init__(self) -> None:
        self._asking = threading.Lock()
        self._known: dict[str, tuple[float, dict[int, str]]] = {}

    def of(self, path: Path) -> Holder | None:
        """Return the process that writes the run or campaign in a folder; None where none does.

        A run in files has none that is seen where the process is of another container or machine,
        and a run in a database none while the database cannot be reached.
        """
        if not (path / URL_NAME).is_file():
            pid = holder_of(path)
            return None if pid is None else Holder(f"process {pid}", pid)
        try:
            url, run_id = read_url(path / URL_NAME)
            name = self._names(url).get(run_id)
        except (BadInputError, DBAPIError):
            return None
        return None if name is None else Holder(name, pid_here(name))

    def _names(self, url: str) -> dict[int, str]:
        with self._asking:
            at, names = self._known.get(url, (-_LOOK_S, {}))
            if time.monotonic() - at > _LOOK_S:
                names = names_of_holders(url)
                self._known[url] = time.monotonic(), names
            return names
