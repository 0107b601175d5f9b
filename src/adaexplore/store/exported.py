"""Export of a run as one small file: the rows of its database as compressed JSON."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, StaticPool, create_engine, insert, select
from sqlalchemy.exc import SQLAlchemyError

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.store import RunRecord
from adaexplore.store import schema
from adaexplore.store.sql import SqlStore
from adaexplore.store.sqlite import sqlite_engine

SUFFIX = ".json.xz"
"""Suffix of the names of exported runs."""


def memory_store(run: RunRecord) -> SqlStore:
    """Return a new run that is stored in memory only."""
    return SqlStore.create(_memory_engine(), Path("memory"), run)


_Rows = dict[str, list[dict[str, Any]]]


def export_run(database: Path, target: Path, *, problem: bool = True) -> None:
    """Export the run in a database file; the same run gives the same bytes.

    With `problem=False` the file leaves out the problem's source, the prompts that quote it and the
    command that names it, for users whose source is confidential. Replies of models and their
    candidates stay in. Raises `BadInputError` if `target` cannot be written.
    """
    engine = sqlite_engine(database, "read")
    try:
        with engine.begin() as connection:
            rows: _Rows = {
                table.name: [dict(row._mapping) for row in connection.execute(select(table))]
                for table in schema.metadata.sorted_tables
            }
    finally:
        engine.dispose()
    if not problem:
        _redact_problem(rows)
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    try:
        target.write_bytes(lzma.compress(text.encode()))
    except OSError as error:
        raise BadInputError(f"{target}: cannot be written: {error.strerror}") from None


def _redact_problem(rows: _Rows) -> None:
    for run in rows["run"]:
        run["problem"] |= {"source": ""}
        run["command"] = ""
    for node in rows["nodes"]:
        node["prompt"] = ""
    for call in rows["calls"]:
        call["messages"] = []
    for ask in rows["asks"]:
        if ask["proposal"]:
            ask["proposal"] |= {"prompt": ""}


def read_exported(path: Path) -> SqlStore:
    """Load a run that `export_run` wrote into memory; raise `BadInputError` for any other file."""
    engine = _memory_engine()
    try:
        rows = json.loads(lzma.decompress(path.read_bytes()).decode())
        with engine.begin() as connection:
            schema.metadata.create_all(connection)
            for table in schema.metadata.sorted_tables:
                if rows.get(table.name):
                    connection.execute(insert(table), rows[table.name])
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read: {error.strerror}") from None
    except (lzma.LZMAError, ValueError, AttributeError, TypeError, SQLAlchemyError) as error:
        raise BadInputError(
            f"{path} is not an exported run; export one with: adaexplore export RUN -o FILE{SUFFIX}"
        ) from error
    return SqlStore.open(engine, path)


def _memory_engine() -> Engine:
    """Return an empty database; its one connection serves all threads."""
    return create_engine(
        "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
    )
