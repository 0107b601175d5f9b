"""Tables of a database of runs: a file of SQLite with one run, or a PostgreSQL database of many.

Every row names its run. `store/migrations` brings older tables to this form.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
)

from adaexplore.store.column_types import Json as JSON
from adaexplore.store.column_types import Words as Text

metadata = MetaData()
version = Table("alembic_version", metadata, Column("version_num", Text, primary_key=True))
ONLY_RUN = 1
"""The id of the run in a database that holds one."""


def _of_run(*, key: bool) -> Column[int]:
    """Return the column that names the run of a row; with `key` it is part of the primary key."""
    reference = ForeignKey("run.run_id")
    return Column("run_id", Integer, reference, primary_key=key, default=ONLY_RUN, nullable=False)


# A row for each run. The table's name and `format_version` never change, so that any release can
# name the format of a newer run.
run = Table(
    "run",
    metadata,
    Column("run_id", Integer, primary_key=True),
    Column("format_version", Integer, nullable=False),
    Column("package_version", Text, nullable=False),
    Column("problem", JSON, nullable=False),
    Column("config", JSON, nullable=False),
    Column("proposers", JSON, nullable=False),
    Column("environment", JSON, nullable=False),
    Column("command", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("reference", JSON, nullable=False),
)
candidates = Table(
    "candidates",
    metadata,
    _of_run(key=True),
    Column("digest", Text, primary_key=True),
    Column("language", Text, nullable=False),
    Column("source", Text, nullable=False),
)
nodes = Table(
    "nodes",
    metadata,
    _of_run(key=True),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("parent_id", Integer, nullable=False),  # ROOT_ID has no row, hence no foreign key
    Column("step_kind", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("settings", JSON, nullable=False),
    Column("note", Text, nullable=False),
    Column("prompt", Text, nullable=False),
    Column("reply", Text, nullable=False),
    Column("failure", Text, nullable=False),
    Column("candidate", Text, nullable=False),
    Column("evaluation", JSON, nullable=False),
    Column("started_at", Float, nullable=False),
    Column("propose_s", Float, nullable=False),
    Column("reused", Boolean, nullable=False),
    Column("ask_id", Integer),
    ForeignKeyConstraint(["run_id", "candidate"], ["candidates.run_id", "candidates.digest"]),
)
confirmations = Table(
    "confirmations",
    metadata,
    Column("id", Integer, primary_key=True),
    _of_run(key=False),
    Column("node_id", Integer, nullable=False),
    Column("evaluation", JSON, nullable=False),
    Column("at", Float, nullable=False),
    ForeignKeyConstraint(["run_id", "node_id"], ["nodes.run_id", "nodes.id"]),
    Index("confirmations_of_run", "run_id", "node_id"),
)

plan = Table("plan", metadata, _of_run(key=True), Column("plan", JSON, nullable=False))
references = Table(  # facts about the reference, by the first ask that was opened with them
    "references",
    metadata,
    _of_run(key=True),
    Column("first_ask", Integer, primary_key=True, autoincrement=False),
    Column("facts", JSON, nullable=False),
)
repeats = Table(  # all evaluations, in order, of candidates that were evaluated several times
    "repeats",
    metadata,
    Column("id", Integer, primary_key=True),
    _of_run(key=False),
    Column("node_id", Integer, nullable=False),
    Column("evaluation", JSON, nullable=False),
    ForeignKeyConstraint(["run_id", "node_id"], ["nodes.run_id", "nodes.id"]),
    Index("repeats_of_run", "run_id", "node_id"),
)
asks = Table(
    "asks",
    metadata,
    _of_run(key=True),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("parent_id", Integer, nullable=False),
    Column("step_kind", Text, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("pool", JSON, nullable=False),
    Column("window", JSON, nullable=False),
    Column("seen", Integer, nullable=False),
    Column("proposer", Text, nullable=False),
    Column("opened_at", Float, nullable=False),
    Column("state", Text, nullable=False),
    Column("proposal", JSON),
)
calls = Table(
    "calls",
    metadata,
    Column("id", Integer, primary_key=True),
    _of_run(key=False),
    Column("ask_id", Integer, nullable=False),
    Column("label", Text, nullable=False),
    Column("prompt_digest", Text, nullable=False),
    Column("messages", JSON, nullable=False),
    Column("model", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("finish", Text, nullable=False),
    Column("usage", JSON, nullable=False),
    Column("latency_s", Float, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("at", Float, nullable=False),
    ForeignKeyConstraint(["run_id", "ask_id"], ["asks.run_id", "asks.id"]),
    Index("calls_of_run", "run_id", "ask_id"),
)

RECORDS = tuple(table for table in metadata.sorted_tables if table is not version)
"""The tables with the records of runs, each after those that its rows refer to."""
