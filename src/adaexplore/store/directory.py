"""Run directory: the store, the files beside it, and the lock that admits one writer.

The store is the file `run.db`; or, where the configuration names a database, the file `run.url`
has its URL and the id of the run there.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

from sqlalchemy import Connection

from adaexplore.core.errors import BadInputError, RunInUseError
from adaexplore.core.files import can_make_folders
from adaexplore.core.protocols.store import RunRecord, Store
from adaexplore.store.exported import SUFFIX, read_exported
from adaexplore.store.failures import Mode
from adaexplore.store.postgres import hold_new_run, hold_run, postgres_engine
from adaexplore.store.published import is_published, published_runs, read_published
from adaexplore.store.schema import ONLY_RUN
from adaexplore.store.sql import SqlStore
from adaexplore.store.sqlite import sqlite_engine

DATABASE_NAME = "run.db"
URL_NAME = "run.url"
DRAFT_NAME = "run.url.new"
"""Name of that file until the run is in the database: what a kill leaves is undone by it."""
LOCK_NAME = "run.lock"
MODULE_NAME = "module"
"""The folder, in a run's folder, of a live module that was captured as the problem."""


class RunDirectory:
    """Open run, made by `create_run`, `open_run` or `read_run`, closed by `close` or `with`."""

    def __init__(self, path: Path, store: Store, resources: ExitStack) -> None:
        self.path = path
        self.store = store
        self._resources = resources

    @property
    def best_path(self) -> Path:
        """Path of the best candidate's source."""
        return self.path / "best.py"

    @property
    def report_path(self) -> Path:
        """Path of the report."""
        return self.path / "report.html"

    def close(self) -> None:
        """Close the store and release the lock; closing twice is allowed."""
        self._resources.close()

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def create_run(path: Path, run: RunRecord) -> RunDirectory:
    """Create the directory with a new run, open for writing.

    Raises `BadInputError` if `path` exists and is not an empty directory, or cannot be written.
    """
    require_free(path)
    with _os_errors(f"cannot create the run directory {path}"):
        path.mkdir(parents=True, exist_ok=True)
    with ExitStack() as resources:
        store = _create_store(path, run, resources)
        return RunDirectory(path, store, resources.pop_all())


def _create_store(path: Path, run: RunRecord, resources: ExitStack) -> Store:
    url = run.config.store
    if not url:
        resources.enter_context(hold_lock(path))
        engine = sqlite_engine(path / DATABASE_NAME, "create")
        resources.callback(engine.dispose)
        return SqlStore.create(engine, path, run)
    engine = postgres_engine(url, "create")
    resources.callback(engine.dispose)

    def announce(connection: Connection, run_id: int) -> None:
        hold_new_run(engine, connection, run_id, path)
        with _os_errors(f"cannot write in the run directory {path}"):
            (path / DRAFT_NAME).write_text(f"{url}#{run_id}\n", encoding="utf-8")

    store = SqlStore.create(engine, path, run, before_commit=announce)
    with _os_errors(f"cannot write in the run directory {path}"):
        (path / DRAFT_NAME).rename(path / URL_NAME)
    return store


def remove_unfinished(path: Path) -> None:
    """Remove the folder of a run that a kill kept from being made, and its rows.

    Raises `RunInUseError` where another process is making it.
    """
    _forget_rows(path / DRAFT_NAME)
    shutil.rmtree(path, ignore_errors=True)


def _forget_rows(pointer: Path) -> None:
    """Delete the run that a file points to from its database, and the file."""
    if not pointer.is_file():
        return
    if pointer.stat().st_size:  # else the kill came before it was written, and before the commit
        url, run_id = read_url(pointer)
        engine = postgres_engine(url, "write")
        hold_run(engine, run_id, pointer.parent)
        try:
            SqlStore(engine, pointer.parent, run_id).delete()
        finally:
            engine.dispose()
    pointer.unlink()


def require_free(path: Path) -> None:
    """Raise `BadInputError` unless a run can be made at `path`: a writable place without a run."""
    with _os_errors(f"cannot create the run directory {path}"):
        _forget_rows(path / DRAFT_NAME)
        if path.exists() and any(entry.name != MODULE_NAME for entry in path.iterdir()):
            raise BadInputError(
                f"{path} exists and is not empty; name another directory with --run, "
                "or continue the run in it with: adaexplore resume"
            )
        place = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
        if not can_make_folders(place):
            raise BadInputError(
                f"cannot create the run directory {path}: {place} is no folder that you may write "
                "to; name another directory with --run"
            )


def write_files(path: Path, files: Mapping[str, str]) -> None:
    """Write texts into a folder, each under its name, which may begin with folders."""
    for name, text in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def make_run(path: Path, record: RunRecord) -> None:
    """Create a run directory atomically, for `open_run`: a kill leaves no partial run.

    Remains of an earlier kill beside it are removed. Raises `BadInputError` as `create_run` does.
    """
    require_free(path)
    draft = path.with_name(f".{path.name}.new")
    _forget_rows(draft / URL_NAME)
    remove_unfinished(draft)
    create_run(draft, record).close()
    draft.rename(path)


