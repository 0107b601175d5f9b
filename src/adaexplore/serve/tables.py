"""Tables of the service: tokens, jobs and their events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Engine,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    event,
)

from adaexplore.core.errors import BadInputError

FORMAT_VERSION = 1
"""Format number; rises with every change that an earlier release could not read."""

metadata = MetaData()
tokens = Table(
    "serve_tokens",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("user", String(64), nullable=False),
    Column("hash", String(64), nullable=False),  # SHA-256 of a secret of 256 bits
    Column("scopes", JSON, nullable=False),
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
    Column("id", String(32), nullable=False, unique=True),
    Column("user", String(64), nullable=False),
    Column("request_key", String(64)),
    Column("kind", String(16), nullable=False),
    Column("state", String(16), nullable=False, index=True),
    Column("problem", String(64), nullable=False),
    Column("candidates", Integer, nullable=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("cancelling", Boolean, nullable=False, default=False),
    Column("created_at", Float, nullable=False),
    Column("started_at", Float),
    Column("ended_at", Float),
    Column("error", Text, nullable=False, default=""),
    Column("files", JSON, nullable=False, default=list),
    Column("result", JSON, nullable=False, default=dict),
    UniqueConstraint("user", "request_key"),
    Index("serve_jobs_of_user", "user", "created_at"),
)
events = Table(
    "serve_events",
    metadata,
    Column("job", String(32), ForeignKey("serve_jobs.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("type", String(32), nullable=False),
    Column("text", Text, nullable=False),
    Column("problem", String(64), nullable=False),
    Column("data", JSON, nullable=False),
)


def open_folder(folder: Path) -> Engine:
    """Make the folder of a service if there is none, for its user alone; return its database."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "jobs").mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise BadInputError(f"{folder}: cannot be the service's folder: {error.strerror}") from None
    return open_tables(folder / "server.db")


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
        for pragma in ("foreign_keys = ON", "journal_mode = WAL", "synchronous = FULL"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    with engine.connect() as connection:
        found: int = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        if found > FORMAT_VERSION:
            raise BadInputError(
                f"{file} is in format {found}, this adaexplore reads up to {FORMAT_VERSION}; "
                "upgrade it with: pip install --upgrade adaexplore"
            )
        metadata.create_all(connection)
        connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT_VERSION}")
        connection.commit()
    return engine
