"""SQLite for runs: opening a database, and explaining its errors."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from pathlib import Path

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.exc import DBAPIError

from adaexplore.store.failures import Mode, StorageFailure

_LOG_S = 5.0
_DAMAGED = StorageFailure(
    "run.db is damaged",
    "restore it from a copy, or salvage what is left with: sqlite3 run.db .recover",
    intact=False,
)
_HELD = StorageFailure("another program holds run.db", "close that program")
_FAILURES = {
    sqlite3.SQLITE_FULL: StorageFailure("disk full", "free some space"),
    sqlite3.SQLITE_IOERR: StorageFailure("disk error", "check the disk and its quota"),
    sqlite3.SQLITE_READONLY: StorageFailure("read only", "make the directory writable"),
    sqlite3.SQLITE_CANTOPEN: StorageFailure("run.db cannot be opened", "check the permissions"),
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_BUSY: _HELD,
    sqlite3.SQLITE_LOCKED: _HELD,
}


def sqlite_engine(path: Path, mode: Mode) -> Engine:
    """Return an engine on the database file `path`, which is created in mode "create" only.

    Writing uses a write-ahead log, so that readers and the writer never wait for each other, and
    syncs it at every commit, so that a commit survives a power cut. The file is opened on first
    use.
    """
    engine = create_engine(
        "sqlite://",
        creator=lambda: _connect(path, mode),
        poolclass=QueuePool,
        pool_size=1,
        execution_options={"mode": mode},
    )

    # Transactions are explicit, because those of the driver would leave out CREATE TABLE.
    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN" if mode == "read" else "BEGIN IMMEDIATE")

    return engine


def explain(error: DBAPIError | json.JSONDecodeError) -> StorageFailure | None:
    """Return the storage failure behind an error; None for a mistake of the caller."""
    if isinstance(error, json.JSONDecodeError):
        return _DAMAGED  # a JSON column no longer holds JSON
    return _FAILURES.get(_code(error)) if isinstance(error.orig, sqlite3.Error) else None


def is_no_database(error: DBAPIError) -> bool:
    """Return True for the error of a file that is no database of SQLite."""
    return _code(error) == sqlite3.SQLITE_NOTADB


def _code(error: DBAPIError) -> int:
    code: int = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF  # the upper bits say where
    return code


def _connect(path: Path, mode: Mode) -> sqlite3.Connection:
    query = {"create": "mode=rwc", "write": "mode=rw", "read": _read_query(path)}[mode]
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{query}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("PRAGMA foreign_keys = ON")
    if mode != "read":
        begin_log(connection)
        connection.execute("PRAGMA synchronous = FULL")
    return connection


def begin_log(connection: sqlite3.Connection) -> None:
    """Write ahead; wait where another has just made the file: SQLite's own timeout does not."""
    deadline = time.monotonic() + _LOG_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def _read_query(path: Path) -> str:
    # Even a reader of a write-ahead log needs a small file beside it. On a read-only file system, a
    # run that was closed in order has no log and is read as an immutable file.
    log = path.with_name(path.name + "-wal")
    immutable = not os.access(path.parent, os.W_OK) and not log.exists()
    return "mode=ro&immutable=1" if immutable else "mode=ro"
