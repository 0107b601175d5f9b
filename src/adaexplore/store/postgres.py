"""PostgreSQL for runs: opening a database by its URL, holding a run, and explaining errors."""

from __future__ import annotations

import os
import platform
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError

from adaexplore.core.errors import BadInputError, RunInUseError
from adaexplore.store.failures import Mode, StorageFailure

_LOCKS = 0x41445845
"""The first key of this package's advisory locks; the second is the id of a run, or one below."""
_TABLES = 0
_SERVICE = -1
_HOLDERS = f"""
    SELECT objid, application_name FROM pg_locks LEFT JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND classid = {_LOCKS} AND objsubid = 2 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_MOST_NAME = 63  # bytes that PostgreSQL keeps of a name
UNREACHABLE = StorageFailure(
    "the database cannot be reached", "start it, or check its URL, PGPASSWORD and ~/.pgpass"
)
_FAILURES = {
    "25006": StorageFailure("read only", "connect to the primary as a user who may write"),
    "42501": StorageFailure("permission denied", "grant the user the rights on the database"),
    "53100": StorageFailure("disk full", "free some space on the database's machine"),
    "53300": StorageFailure("too many connections", "raise max_connections, or end some"),
    "58030": StorageFailure("disk error", "check the disk of the database's machine"),
}
_GONE = ("08", "57", "28", "3D")  # connection, shutdown, login, no such database


def postgres_engine(url: str, mode: Mode, *, serial: bool = False) -> Engine:
    """Return an engine on a database; it connects on first use.

    A password comes from PGPASSWORD or ~/.pgpass, as for every client of libpq. A commit is on the
    disk when it returns, and a reader sees one state of the database through each of its calls.
    Writing has one connection, which `hold_run` makes the holder of the run. With `serial`, each
    statement sees what was committed before it, for callers who take locks within a transaction,
    and a connection that was lost is made anew.
    """
    if find_spec("psycopg") is None:
        raise BadInputError(
            f"{url}: psycopg cannot be imported; pip install 'adaexplore[postgresql]'"
        )
    pool: dict[str, Any] = {} if mode == "read" else {"pool_size": 1, "max_overflow": 0}
    engine = create_engine(
        make_url(url).set(drivername="postgresql+psycopg"),
        isolation_level="READ COMMITTED" if serial else "REPEATABLE READ",
        pool_pre_ping=serial,
        execution_options={"mode": mode, "postgresql_readonly": mode == "read"},
        connect_args={"connect_timeout": 10, "application_name": _name(os.getpid())},
        **pool,
    )

    @event.listens_for(engine, "connect")
    def be_durable(connection: Any, _: object) -> None:
        _run(connection, "SET synchronous_commit = on")

    return engine


def hold_run(engine: Engine, run_id: int, place: Path) -> None:
    """Make every new connection of an engine hold a run against other writers.

    The server releases the run when the connection ends, however the process ends. A connection
    that is lost and made anew raises `RunInUseError` if another process has taken the run since.
    """

    _hold_from_now_on(engine, run_id, place)
    engine.dispose()  # a connection that was made before does not hold it


def hold_new_run(engine: Engine, connection: Connection, run_id: int, place: Path) -> None:
    """Hold a run that no other process knows yet, in the only connection of its engine."""
    _hold_from_now_on(engine, run_id, place)
    connection.exec_driver_sql(_hold_statement(run_id))


def _hold_from_now_on(engine: Engine, run_id: int, place: Path) -> None:
    @event.listens_for(engine, "connect")
    def hold(connection: Any, _: object) -> None:
        if not _run(connection, _hold_statement(run_id)):
            raise RunInUseError(f"run directory {place} is in use by another process")


def _hold_statement(run_id: int) -> str:
    return f"SELECT pg_try_advisory_lock({_LOCKS}, {run_id})"


def hold_service(engine: Engine, url: str) -> None:
    """Make every new connection of an engine hold the database against other services.

    Raises `RunInUseError` where another service holds it, as `hold_run` does.
    """

    @event.listens_for(engine, "connect")
    def hold(connection: Any, _: object) -> None:
        if not _run(connection, f"SELECT pg_try_advisory_lock({_LOCKS}, {_SERVICE})"):
            raise RunInUseError(f"{url}: another service uses this database")

    engine.dispose()
    engine.connect().close()


def names_of_holders(url: str) -> dict[int, str]:
    """Return the names of the connections that hold runs of a database, by the runs' ids.

    Raises `BadInputError` as `postgres_engine` does, and `DBAPIError` for a database that cannot be
    reached.
    """
    engine = postgres_engine(url, "read")
    try:
        with engine.connect() as connection:
            found = connection.exec_driver_sql(_HOLDERS).all()
    finally:
        engine.dispose()
    return {run_id: name or "" for run_id, name in found}


def pid_here(name: str) -> int | None:
    """Return the process behind the name of a connection; None where this process sees none."""
    pid = name.removeprefix("adaexplore ").partition(" ")[0]
    return int(pid) if pid.isdecimal() and name == _name(int(pid)) else None


def _name(pid: int) -> str:
    """Return the name of a process's connections, which tells its machine, or its container."""
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    return f"adaexplore {pid} of {platform.node()}, {namespace}"[:_MOST_NAME]


def _run(connection: Any, statement: str) -> Any:
    """Run one statement as a transaction on a connection of the driver; return its first value."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        found = cursor.fetchone()[0] if cursor.description else None
    connection.commit()
    return found


LOCK_TABLES = f"SELECT pg_advisory_xact_lock({_LOCKS}, {_TABLES})"
"""Statement that makes others wait who would create or migrate tables in this database."""


def explain(error: DBAPIError) -> StorageFailure | None:
    """Return the storage failure behind an error; None for a mistake of the caller."""
    state: str | None = getattr(error.orig, "sqlstate", None)
    if state in _FAILURES:
        return _FAILURES[state]
    lost = error.connection_invalidated or type(error.orig).__name__ == "OperationalError"
    return UNREACHABLE if (lost if state is None else state[:2] in _GONE) else None
