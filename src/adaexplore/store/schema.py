"""Tables of a run's database."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

metadata = MetaData()

# One row. The table's name and `format_version` never change, so that any release can name the
# format of a newer run.
run = Table(
    "run",
    metadata,
    Column("format_version", Integer, nullable=False),
    Column("package_version", String, nullable=False),
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
    Column("digest", String(64), primary_key=True),
    Column("language", String, nullable=False),
    Column("source", Text, nullable=False),
)
nodes = Table(
    "nodes",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("parent_id", Integer, nullable=False),  # ROOT_ID has no row, hence no foreign key
    Column("step_kind", String, nullable=False),
    Column("origin", String, nullable=False),
    Column("settings", JSON, nullable=False),
    Column("note", Text, nullable=False),
    Column("prompt", Text, nullable=False),
    Column("reply", Text, nullable=False),
    Column("failure", Text, nullable=False),
    Column("candidate", String(64), ForeignKey(candidates.c.digest), nullable=False),
    Column("evaluation", JSON, nullable=False),
    Column("started_at", Float, nullable=False),
    Column("propose_s", Float, nullable=False),
    Column("reused", Boolean, nullable=False),
    Column("ask_id", Integer),
)
confirmations = Table(
    "confirmations",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("node_id", Integer, ForeignKey(nodes.c.id), nullable=False),
    Column("evaluation", JSON, nullable=False),
    Column("at", Float, nullable=False),
)

plan = Table("plan", metadata, Column("plan", JSON, nullable=False))
references = Table(  # facts about the reference, by the first ask that was opened with them
    "references",
    metadata,
    Column("first_ask", Integer, primary_key=True, autoincrement=False),
    Column("facts", JSON, nullable=False),
)
repeats = Table(  # all evaluations, in order, of candidates that were evaluated several times
    "repeats",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("node_id", Integer, ForeignKey(nodes.c.id), nullable=False),
    Column("evaluation", JSON, nullable=False),
)
asks = Table(
    "asks",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("parent_id", Integer, nullable=False),
    Column("step_kind", String, nullable=False),
    Column("seed", Integer, nullable=False),
    Column("pool", JSON, nullable=False),
    Column("window", JSON, nullable=False),
    Column("seen", Integer, nullable=False),
    Column("proposer", String, nullable=False),
    Column("opened_at", Float, nullable=False),
    Column("state", String, nullable=False),
    Column("proposal", JSON),
)
calls = Table(
    "calls",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("ask_id", Integer, ForeignKey(asks.c.id), nullable=False),
    Column("label", String, nullable=False),
    Column("prompt_digest", String(64), nullable=False),
    Column("messages", JSON, nullable=False),
    Column("model", String, nullable=False),
    Column("text", Text, nullable=False),
    Column("finish", String, nullable=False),
    Column("usage", JSON, nullable=False),
    Column("latency_s", Float, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("at", Float, nullable=False),
)
