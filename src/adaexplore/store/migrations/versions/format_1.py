"""The tables of format 1: one run in a database."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Column

revision = "1"
down_revision = None

TABLES = {
    "run": "format_version:int package_version:text problem:json config:json proposers:json "
    "environment:json command:text created_at:float reference:json",
    "plan": "plan:json",
    "references": "first_ask:key facts:json",
    "candidates": "digest:name language:text source:text",
    "nodes": "id:key parent_id:int step_kind:text origin:text settings:json note:text prompt:text "
    "reply:text failure:text candidate:text>candidates.digest evaluation:json started_at:float "
    "propose_s:float reused:bool ask_id:int?",
    "confirmations": "id:count node_id:int>nodes.id evaluation:json at:float",
    "repeats": "id:count node_id:int>nodes.id evaluation:json",
    "asks": "id:key parent_id:int step_kind:text seed:int pool:json window:json seen:int "
    "proposer:text opened_at:float state:text proposal:json?",
    "calls": "id:count ask_id:int>asks.id label:text prompt_digest:text messages:json model:text "
    "text:text finish:text usage:json latency_s:float attempts:int at:float",
}
"""Columns by table, as name:kind, with `>` a foreign key, with `?` one that may be null."""

KINDS: dict[str, Any] = {
    **{"int": sa.Integer, "key": sa.Integer, "count": sa.Integer, "name": sa.String(64)},
    **{"text": sa.Text, "json": sa.Text, "float": sa.Float, "bool": sa.Boolean},
}
KEYS = ("key", "name", "count")


def upgrade() -> None:
    """Create the tables."""
    for table, columns in TABLES.items():
        op.create_table(table, *map(_column, columns.split()))


def _column(text: str) -> Column[Any]:
    name, _, kind = text.removesuffix("?").partition(":")
    kind, _, target = kind.partition(">")
    return Column(
        name,
        KINDS[kind],
        *([sa.ForeignKey(target)] if target else []),
        primary_key=kind in KEYS,
        autoincrement=kind == "count",
        nullable=text.endswith("?"),
    )
