"""The tests that a benchmark itself makes of answers, run as untrusted code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from adaexplore.core import codec
from adaexplore.core.bench import BenchEntry, TheirVerdict
from adaexplore.run.api import read_source
from adaexplore.sandbox.jobs import run_job
from adaexplore.sandbox.lock import device_lock
from adaexplore.sandbox.process import ForkServer, WorkerDiedError
from adaexplore.sandbox.walls.limits import candidate_limits
from adaexplore.sandbox.watchdog import LimitExceededError

_RUN = "adaexplore.sandbox.user.script:run"


@dataclass(frozen=True)
class _Found:
    """What the job of a script says, in whose process the script may say anything."""

    why: str
    printed: str = ""


class OwnTests:
    """Runs the scripts of a folder's answers, and those of the benchmark's own functions.

    An answer is called where its script comes to its end, and right where it also prints what the
    script with the benchmark's own function prints. Scripts run confined as candidates are.
    """

    def __init__(self, folder: Path, timeout_s: float, memory_bytes: int) -> None:
        self._folder = folder
        self._timeout_s = timeout_s
        self._memory_bytes = memory_bytes
        self._golds: dict[tuple[str, str], _Found] = {}

    def tested(self, entry: BenchEntry, server: ForkServer, device: str) -> BenchEntry:
        """Return the entry with the verdict of its test; as it is where it has none to run."""
        if not entry.script or entry.theirs:
            return entry
        found = self._run(entry.script, server, device)
        if found.why:
            said = f"call failed: {found.why}"
            return replace(entry, theirs=TheirVerdict(said, right=False, called=False))
        gold = self._golds.get((entry.gold, device)) or self._run(entry.gold, server, device)
        self._golds[entry.gold, device] = gold
        if gold.why:
            said = f"called; their own function fails: {gold.why}"
            return replace(entry, theirs=TheirVerdict(said, right=False, called=True))
        same = found.printed == gold.printed
        said = "called, prints the same" if same else "called, prints something else"
        return replace(entry, theirs=TheirVerdict(said, right=same, called=True))

    def _run(self, name: str, server: ForkServer, device: str) -> _Found:
        on_gpu = device != "cpu"
        kind: Literal["cpu", "gpu"] = "gpu" if on_gpu else "cpu"
        source = read_source(self._folder / name)
        request = {"source": source, "name": Path(name).name, "on_gpu": on_gpu}
        limits = candidate_limits(self._memory_bytes, gpu=on_gpu)
        try:
            with device_lock(device, exclusive=False):
                found = run_job(
                    server, _RUN, request, self._timeout_s, limits=limits, confined=kind
                )
        except TimeoutError:
            return _Found(f"it took more than {self._timeout_s:g} s")
        except (WorkerDiedError, LimitExceededError) as error:
            return _Found(str(error))
        try:
            return codec.read(_Found, found)
        except codec.MalformedError:
            return _Found("its process sent a malformed reply")
