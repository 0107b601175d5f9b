"""Older databases of runs, brought to today's tables by Alembic."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from sqlalchemy import Connection, Engine, StaticPool, create_engine, func, inspect, select

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.store import FORMAT_VERSION
from adaexplore.store import schema
from adaexplore.store.postgres import LOCK_TABLES

_SCRIPTS = Path(__file__).parent / "migrations"
_ALEMBIC = threading.Lock()  # its scripts find their database in a variable of the process


def create_tables(connection: Connection) -> None:
    """Create the tables that are missing; several processes may do so at the same time."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(LOCK_TABLES)
    if not inspect(connection).has_table(schema.run.name):
        schema.metadata.create_all(connection)
        connection.execute(schema.version.insert().values(version_num=str(FORMAT_VERSION)))
    elif (format_of(connection) or FORMAT_VERSION) < FORMAT_VERSION:
        upgrade(connection)


def format_of(connection: Connection) -> int | None:
    """Return the format of a database's runs, None for one without runs."""
    if not inspect(connection).has_table(schema.run.name):
        return None
    return connection.execute(select(func.max(schema.run.c.format_version))).scalar()


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Migrate the tables up to a revision, within the connection's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    with _ALEMBIC:
        if format_of(connection) == 1 and not inspect(connection).has_table(schema.version.name):
            command.stamp(config, "1")  # the first releases had no Alembic
        command.upgrade(config, revision)


def current(engine: Engine, place: Path) -> Engine:
    """Return an engine on the same runs in today's format.

    An older database is migrated where it may be written; where it is only read, a file of SQLite
    is copied into memory first. Raises `BadInputError` for a database without runs, for one of a
    newer release, and for an older one of PostgreSQL that is only read.
    """
    with engine.begin() as connection:
        found = format_of(connection)
        if found is None:
            raise BadInputError(
                f"{place} holds no run: its creation was interrupted, or its database is another; "
                "start again in another folder"
            )
        if found > FORMAT_VERSION:
            raise BadInputError(
                f"{place} is in run format {found}, this adaexplore reads up to {FORMAT_VERSION}; "
                "upgrade it with: pip install --upgrade adaexplore"
            )
        if found == FORMAT_VERSION:
            return engine
        if engine.get_execution_options()["mode"] != "read":
            create_tables(connection)
            return engine
        if engine.dialect.name != "sqlite":
            raise BadInputError(
                f"{place} is in run format {found} and only read here; a command that writes to "
                "its database, such as adaexplore resume, migrates it"
            )
        source = connection.connection.driver_connection
        assert isinstance(source, sqlite3.Connection)
        copy = memory_engine()
        with copy.connect() as target:
            memory = target.connection.driver_connection
            assert isinstance(memory, sqlite3.Connection)
            source.backup(memory)
    engine.dispose()
    with copy.begin() as connection:
        upgrade(connection)
    return copy


def memory_engine() -> Engine:
    """Return an empty database of SQLite in memory; its one connection serves all threads."""
    return create_engine(
        "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
    )
