"""Store in a relational database."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Row,
    Table,
    Update,
    delete,
    func,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError

from adaexplore.core.ask import Ask, AskRecord, AskState, Exchange
from adaexplore.core.candidate import Candidate
from adaexplore.core.config import Config
from adaexplore.core.errors import BadInputError
from adaexplore.core.evaluation_json import evaluation_from_json, evaluation_to_json
from adaexplore.core.facts import ReferenceFacts
from adaexplore.core.node import ROOT_ID, Node
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.store import FORMAT_VERSION, Confirmation, RunRecord
from adaexplore.store import rows, schema
from adaexplore.store.sqlite import explain


class SqlStore:
    """`Store` on a database that holds one run; made by `create` or `open`.

    `place` is the run's directory as messages name it.
    """

    def __init__(self, engine: Engine, place: Path) -> None:
        self._engine = engine
        self._place = place

    @classmethod
    def create(cls, engine: Engine, place: Path, run: RunRecord) -> SqlStore:
        """Create a run in an empty database, as one transaction.

        Raises `BadInputError` on a storage failure.
        """
        store = cls(engine, place)
        with store._transaction("create the run") as connection:
            schema.metadata.create_all(connection)
            connection.execute(insert(schema.run).values(rows.run_values(run)))
            connection.execute(insert(schema.plan).values(plan=dict(run.plan)))
        return store

    @classmethod
    def open(cls, engine: Engine, place: Path) -> SqlStore:
        """Open the run of a database.

        Raises `BadInputError` if there is none, or if a newer release wrote it.
        """
        store = cls(engine, place)
        with store._transaction("open the run") as connection:
            found = inspect(connection).has_table(schema.run.name)
            row = connection.execute(select(schema.run.c.format_version)).first() if found else None
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
        """Return the run's record."""
        with self._transaction("read the run") as connection:
            plan = connection.execute(select(schema.plan.c.plan)).scalar_one()
            row = connection.execute(select(schema.run)).one()
            return rows.run_record(row, plan)

    def set_reference(self, facts: ReferenceFacts) -> None:
        """Store the measured facts about the reference."""
        with self._transaction("store the facts about the reference") as connection:
            before = connection.execute(select(schema.run.c.reference)).scalar_one()
            if ReferenceFacts.from_json(before) == facts:
                return
            table, next_ask = schema.references, _last(connection, schema.asks) + 1
            if connection.execute(select(table)).first() is None:
                connection.execute(insert(table).values(first_ask=0, facts=before))
            connection.execute(delete(table).where(table.c.first_ask == next_ask))
            connection.execute(insert(table).values(first_ask=next_ask, facts=facts.to_json()))
            connection.execute(update(schema.run).values(reference=facts.to_json()))

    def reference_for(self, ask_id: int) -> ReferenceFacts:
        """Return the facts about the reference that an ask was opened with."""
        with self._transaction("read the facts about the reference") as connection:
            known = _all(connection, schema.references, schema.references.c.first_ask <= ask_id)
            latest = max(known, key=lambda row: row.first_ask, default=None)
            if latest is not None:
                return ReferenceFacts.from_json(latest.facts)
            reference = connection.execute(select(schema.run.c.reference)).scalar_one()
            return ReferenceFacts.from_json(reference)

    def set_config(self, config: Config) -> None:
        """Replace the configuration."""
        with self._transaction("keep the configuration") as connection:
            connection.execute(update(schema.run).values(config=config.model_dump(mode="json")))

    def set_plan(self, plan: Mapping[str, Any]) -> None:
        """Replace the plan."""
        with self._transaction("store the plan") as connection:
            connection.execute(update(schema.plan).values(plan=dict(plan)))

    def open_ask(self, ask: Ask) -> None:
        """Store a new, open ask."""
        with self._transaction("open an ask") as connection:
            last = _last(connection, schema.asks)
            if ask.id != last + 1:
                raise ValueError(f"ask {ask.id} cannot be opened: the next is {last + 1}")
            connection.execute(insert(schema.asks).values(rows.ask_values(ask)))

    def ask_count(self) -> int:
        """Return the number of asks ever opened."""
        with self._transaction("count the asks") as connection:
            return _last(connection, schema.asks)

    def find_ask(self, ask_id: int) -> AskRecord | None:
        """Return the ask with this id."""
        with self._transaction("read an ask") as connection:
            found = _all(connection, schema.asks, schema.asks.c.id == ask_id)
            return rows.ask_record(found[0]) if found else None

    def asks(self, *states: AskState) -> list[AskRecord]:
        """Return the asks in these states, in order."""
        which = [schema.asks.c.state.in_(states)] if states else []
        with self._transaction("read the asks") as connection:
            return [rows.ask_record(row) for row in _all(connection, schema.asks, *which)]

    def add_call(self, call: Exchange) -> None:
        """Store one exchange of an open ask."""
        with self._transaction("store a model's reply") as connection:
            _require_state(connection, call.ask_id, "open")
            connection.execute(insert(schema.calls).values(rows.exchange_values(call)))

    def calls(self, ask_id: int | None = None) -> list[Exchange]:
        """Return the exchanges of one ask, or of all, in order."""
        which = [] if ask_id is None else [schema.calls.c.ask_id == ask_id]
        with self._transaction("read the models' replies") as connection:
            return [rows.exchange_of(row) for row in _all(connection, schema.calls, *which)]

    def queue(self, ask_id: int, proposal: Proposal) -> None:
        """Attach the proposal to an open ask."""
        with self._transaction("store a proposal") as connection:
            _require_state(connection, ask_id, "open")
            values = {"state": "queued", "proposal": rows.proposal_values(proposal)}
            connection.execute(_of_ask(ask_id).values(values))

    def expire(self, ask_id: int) -> None:
        """End an ask without a step."""
        with self._transaction("end an ask") as connection:
            _require_state(connection, ask_id, "open", "queued")
            connection.execute(_of_ask(ask_id).values(state="expired"))

    def record(self, node: Node) -> None:
        """Store a step as one transaction, and its candidate if it is new."""
        with self._transaction(f"record step {node.id}", last_kept=node.id - 1) as connection:
            _refuse_out_of_order(node, _last(connection, schema.nodes))
            if node.ask_id is not None:
                _require_state(connection, node.ask_id, "queued")
                connection.execute(_of_ask(node.ask_id).values(state="done", proposal=None))
            digest = node.candidate.digest
            known = select(schema.candidates.c.digest).where(schema.candidates.c.digest == digest)
            if connection.execute(known).first() is None:
                connection.execute(
                    insert(schema.candidates).values(rows.candidate_values(node.candidate))
                )
            connection.execute(insert(schema.nodes).values(rows.node_values(node)))
            if node.repeats:
                connection.execute(insert(schema.repeats), rows.repeat_values(node))

    def node_count(self) -> int:
        """Return the number of recorded steps."""
        with self._transaction("count the steps") as connection:
            return _last(connection, schema.nodes)

    def nodes(self) -> list[Node]:
        """Return every recorded step, in order; nodes with the same candidate share the object."""
        with self._transaction("read the steps") as connection:
            candidates = {
                row.digest: Candidate(row.source, row.language)
                for row in connection.execute(select(schema.candidates))
            }
            repeats: defaultdict[int, list[Row[Any]]] = defaultdict(list)
            for row in _all(connection, schema.repeats):
                repeats[row.node_id].append(row)
            found = connection.execute(select(schema.nodes).order_by(schema.nodes.c.id))
            return [rows.node_of(row, candidates[row.candidate], repeats[row.id]) for row in found]

    def confirm(self, confirmation: Confirmation) -> None:
        """Store a confirmation."""
        with self._transaction("store the confirmation") as connection:
            if not 0 < confirmation.node_id <= _last(connection, schema.nodes):
                raise ValueError(f"node {confirmation.node_id} is confirmed but not recorded")
            connection.execute(
                insert(schema.confirmations).values(
                    node_id=confirmation.node_id,
                    evaluation=evaluation_to_json(confirmation.evaluation),
                    at=confirmation.at,
                )
            )

    def confirmations(self) -> list[Confirmation]:
        """Return all confirmations, in order."""
        with self._transaction("read the confirmations") as connection:
            return [
                Confirmation(row.node_id, evaluation_from_json(row.evaluation), row.at)
                for row in _all(connection, schema.confirmations)
            ]

    def close(self) -> None:
        """Close the database; SQLite merges its log into the file."""
        self._engine.dispose()

    @contextmanager
    def _transaction(self, doing: str, last_kept: int | None = None) -> Iterator[Connection]:
        """Run a transaction; raise `BadInputError` with one line on a storage failure."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except (DBAPIError, json.JSONDecodeError) as error:
            failure = explain(error)
            if failure is None:
                raise
            message = f"cannot {doing} in {self._place}: {failure.problem}; {failure.remedy}"
            if last_kept is not None and failure.intact:
                message += (
                    f", then continue with: adaexplore resume {shlex.quote(str(self._place))} "
                    f"(the run is intact up to step {last_kept})"
                )
            raise BadInputError(message) from error


def _refuse_out_of_order(node: Node, last_id: int) -> None:
    if node.id != last_id + 1:
        raise ValueError(f"node {node.id} cannot be recorded: the next is {last_id + 1}")
    if not ROOT_ID <= node.parent_id <= last_id:
        raise ValueError(f"node {node.id} names parent {node.parent_id}, which is not recorded")


def _all(connection: Connection, table: Table, *which: ColumnElement[bool]) -> list[Row[Any]]:
    """Return the selected rows, by id."""
    order = [table.c.id] if "id" in table.c else []
    return list(connection.execute(select(table).where(*which).order_by(*order)))


def _last(connection: Connection, table: Table) -> int:
    """Return the highest id, 0 in an empty table."""
    return connection.execute(select(func.max(table.c.id))).scalar() or 0


def _of_ask(ask_id: int) -> Update:
    return update(schema.asks).where(schema.asks.c.id == ask_id)


def _require_state(connection: Connection, ask_id: int, *states: AskState) -> None:
    found = connection.execute(select(schema.asks.c.state).where(schema.asks.c.id == ask_id))
    state = found.scalar()
    if state not in states:
        raise ValueError(f"ask {ask_id} is {state or 'unknown'}, not {' or '.join(states)}")
