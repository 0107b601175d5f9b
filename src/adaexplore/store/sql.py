"""A store in a relational database."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    Engine,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    Row,
    String,
    Table,
    Text,
    func,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError

from adaexplore.candidate import Candidate
from adaexplore.errors import BadInputError
from adaexplore.evaluation import from_json, to_json
from adaexplore.node import ROOT_ID, Node
from adaexplore.problem import Problem
from adaexplore.proposal import Proposal
from adaexplore.settings import Settings
from adaexplore.store.base import FORMAT_VERSION, Confirmation, RunRecord
from adaexplore.store.sqlite import explain

_schema = MetaData()

# One row. Its name and `format_version` stay as they are in every format to come, so that an older
# release can say which one it met.
_run = Table(
    "run",
    _schema,
    Column("format_version", Integer, nullable=False),
    Column("package_version", String, nullable=False),
    Column("problem", JSON, nullable=False),
    Column("settings", JSON, nullable=False),
    Column("seed", Integer, nullable=False),
    Column("proposer", String, nullable=False),
    Column("steps", Integer, nullable=False),
    Column("environment", JSON, nullable=False),
    Column("command", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("reference", JSON, nullable=False),
)
_candidates = Table(
    "candidates",
    _schema,
    Column("digest", String(64), primary_key=True),
    Column("language", String, nullable=False),
    Column("source", Text, nullable=False),
)
_nodes = Table(
    "nodes",
    _schema,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("parent_id", Integer, nullable=False),  # ROOT_ID has no row, hence no foreign key
    Column("step_kind", String, nullable=False),
    Column("origin", String, nullable=False),
    Column("settings", JSON, nullable=False),
    Column("note", Text, nullable=False),
    Column("prompt", Text, nullable=False),
    Column("reply", Text, nullable=False),
    Column("failure", Text, nullable=False),
    Column("candidate", String(64), ForeignKey(_candidates.c.digest), nullable=False),
    Column("evaluation", JSON, nullable=False),
    Column("started_at", Float, nullable=False),
    Column("propose_s", Float, nullable=False),
    Column("reused", Boolean, nullable=False),
)
_confirmations = Table(
    "confirmations",
    _schema,
    Column("id", Integer, primary_key=True),
    Column("node_id", Integer, ForeignKey(_nodes.c.id), nullable=False),
    Column("evaluation", JSON, nullable=False),
    Column("at", Float, nullable=False),
)


class SqlStore:
    """A `Store` on one database that holds one run; made by `create` or `open`.

    `place` is the run's directory as messages name it.
    """

    def __init__(self, engine: Engine, place: Path) -> None:
        self._engine = engine
        self._place = place

    @classmethod
    def create(cls, engine: Engine, place: Path, run: RunRecord) -> SqlStore:
        """A new run in an empty database, written as one transaction.

        Raises `BadInputError` if the storage refuses.
        """
        store = cls(engine, place)
        with store._transaction("create the run") as connection:
            _schema.create_all(connection)
            connection.execute(insert(_run).values(_run_values(run)))
        return store

    @classmethod
    def open(cls, engine: Engine, place: Path) -> SqlStore:
        """The run a database holds.

        Raises `BadInputError` if it holds none, or one that a newer release wrote.
        """
        store = cls(engine, place)
        with store._transaction("open the run") as connection:
            found = inspect(connection).has_table(_run.name)
            row = connection.execute(select(_run.c.format_version)).first() if found else None
        if row is None:
            raise BadInputError(
                f"{place} holds no run: its creation was interrupted; delete it and start again"
            )
        if row.format_version > FORMAT_VERSION:
            raise BadInputError(
                f"{place} is in run format {row.format_version}, this adaexplore reads up to "
                f"{FORMAT_VERSION}; upgrade it with: pip install --upgrade adaexplore"
            )
        return store

    def run(self) -> RunRecord:
        """The run's record."""
        with self._transaction("read the run") as connection:
            return _run_record(connection.execute(select(_run)).one())

    def set_reference(self, facts: Mapping[str, Any]) -> None:
        """Keeps what was measured about the reference."""
        with self._transaction("keep the reference's measurements") as connection:
            connection.execute(update(_run).values(reference=dict(facts)))

    def set_steps(self, steps: int) -> None:
        """Changes how many steps are planned in total."""
        with self._transaction("keep the number of steps") as connection:
            connection.execute(update(_run).values(steps=steps))

    def record(self, node: Node) -> None:
        """Keeps a step as one transaction, its candidate only if it is new."""
        with self._transaction(f"record step {node.id}", last_kept=node.id - 1) as connection:
            _refuse_out_of_order(node, _last_id(connection))
            digest = node.candidate.digest
            known = select(_candidates.c.digest).where(_candidates.c.digest == digest)
            if connection.execute(known).first() is None:
                connection.execute(insert(_candidates).values(_candidate_values(node.candidate)))
            connection.execute(insert(_nodes).values(_node_values(node)))

    def node_count(self) -> int:
        """How many steps are recorded."""
        with self._transaction("count the steps") as connection:
            return _last_id(connection)

    def nodes(self) -> list[Node]:
        """Every recorded step, in order; nodes with the same candidate share the object."""
        with self._transaction("read the steps") as connection:
            candidates = {
                row.digest: Candidate(row.source, row.language)
                for row in connection.execute(select(_candidates))
            }
            rows = connection.execute(select(_nodes).order_by(_nodes.c.id))
            return [_node(row, candidates[row.candidate]) for row in rows]

    def confirm(self, confirmation: Confirmation) -> None:
        """Keeps a confirmation; earlier ones stay in the database."""
        with self._transaction("keep the confirmation") as connection:
            if not 0 < confirmation.node_id <= _last_id(connection):
                raise ValueError(f"node {confirmation.node_id} is confirmed but not recorded")
            connection.execute(
                insert(_confirmations).values(
                    node_id=confirmation.node_id,
                    evaluation=to_json(confirmation.evaluation),
                    at=confirmation.at,
                )
            )

    def confirmation(self) -> Confirmation | None:
        """The confirmation kept last."""
        latest = select(_confirmations).order_by(_confirmations.c.id.desc()).limit(1)
        with self._transaction("read the confirmation") as connection:
            row = connection.execute(latest).first()
            return Confirmation(row.node_id, from_json(row.evaluation), row.at) if row else None

    def close(self) -> None:
        """Closes the database; SQLite folds its log into the file."""
        self._engine.dispose()

    @contextmanager
    def _transaction(self, doing: str, last_kept: int | None = None) -> Iterator[Connection]:
        """All or nothing; the storage's troubles come out as one line for a person."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except (DBAPIError, json.JSONDecodeError) as error:
            trouble = explain(error)
            if trouble is None:
                raise
            message = f"cannot {doing} in {self._place}: {trouble.problem}; {trouble.remedy}"
            if last_kept is not None and trouble.intact:
                message += (
                    f", then continue with: adaexplore resume {shlex.quote(str(self._place))} "
                    f"(the run is intact up to step {last_kept})"
                )
            raise BadInputError(message) from error


def _last_id(connection: Connection) -> int:
    return connection.execute(select(func.max(_nodes.c.id))).scalar() or 0


def _refuse_out_of_order(node: Node, last_id: int) -> None:
    if node.id != last_id + 1:
        raise ValueError(f"node {node.id} cannot be recorded: the next is {last_id + 1}")
    if not ROOT_ID <= node.parent_id <= last_id:
        raise ValueError(f"node {node.id} names parent {node.parent_id}, which is not recorded")


def _run_values(run: RunRecord) -> dict[str, Any]:
    return {
        "format_version": run.format_version,
        "package_version": run.package_version,
        "problem": run.problem.to_json(),
        "settings": run.settings.model_dump(mode="json"),
        "seed": run.seed,
        "proposer": run.proposer,
        "steps": run.steps,
        "environment": dict(run.environment),
        "command": run.command,
        "created_at": run.created_at,
        "reference": dict(run.reference),
    }


def _run_record(row: Row[Any]) -> RunRecord:
    values = dict(row._mapping)
    values["problem"] = Problem.from_json(values["problem"])
    values["settings"] = Settings.model_validate(values["settings"])
    return RunRecord(**values)


def _candidate_values(candidate: Candidate) -> dict[str, str]:
    return {
        "digest": candidate.digest,
        "language": candidate.language,
        "source": candidate.source,
    }


def _node_values(node: Node) -> dict[str, Any]:
    proposal = node.proposal
    return {
        "id": node.id,
        "parent_id": node.parent_id,
        "step_kind": node.step_kind,
        "origin": proposal.origin,
        "settings": dict(proposal.settings),
        "note": proposal.note,
        "prompt": proposal.prompt,
        "reply": proposal.reply,
        "failure": proposal.failure,
        "candidate": node.candidate.digest,
        "evaluation": to_json(node.evaluation),
        "started_at": node.started_at,
        "propose_s": node.propose_s,
        "reused": node.reused,
    }


def _node(row: Row[Any], candidate: Candidate) -> Node:
    proposal = Proposal(
        candidate=candidate,
        origin=row.origin,
        note=row.note,
        settings=row.settings,
        prompt=row.prompt,
        reply=row.reply,
        failure=row.failure,
    )
    return Node(
        id=row.id,
        parent_id=row.parent_id,
        step_kind=row.step_kind,
        proposal=proposal,
        evaluation=from_json(row.evaluation),
        started_at=row.started_at,
        propose_s=row.propose_s,
        reused=row.reused,
    )
