"""Export of a run as one small file: the rows of its database as compressed JSON."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, Table, insert, select
from sqlalchemy.exc import SQLAlchemyError

from adaexplore.core.errors import BadInputError
from adaexplore.core.files import write_whole
from adaexplore.core.protocols.store import FORMAT_VERSION, RunRecord, Store
from adaexplore.store import schema
from adaexplore.store.migrate import create_tables, memory_engine
from adaexplore.store.sql import SqlStore

SUFFIX = ".json.xz"
"""Suffix of the names of exported runs."""


def memory_store(run: RunRecord) -> SqlStore:
    """Return a new run that is stored in memory only."""
    return SqlStore.create(memory_engine(), Path("memory"), run)


_Rows = dict[str, list[dict[str, Any]]]


def export_run(store: Store, target: Path, *, problem: bool = True) -> None:
    """Export a run; the same run gives the same bytes.

    With `problem=False` the file leaves out the problem's source, the prompts that quote it and the
    command that names it, for users whose source is confidential. Replies of models and their
    candidates stay in. Raises `BadInputError` if `target` cannot be written.
    """
    assert isinstance(store, SqlStore)  # a run in a folder is
    with store.engine.begin() as connection:
        rows: _Rows = {
            table.name: [dict(row._mapping) for row in connection.execute(_of_run(table, store))]
            for table in schema.RECORDS
        }
    for row in (row for found in rows.values() for row in found):
        del row["run_id"]
    if not problem:
        _redact_problem(rows)
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    write_whole(target, lzma.compress(text.encode()))


def _of_run(table: Table, store: SqlStore) -> Select[Any]:
    return select(table).where(table.c.run_id == store.run_id).order_by(*table.primary_key)


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


def _require_whole(connection: Connection, rows: _Rows) -> None:
    """Raise `LookupError` for a table that is missing, and records that others refer to."""
    if any(not isinstance(rows[name], list) for name in ("candidates", "nodes")):
        raise LookupError("a table is missing")
    if connection.exec_driver_sql("PRAGMA foreign_key_check").first():
        raise LookupError("a record that another refers to is missing")


def read_exported(path: Path) -> SqlStore:
    """Load a run that `export_run` wrote into memory; raise `BadInputError` for any other file."""
    engine = memory_engine()
    try:
        rows = json.loads(lzma.decompress(path.read_bytes()).decode())
        with engine.begin() as connection:
            create_tables(connection)
            (run,), (_,) = rows["run"], rows["plan"]  # one row each
            # The form of the rows has not changed since format 1.
            run["format_version"] = max(run["format_version"], FORMAT_VERSION)
            for table in schema.RECORDS:
                if rows.get(table.name):
                    connection.execute(insert(table), rows[table.name])
            _require_whole(connection, rows)
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read: {error.strerror}") from None
    except (
        lzma.LZMAError,
        LookupError,
        ValueError,
        AttributeError,
        TypeError,
        SQLAlchemyError,
    ) as error:
        raise BadInputError(
            f"{path} is not an exported run; export one with: adaexplore export RUN -o FILE{SUFFIX}"
        ) from error
    return SqlStore.open(engine, path)
