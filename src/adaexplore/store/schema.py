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

from adaexplore.store.column_types import Json, Words

metadata = MetaData()
version = Table("alembic_version", metadata, Column("version_num", Words, primary_key=True))
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
    Column("package_version", Words, nullable=False),
    Column("problem", Json, nullable=False),
    Column("config", Json, nullable=False),
    Column("proposers", Json, nullable=False),
    Column("environment", Json, nullable=False),
    Column("command", Words, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("reference", Json, nullable=False),
)
candidates = Table(
    "candidates",
    metadata,
    _of_run(key=True),
    Column("digest", Words, primary_key=True),
    Column("language", Words, nullable=False),
    Column("source", Words, nullable=False),
)
nodes = Table(
    "nodes",
    metadata,
    _of_run(key=True),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("parent_id", Integer, nullable=False),  # ROOT_ID has no row, hence no foreign key
    Column("step_kind", Words, nullable=False),
    Column("origin", Words, nullable=False),
    Column("settings", Json, nullable=False),
    Column("note", Words, nullable=False),
    Column("prompt", Words, nullable=False),
    Column("reply", Words, nullable=False),
    Column("failure", Words, nullable=False),
    Column("candidate", Words, nullable=False),
    Column("evaluation", Json, nullable=False),
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
    Column("evaluation", Json, nullable=False),
    Column("at", Float, nullable=False),
    ForeignKeyConstraint(["run_id", "node_id"], ["nodes.run_id", "nodes.id"]),
    Index("confirmations_of_run", "run_id", "node_id"),
)

plan = Table("plan", metadata, _of_run(key=True), Column("plan", Json, nullable=False))
references = Table(  # facts about the reference, by the first ask that was opened with them
    "references",
    metadata,
    _of_run(key=True),
    Column("first_ask", Integer, primary_key=True, autoincrement=False),
    Column("facts", Json, nullable=False),
)
repeats = Table(  # all evaluations, in order, of candidates that were evaluated several times
    "repeats",
    metadata,
    Column("id", Integer, primary_key=True),
    _of_run(key=False),
    Column("node_id", Integer, nullable=False),
    Column("evaluation", Json, nullable=False),
    ForeignKeyConstraint(["run_id", "node_id"], ["nodes.run_id", "nodes.id"]),
    Index("repeats_of_run", "run_id", "node_id"),
)
asks = Table(
    "asks",
    metadata,
    _of_run(key=True),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("parent_id", Integer, nullable=False),
    Column("step_kind", Words, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("pool", Json, nullable=False),
    Column("window", Json, nullable=False),
    Column("seen", Integer, nullable=False),
    Column("proposer", Words, nullable=False),
    Column("opened_at", Float, nullable=False),
    Column("batch", Integer, nullable=False, default=0),
    Column("others", Json, nullable=False, default=()),
    Column("state", Words, nullable=False),
    Column("proposal", Json),
)
calls = Table(
    "calls",
    metadata,
    Column("id", Integer, primary_key=True),
    _of_run(key=False),
    Column("ask_id", Integer, nullable=False),
    Column("label", Words, nullable=False),
    Column("prompt_digest", Words, nullable=False),
    Column("messages", Json, nullable=False),
    Column("model", Words, nullable=False),
    Column("text", Words, nullable=False),
    Column("finish", Words, nullable=False),
    Column("usage", Json, nullable=False),
    Column("latency_s", Float, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("at", Float, nullable=False),
    ForeignKeyConstraint(["run_id", "ask_id"], ["asks.run_id", "asks.id"]),
    Index("calls_of_run", "run_id", "ask_id"),
)

RECORDS = tuple(table for table in metadata.sorted_tables if table is not version)
"""The tables with the records of runs, each after those that its rows refer to."""
