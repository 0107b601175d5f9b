"""Where the pages find runs and campaigns, and how they stop and continue them."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, Protocol

from adaexplore.core.ask import MANUAL
from adaexplore.core.errors import BadInputError, RunInUseError
from adaexplore.run.asks.ask_files import (
    WaitingPrompt,
    ledger_of,
    require_left,
    tell_text,
    waiting_prompts,
)
from adaexplore.run.session import INTERRUPTED
from adaexplore.store import RunDirectory, open_run, read_run
from adaexplore.store.campaign import MANIFEST_NAME, is_campaign
from adaexplore.store.directory import DATABASE_NAME, LOCK_NAME, URL_NAME, is_run
from adaexplore.store.holders import Holder, Holders

Kind = Literal["run", "campaign"]
_DEPTH = 6
_STUDY_DEPTH = 2  # a folder for each arm, and in it one for each problem
_LOOK_S = 1.0
_PATIENCE_S = 10.0
"""Time that an answer waits for a search that holds its run at that moment."""
_MOST_FOLDERS = 20_000
_FILES = (DATABASE_NAME, URL_NAME, LOCK_NAME, MANIFEST_NAME)


@dataclass(frozen=True, slots=True)
class Entry:
    """A run or a campaign that pages show.

    `key` stands for it in addresses: no address has a path. `name` is shown for its folder.
    `campaign` is the key of the campaign that a run belongs to, empty for others.
    """

    key: str
    path: Path
    name: str
    kind: Kind
    campaign: str = ""


class Shelf(Protocol):
    """The runs and campaigns that one reader may see, and what the reader may do with them."""

    may_ask: bool
    """True where the reader asks for prompts and for evaluations; elsewhere they come unasked."""

    resumable: Collection[str]
    """The states from which the reader may continue what does not wait for answers."""

    private: str
    """The folder whose place no page tells; empty where it is the reader's own."""

    def entries(self) -> Sequence[Entry]:
        """Return all runs and campaigns; the runs of a campaign follow it."""

    def state(self, entry: Entry) -> str:
        """Return "running", "starting", "queued" or how it ended; empty where its records tell."""

    def trouble(self, entry: Entry) -> str:
        """Return why it ended otherwise than it should, in one line; empty where it did not."""

    def stop(self, entry: Entry) -> None:
        """End it as Ctrl-C does; raise `BadInputError` where nothing runs."""

    def go_on(self, entry: Entry) -> None:
        """Continue it in a process of its own; raise `BadInputError` where that is impossible."""

    def prompts(self, entry: Entry) -> Sequence[WaitingPrompt]:
        """Return the prompts of a run that wait for an answer by the reader."""

    def ask(self, entry: Entry) -> None:
        """Take one more prompt; raise `BadInputError` where no step is left to ask for."""

    def tell(self, entry: Entry, ask_id: int, turn: int, reply: str) -> None:
        """Answer a prompt; raise `BadInputError` for one that does not wait."""


def find_entries(root: Path, name: str) -> Iterator[Entry]:
    """Yield the runs and campaigns in a folder, or the one that it is; links are not followed."""
    root = root.resolve()
    for visited, (folder, below, _) in enumerate(os.walk(root, followlinks=False)):
        path = Path(folder)
        inner = path.relative_to(root)
        if visited >= _MOST_FOLDERS:
            return
        here = Path(name) / inner
        if is_campaign(path) and _is_whole(path):
            below.clear()
            yield from _campaign(path, here)
        elif is_run(path) and _is_whole(path):
            below.clear()
            yield entry_of(path, str(here), "run")
        below[:] = sorted(each for each in below if not each.startswith("."))
        if len(inner.parts) >= _DEPTH:
            below.clear()


def _campaign(path: Path, name: Path) -> Iterator[Entry]:
    campaign = entry_of(path, str(name), "campaign")
    yield campaign
    for folder, below, _ in os.walk(path, followlinks=False):
        run = Path(folder)
        inner = run.relative_to(path)
        below.sort()
        if is_run(run) and _is_whole(run):
            below.clear()
            yield entry_of(run, str(name / inner), "run", campaign.key)
        elif len(inner.parts) >= _STUDY_DEPTH:
            below.clear()


def _is_whole(path: Path) -> bool:
    """Return False for a folder whose records are links to other places."""
    return not any((path / name).is_symlink() for name in _FILES)


