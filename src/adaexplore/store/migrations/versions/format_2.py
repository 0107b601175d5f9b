"""Format 2: every row names its run, so that a database can hold many."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Column

revision = "2"
down_revision = "1"

TABLES = {
    "run": "format_version:int package_version:text problem:json config:json proposers:json "
    "environment:json command:text created_at:float reference:json",
    "plan": "plan:json",
    "references": "first_ask:key facts:json",
    "candidates": "digest:name language:text source:text",
    "nodes": "id:key parent_id:int step_kind:text origin:text settings:json note:text prompt:text "
    "reply:text failure:text candidate:text evaluation:json started_at:float propose_s:float "
    "reused:bool ask_id:int?",
    "confirmations": "id:count node_id:int evaluation:json at:float",
    "repeats": "id:count node_id:int evaluation:json",
    "asks": "id:key parent_id:int step_kind:text seed:long pool:json window:json seen:int "
    "proposer:text opened_at:float state:text proposal:json?",
    "calls": "id:count ask_id:int label:text prompt_digest:text messages:json model:text text:text "
    "finish:text usage:json latency_s:float attempts:int at:float",
}
"""Columns by table, as name:kind, with `?` one that may be null. Before them comes `run_id`."""

REFERENCES = {
    "nodes": ("candidate", "candidates", "digest"),
    "confirmations": ("node_id", "nodes", "id"),
    "repeats": ("node_id", "nodes", "id"),
    "calls": ("ask_id", "asks", "id"),
}
"""Foreign keys beside that of `run_id`, by table: column, other table, its column."""

KINDS: dict[str, Any] = {
    **{"int": sa.Integer, "key": sa.Integer, "count": sa.Integer, "long": sa.BigInteger},
    **{"text": sa.Text, "json": sa.Text, "name": sa.Text, "float": sa.Float, "bool": sa.Boolean},
}


def upgrade() -> None:
    """Move the rows into new tables, as those of run 1."""
    for table in reversed(TABLES):
        op.execute(sa.text(f'CREATE TABLE "old_{table}" AS SELECT * FROM "{table}"'))
        op.drop_table(table)
    for table, columns in TABLES.items():
        _create(table, columns)
        names = ", ".join(f'"{column.partition(":")[0]}"' for column in columns.split())
        moved = f'INSERT INTO "{table}" (run_id, {names}) SELECT 1, {names} FROM "old_{table}"'
        op.execute(sa.text(moved))
        op.drop_table(f"old_{table}")
    op.execute(sa.text("UPDATE run SET format_version = 2"))
    if op.get_bind().dialect.name == "postgresql":  # rows with their ids move no sequence
        for table in ("run", "confirmations", "repeats", "calls"):
            key = "run_id" if table == "run" else "id"
            op.execute(
                sa.text(
                    f"SELECT setval(pg_get_serial_sequence('{table}', '{key}'), "
                    f"coalesce(max({key}), 0) + 1, false) FROM {table}"
                )
            )


def _create(table: str, columns: str) -> None:
    counted = "id:count" in columns
    to_run = [] if table == "run" else [sa.ForeignKey("run.run_id")]
    run_id = Column("run_id", sa.Integer, *to_run, primary_key=not counted, nullable=False)
    to_other = []
    if table in REFERENCES:
        column, other, key = REFERENCES[table]
        target = [f"{other}.run_id", f"{other}.{key}"]
        to_other = [sa.ForeignKeyConstraint(["run_id", column], target)]
    op.create_table(table, run_id, *map(_column, columns.split()), *to_other)
    if counted:
        op.create_index(f"{table}_of_run", table, ["run_id", REFERENCES[table][0]])


def _column(text: str) -> Column[Any]:
    name, _, kind = text.removesuffix("?").partition(":")
    return Column(
        name,
        KINDS[kind],
        primary_key=kind in ("key", "name", "count"),
        autoincrement=kind == "count",
        nullable=text.endswith("?"),
    )
