"""Tables of the service: tokens, jobs, their events and their prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Engine,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    UniqueConstraint,
    create_engine,
    event,
    insert,
    inspect,
    select,
)
from sqlalchemy.exc import DBAPIError

from adaexplore.core.errors import BadInputError
from adaexplore.store import postgres
from adaexplore.store.column_types import Json, Words
from adaexplore.store.sqlite import begin_log

FORMAT_VERSION = 1
"""Format number; rises with every change that an earlier release could not read."""

metadata = MetaData()
tokens = Table(
    "serve_tokens",
    metadata,
    Column("id", Words, primary_key=True),
    Column("user", Words, nullable=False),
    Column("hash", Words, nullable=False),  # SHA-256 of a secret of 256 bits
    Column("scopes", Json, nullable=False),
    Column("most_jobs", Integer, nullable=False),
    Column("most_candidates", Integer, nullable=False),
    Column("most_requests", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float),
)
jobs = Table(
    "serve_jobs",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("id", Words, nullable=False, unique=True),
    Column("user", Words, nullable=False),
    Column("request_key", Words),
    Column("kind", Words, nullable=False),
    Column("state", Words, nullable=False, index=True),
    Column("problem", Words, nullable=False),
    Column("candidates", Integer, nullable=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("cancelling", Boolean, nullable=False, default=False),
    Column("created_at", Float, nullable=False),
    Column("started_at", Float),
    Column("ended_at", Float),
    Column("error", Words, nullable=False, default=""),
    Column("files", Json, nullable=False, default=list),
    Column("result", Json, nullable=False, default=dict),
    UniqueConstraint("user", "request_key"),
    Index("serve_jobs_of_user", "user", "created_at"),
)
events = Table(
    "serve_events",
    metadata,
    Column("job", Words, ForeignKey("serve_jobs.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("type", Words, nullable=False),
    Column("text", Words, nullable=False),
    Column("problem", Words, nullable=False),
    Column("data", Json, nullable=False),
)
prompts = Table(
    "serve_prompts",
    metadata,
    Column("job", Words, ForeignKey("serve_jobs.id"), primary_key=True),
    Column("ask", Integer, primary_key=True, autoincrement=False),
    Column("turn", Integer, primary_key=True, autoincrement=False),
    Column("purpose", Words, nullable=False),
    Column("text", Words, nullable=False),
    Column("reply", Words),
    Column("taken", Boolean, nullable=False, default=False),  # the records of the search have it
)


_format = Table("serve_format", MetaData(), Column("version", Integer, nullable=False))
"""The format of the tables in PostgreSQL; a file of SQLite has a number of its own."""

FILE_NAME = "server.db"
URL_NAME = "server.url"
"""The file that has the URL of the service's database, where that is no file."""


def make_folder(folder: Path) -> None:
    """Make the folder of a service if there is none, for its user alone."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "jobs").mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise BadInputError(f"{folder}: cannot be the service's folder: {error.strerror}") from None


def open_folder(folder: Path, store: str = "", *, serving: bool = False) -> Engine:
    """Make the folder of a service if there is none; return its database.

    That is the PostgreSQL database `store` or the one that the folder names; else a file. What a
    file holds already is moved to `store`. With `serving`, hold the database against other
    services. Raises `BadInputError` for a folder or a database that cannot be used.
    """
    make_folder(folder)
    url = store_of(folder, store)
    if not url:
        return open_tables(folder / FILE_NAME)
    engine = open_database(url)
    if serving:
        postgres.hold_service(engine, url)
    _move(folder / FILE_NAME, engine)
    (folder / URL_NAME).write_text(f"{url}\n", encoding="utf-8")
    return engine


def store_of(folder: Path, given: str = "") -> str:
    """Return the URL of a service's database, empty for a file.

    Raises `BadInputError` for another than the folder names: its jobs would be lost.
    """
    file = folder / URL_NAME
    known = file.read_text(encoding="utf-8").strip() if file.is_file() else ""
    if given and known and given != known:
        raise BadInputError(f"--store {given}: the jobs of {folder} are in {known}; leave it out")
    return given or known


def open_database(url: str) -> Engine:
    """Open the service's tables in a PostgreSQL database; make them where there are none.

    Its transactions take turns in one connection, as in a file. Raises `BadInputError` as
    `open_tables` does, and for a database that cannot be reached.
    """
    engine = postgres.postgres_engine(url, "create", serial=True)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(postgres.LOCK_TABLES)
            if not inspect(connection).has_table(_format.name):
                _format.create(connection)
                connection.execute(insert(_format).values(version=FORMAT_VERSION))
            _require_format(url, connection.execute(select(_format.c.version)).scalar_one())
            metadata.create_all(connection)
    except DBAPIError as error:
        failure = postgres.explain(error)
        if failure is None:
            raise
        raise BadInputError(f"{url}: {failure.problem}; {failure.remedy}") from error
    return engine


def _move(file: Path, engine: Engine) -> None:
    """Move what a file of SQLite holds to another database; a kill repeats it without harm."""
    if not file.is_file():
        return
    old = open_tables(file)
    with old.begin() as source, engine.begin() as target:
        for table, key in ((tokens, "id"), (jobs, "id"), (events, "job"), (prompts, "job")):
            there = set(target.execute(select(table.c[key])).scalars())
            numbered = select(table).order_by(*table.primary_key.columns)
            for row in source.execute(numbered).mappings():
                if row[key] not in there:
                    target.execute(insert(table).values(_unnumbered(table, row)))
    old.dispose()
    file.rename(file.with_suffix(".db.moved"))


def _unnumbered(table: Table, row: Any) -> dict[str, Any]:
    """Return a row without the number that the database gives."""
    return {name: value for name, value in row.items() if (table, name) != (jobs, "number")}


def open_tables(file: Path) -> Engine:
    """Open the service's database, a file of SQLite; make it where there is none.

    One connection serves all threads in turn: a transaction takes a millisecond. Raises
    `BadInputError` for a database of a newer release.
    """
    engine = create_engine(
        f"sqlite:///{file}",
        pool_size=1,
        max_overflow=0,
        pool_timeout=60,
        connect_args={"check_same_thread": False, "timeout": 60},
    )

    @event.listens_for(engine, "connect")
    def settle(connection: Any, _: object) -> None:
        connection.isolation_level = None  # transactions are explicit, below
        connection.execute("PRAGMA foreign_keys = ON")
        begin_log(connection)
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    with engine.connect() as connection:
        _require_format(str(file), connection.exec_driver_sql("PRAGMA user_version").scalar_one())
        metadata.create_all(connection)
        connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT_VERSION}")
        connection.commit()
    return engine


def _require_format(place: str, found: int) -> None:
    if found > FORMAT_VERSION:
        raise BadInputError(
            f"{place} is in format {found}, this adaexplore reads up to {FORMAT_VERSION}; "
            "upgrade it with: pip install --upgrade adaexplore"
        )


def why_unreachable(error: DBAPIError) -> str:
    """Return the answer to a request without a database; raise an error of another kind."""
    if not is_unreachable(error):
        raise error
    return "the database cannot be reached now; try again"


def is_unreachable(error: DBAPIError) -> bool:
    """Return True for a PostgreSQL server that cannot be reached now."""
    return postgres.explain(error) is postgres.UNREACHABLE