def entry_of(path: Path, name: str, kind: Kind, campaign: str = "") -> Entry:
    """Return the entry of a folder, which may not be there yet."""
    return Entry(_key(path), path, name, kind, campaign)


def _key(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def _ignores_interrupts(pid: int) -> bool:
    """Return True for a process that began with SIGINT ignored, as shells do for `command &`."""
    status = Path(f"/proc/{pid}/status").read_text("ascii", errors="replace")
    masks = [line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:")]
    return bool(masks) and bool(int(masks[0], 16) >> (signal.SIGINT - 1) & 1)


@dataclass(slots=True)
class _Started:
    process: subprocess.Popen[bytes]
    log: IO[bytes]


def _opened(path: Path) -> RunDirectory:
    """Open a run; wait for a search that evaluates in it, for a short while."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return open_run(path)
        except RunInUseError:
            if time.monotonic() > until:
                raise BadInputError(
                    "a search is at work in this run and takes no answer meanwhile; send it again "
                    "in a moment, or stop the search"
                ) from None
            time.sleep(0.2)


class FolderShelf:
    """The runs and campaigns in some folders of the reader's own.

    Searches that are continued outlive this process, as if begun in another terminal.
    """

    may_ask = True
    resumable: Collection[str] = ("stopped", "waiting")
    private = ""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._found: tuple[float, list[Entry]] = (0.0, [])
        self._started: dict[str, _Started] = {}
        self._starting = threading.Lock()
        self._holders = Holders()

    def entries(self) -> list[Entry]:
        """See `Shelf`."""
        now = time.monotonic()
        at, known = self._found
        if now - at > _LOOK_S:  # every page asks, some times a second
            found = (entry for each in self._folders for entry in find_entries(each, str(each)))
            known = list({entry.key: entry for entry in found}.values())
            self._found = now, known
        return known

    def state(self, entry: Entry) -> str:
        """See `Shelf`."""
        if self._holder(entry) is not None:
            return "running"
        started = self._started.get(entry.key)
        return "starting" if started and started.process.poll() is None else ""

    def trouble(self, entry: Entry) -> str:
        """See `Shelf`."""
        started = self._started.get(entry.key)
        status = started.process.poll() if started else None
        if started is None or status in (None, 0, INTERRUPTED):
            return ""
        started.log.seek(0)
        lines = started.log.read().decode(errors="replace").strip().splitlines()
        return f"it ended with exit code {status}: {lines[-1] if lines else 'it said nothing'}"

    def stop(self, entry: Entry) -> None:
        """See `Shelf`."""
        holder = self._holder(entry)
        if holder is None:
            raise BadInputError("nothing runs here that could be stopped")
        if holder.pid is None:
            raise BadInputError(f"it runs elsewhere ({holder.name}); stop it there")
        if _ignores_interrupts(holder.pid):
            raise BadInputError(
                f"{holder.name} began in the background of a script and ignores Ctrl-C; nothing "
                f"recorded is lost with: kill {holder.pid}"
            )
        os.kill(holder.pid, signal.SIGINT)

    def go_on(self, entry: Entry) -> None:
        """See `Shelf`."""
        with self._starting:
            if self.state(entry):
                raise BadInputError("it is at work already")
            log = tempfile.TemporaryFile()  # noqa: SIM115 - read once the process has ended
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "adaexplore", "resume", str(entry.path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C for the pages does not stop the search
            )
            self._started[entry.key] = _Started(process, log)

    def prompts(self, entry: Entry) -> list[WaitingPrompt]:
        """See `Shelf`."""
        with read_run(entry.path) as directory:
            return waiting_prompts(directory)

    def ask(self, entry: Entry) -> None:
        """See `Shelf`."""
        with _opened(entry.path) as directory:
            ledger = ledger_of(directory)
            require_left(ledger, directory, 1)
            ledger.prompt(MANUAL)

    def tell(self, entry: Entry, ask_id: int, turn: int, reply: str) -> None:
        """See `Shelf`."""
        with _opened(entry.path) as directory:
            tell_text(directory, ledger_of(directory), ask_id, turn, reply)

    def _holder(self, entry: Entry) -> Holder | None:
        """Return the process at work on an entry.

        Processes share a campaign in a database, where they hold its runs and not its folder.
        """
        runs = [each.path for each in self.entries() if each.campaign == entry.key]
        shared = [path for path in runs if (path / URL_NAME).is_file()]
        found = (self._holders.of(path) for path in [entry.path, *shared])
        return next((holder for holder in found if holder), None)
