"""Verdicts that runs share, in a table of SQLite or PostgreSQL.

The table holds hashes and verdicts, and no candidate's source but for the lines that a failure
quotes. It is never migrated: another form of it is another table, whose name has another number.
"""

from __future__ import annotations

import json
import logging
import shlex
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Float,
    Index,
    MetaData,
    Table,
    delete,
    func,
    inspect,
    select,
)
from sqlalchemy.dialects import postgresql as for_postgresql
from sqlalchemy.dialects import sqlite as for_sqlite
from sqlalchemy.exc import DBAPIError

from adaexplore.core.errors import BadInputError
from adaexplore.core.verdict.evaluation import Evaluation, TakenOver
from adaexplore.core.verdict.evaluation_json import evaluation_from_json, evaluation_to_json
from adaexplore.store import postgres, sqlite
from adaexplore.store.column_types import Json, Words
from adaexplore.store.failures import Mode
from adaexplore.store.sql import failure_of

MOST_VERDICTS = 20_000
"""Verdicts that a cache holds, the latest; some 10 kB each."""
MOST_DAYS = 90.0
"""Age at which a verdict is forgotten."""

_Result = TypeVar("_Result")
log = logging.getLogger(__name__)
_INSERTS: dict[str, Any] = {"sqlite": for_sqlite.insert, "postgresql": for_postgresql.insert}
_DAY_S = 86_400.0
_TRIM_EVERY = 100
_metadata = MetaData()
_verdicts = Table(
    "verdicts_1",
    _metadata,
    Column("key", Words, primary_key=True),
    Column("at", Float, nullable=False),
    Column("machine", Words, nullable=False),
    Column("evaluation", Json, nullable=False),
    Index("verdicts_1_by_age", "at"),
)


@dataclass(frozen=True, slots=True)
class CacheSize:
    """The content of a cache; times in seconds since the epoch, None where it is empty."""

    verdicts: int
    oldest: float | None
    latest: float | None
    machines: dict[str, int]


class SqlVerdicts:
    """`SharedVerdicts` in a database; made by `open_verdicts`."""

    def __init__(self, engine: Engine, *, place: str = "", most: int = MOST_VERDICTS) -> None:
        self._engine = engine
        self._place = place
        self._most = most
        self._kept = 0
        self._is_lost = False

    def find(self, key: str) -> Evaluation | None:
        """See `SharedVerdicts.find`."""
        since = time.time() - MOST_DAYS * _DAY_S
        which = select(_verdicts).where(_verdicts.c.key == key, _verdicts.c.at >= since)
        row = self._unless_lost(lambda connection: connection.execute(which).first())
        if row is None:
            return None
        origin = TakenOver(row.machine, row.at)
        return replace(evaluation_from_json(row.evaluation), taken_over=origin)

    def keep(self, key: str, evaluation: Evaluation) -> None:
        """See `SharedVerdicts.keep`."""
        self._unless_lost(lambda connection: self._insert(connection, key, evaluation))

    def clear(self, older_than_s: float = 0.0) -> int:
        """Forget the verdicts that are this old; return their number."""
        with _explained(self._engine, self._place), self._engine.begin() as connection:
            old = delete(_verdicts).where(_verdicts.c.at <= time.time() - older_than_s)
            return connection.execute(old).rowcount

    def size(self) -> CacheSize:
        """Describe the content."""
        at, machine = _verdicts.c.at, _verdicts.c.machine
        with _explained(self._engine, self._place), self._engine.begin() as connection:
            whole = select(func.count(), func.min(at), func.max(at))
            count, oldest, latest = connection.execute(whole).one()
            counted = select(machine, func.count()).group_by(machine).order_by(machine)
            machines = {row[0]: row[1] for row in connection.execute(counted)}
        return CacheSize(count, oldest, latest, machines)

    def close(self) -> None:
        """See `SharedVerdicts.close`."""
        self._engine.dispose()

    def _insert(self, connection: Connection, key: str, evaluation: Evaluation) -> None:
        now = time.time()
        expired = _verdicts.c.at < now - MOST_DAYS * _DAY_S
        connection.execute(delete(_verdicts).where(_verdicts.c.key == key, expired))
        insert = _INSERTS[connection.dialect.name](_verdicts).values(
            key=key,
            at=now,
            machine=socket.gethostname(),
            evaluation=evaluation_to_json(evaluation),
        )
        connection.execute(insert.on_conflict_do_nothing())
        if self._kept % _TRIM_EVERY == 0:
            connection.execute(delete(_verdicts).where(expired))
            self._trim(connection)
        self._kept += 1

    def _trim(self, connection: Connection) -> None:
        """Forget all but the latest."""
        at = _verdicts.c.at
        beyond = select(at).order_by(at.desc()).limit(1).offset(self._most)
        last = connection.execute(beyond).scalar()
        if last is not None:
            connection.execute(delete(_verdicts).where(at <= last))

    def _unless_lost(self, work: Callable[[Connection], _Result]) -> _Result | None:
        """Do work in a transaction; None once the database has failed: a run goes on without it."""
        if self._is_lost:
            return None
        try:
            with self._engine.begin() as connection:
                return work(connection)
        except (DBAPIError, json.JSONDecodeError) as error:
            failure = failure_of(error, self._engine)
            if failure is None:
                raise
            self._is_lost = True
            why = failure.problem.replace("run.db", "it")
            log.warning("the evaluation cache is not used any more: %s", why)
            return None


def open_verdicts(place: str, mode: Mode = "create") -> SqlVerdicts:
    """Open the cache in a file, or at the URL of a PostgreSQL database.

    Raises `BadInputError` for a place that cannot be used, and, unless `mode` is "create", for one
    without a cache. With "read" a file stays as it is.
    """
    engine = _engine(place, mode)
    with _explained(engine, place), engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(postgres.LOCK_TABLES)
        if not inspect(connection).has_table(_verdicts.name):
            if mode != "create":
                raise BadInputError(f"{place} is no evaluation cache; name another place")
            _metadata.create_all(connection)
    return SqlVerdicts(engine, place=place)


def _engine(place: str, mode: Mode) -> Engine:
    if "://" in place:
        return postgres.postgres_engine(place, "create", serial=True)
    file = Path(place)
    if file.is_dir():
        raise BadInputError(f"the evaluation cache {place}: is a directory; name a file")
    if mode != "create" and not file.exists():
        raise BadInputError(f"{place}: no such cache; a command with --evaluation-cache makes one")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"the evaluation cache {place}: {error.strerror}") from error
    return sqlite.sqlite_engine(file, mode)


@contextmanager
def _explained(engine: Engine, place: str) -> Iterator[None]:
    """Raise `BadInputError` with one line in place of the database's own error."""
    try:
        yield
    except DBAPIError as error:
        engine.dispose()
        if sqlite.is_no_database(error):
            raise BadInputError(f"{place} is no evaluation cache; name another file") from error
        failure = failure_of(error, engine)
        if failure is None:
            raise
        what = failure.problem.replace("run.db", "it")
        remedy = failure.remedy.replace("run.db", shlex.quote(place))
        raise BadInputError(f"the evaluation cache {place}: {what}; {remedy}") from error