def open_run(path: Path) -> RunDirectory:
    """Open a run for writing, exclusively.

    Raises `BadInputError` if `path` is not a run, is in use by another process, was written by a
    newer release, is damaged or cannot be written.
    """
    return _open(path, "write")


def read_run(path: Path) -> RunDirectory:
    """Open a run for reading, also while another process writes it.

    An exported run and a run or a released kernel of the published search will do.

    Raises `BadInputError` as `open_run` does, except for a run in use.
    """
    if path.is_file() and path.name.endswith(SUFFIX):
        return RunDirectory(path, read_exported(path), ExitStack())
    if not is_run(path) and is_published(path):
        return RunDirectory(path, read_published(path), ExitStack())
    return _open(path, "read")


def _open(path: Path, mode: Mode) -> RunDirectory:
    require_run(path)
    with ExitStack() as resources:
        if (path / URL_NAME).is_file():
            url, run_id = read_url(path / URL_NAME)
            engine = postgres_engine(url, mode)
            if mode == "write":
                hold_run(engine, run_id, path)
        else:
            if mode == "write":
                resources.enter_context(hold_lock(path))
            engine, run_id = sqlite_engine(path / DATABASE_NAME, mode), ONLY_RUN
        resources.callback(engine.dispose)
        store = SqlStore.open(engine, path, run_id)
        resources.callback(store.close)
        return RunDirectory(path, store, resources.pop_all())


def read_url(file: Path) -> tuple[str, int]:
    """Return the URL of a database and the id of a run in it; raise `BadInputError` for none."""
    with _os_errors(f"cannot read {file}"):
        text = file.read_bytes().decode(errors="replace").strip()
    url, _, run_id = text.rpartition("#")
    is_text = text.isprintable() and "\N{REPLACEMENT CHARACTER}" not in text
    if not (is_text and "://" in url and re.fullmatch("[0-9]{1,9}", run_id)):
        raise BadInputError(f"{file} is damaged: write URL#ID, of the database and of the run")
    return url, int(run_id)


def is_run(path: Path) -> bool:
    """Return True for the folder of a run."""
    return (path / DATABASE_NAME).is_file() or (path / URL_NAME).is_file()


def holds_run(path: Path) -> bool:
    """Return True for what `read_run` reads."""
    exported = path.is_file() and path.name.endswith(SUFFIX)
    return is_run(path) or exported or (path.exists() and is_published(path))


def require_run(path: Path) -> None:
    """Raise `BadInputError` for anything but the folder of a run, and say what to do."""
    if not path.is_dir():
        what = "is a file" if path.exists() else "does not exist"
        raise BadInputError(f"{path} is not a run directory: it {what}")
    if not is_run(path):
        if is_published(path):
            raise BadInputError(
                f"{path} is a run of the published search and is read only; begin one with its "
                f"kernels: adaexplore explore PROBLEM --start-from {path}"
            )
        if theirs := published_runs(path):
            raise BadInputError(
                f"{path} holds {len(theirs)} runs of the published search; name one, such as "
                f"{theirs[0]}"
            )
        below = next(
            (run for run in sorted(path.glob("*/")) + sorted(path.glob("*/*/")) if is_run(run)),
            None,
        )
        hint = f"; it holds runs: name one, such as {below}" if below else ""
        raise BadInputError(
            f"{path} is not a run directory: there is no {DATABASE_NAME} in it{hint}"
        )


@contextmanager
def hold_lock(path: Path, name: str = LOCK_NAME) -> Iterator[None]:
    """Lock a directory against writing by other processes.

    Raises `BadInputError` if another process holds the lock.
    """
    # flock belongs to the open file: the kernel releases it when the process ends, however it ends.
    # Programs that the process starts do not inherit the descriptor.
    with ExitStack() as resources:
        with _os_errors(f"cannot open the run directory {path} for writing"):
            descriptor = os.open(path / name, os.O_RDWR | os.O_CREAT, 0o644)
            resources.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(descriptor, 20, 0).decode() or "unknown"
                raise RunInUseError(
                    f"run directory {path} is in use by another process (pid {holder})"
                ) from None
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield


def holder_of(path: Path) -> int | None:
    """Return the process that holds the lock of a directory; None where nobody does.

    It takes no lock itself, which a process that starts at that moment would find taken. A process
    of another container or machine is not seen, nor is a process that holds a run in a database.
    """
    try:
        pid = (path / LOCK_NAME).read_text("ascii", errors="replace").strip()
        inode = (path / LOCK_NAME).stat().st_ino
        held = Path("/proc/locks").read_text("ascii").splitlines()
    except OSError:
        return None
    fields = [line.split() for line in held]  # 1: FLOCK ADVISORY WRITE <pid> <device>:<inode> ...
    found = any(f[1] == "FLOCK" and f[4] == pid and f[5].endswith(f":{inode}") for f in fields)
    return int(pid) if found else None


@contextmanager
def _os_errors(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BadInputError(f"{doing}: {error.strerror}") from error
