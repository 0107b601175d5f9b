"""A store in a relational database."""

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
from adaexplore.core.errors import BadInputError
from adaexplore.core.evaluation import from_json, to_json
from adaexplore.core.facts import ReferenceFacts
from adaexplore.core.node import ROOT_ID, Node
from adaexplore.core.proposal import Proposal
from adaexplore.core.store import FORMAT_VERSION, Confirmation, RunRecord
from adaexplore.store import rows, schema
from adaexplore.store.sqlite import explain


class SqlStore:
    """A `Store` on one database that holds one run; made by `create` or `open`.

    `place` is the run's directory as messages name it.
    """

    def __init__(self, engine: Engine, place: Path) -> None:
        self._engine = engine
        self._place = place
        self._complete = False  # whether all tables are known to be there

    @classmethod
    def create(cls, engine: Engine, place: Path, run: RunRecord) -> SqlStore:
        """A new run in an empty database, written as one transaction.

        Raises `BadInputError` if the storage refuses.
        """
        store = cls(engine, place)
        with store._transaction("create the run") as connection:
            schema.metadata.create_all(connection)
            connection.execute(insert(schema.run).values(rows.run_values(run)))
            connection.execute(insert(schema.plan).values(plan=dict(run.plan)))
        return store

    @classmethod
    def open(cls, engine: Engine, place: Path) -> SqlStore:
        """The run a database holds.

        Raises `BadInputError` if it holds none, or one that a newer release wrote.
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
        """The run's record."""
        with self._transaction("read the run") as connection:
            plan = _all(connection, schema.plan)
            row = connection.execute(select(schema.run)).one()
            return rows.run_record(row, plan[0].plan if plan else {})

    def set_reference(self, facts: ReferenceFacts) -> None:
        """Keeps what was measured about the reference."""
        with self._transaction("keep the reference's measurements") as connection:
            schema.metadata.create_all(connection)  # a run of an earlier release lacks the tables
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
        """What was known about the reference when an ask was opened."""
        with self._transaction("read the reference's measurements") as connection:
            known = _all(connection, schema.references, schema.references.c.first_ask <= ask_id)
            latest = max(known, key=lambda row: row.first_ask, default=None)
            if latest is not None:
                return ReferenceFacts.from_json(latest.facts)
            reference = connection.execute(select(schema.run.c.reference)).scalar_one()
            return ReferenceFacts.from_json(reference)

    def set_steps(self, steps: int) -> None:
        """Changes how many steps are planned in total."""
        with self._transaction("keep the number of steps") as connection:
            connection.execute(update(schema.run).values(steps=steps))

    def set_plan(self, plan: Mapping[str, Any]) -> None:
        """Replaces the plan."""
        with self._transaction("keep the plan") as connection:
            schema.metadata.create_all(connection)  # a run of an earlier release lacks the tables
            connection.execute(delete(schema.plan))
            connection.execute(insert(schema.plan).values(plan=dict(plan)))

    def open_ask(self, ask: Ask) -> None:
        """Keeps a new ask, open."""
        with self._transaction("open an ask") as connection:
            if not self._complete:
                schema.metadata.create_all(connection)  # a run of an earlier release lacks some
            last = _last(connection, schema.asks)
            if ask.id != last + 1:
                raise ValueError(f"ask {ask.id} cannot be opened: the next is {last + 1}")
            connection.execute(insert(schema.asks).values(rows.ask_values(ask)))
        self._complete = True

    def ask_count(self) -> int:
        """How many asks were ever opened."""
        with self._transaction("count the asks") as connection:
            return _last(connection, schema.asks)

    def find_ask(self, ask_id: int) -> AskRecord | None:
        """The ask of that number."""
        with self._transaction("read an ask") as connection:
            found = _all(connection, schema.asks, schema.asks.c.id == ask_id)
            return rows.ask_record(found[0]) if found else None

    def asks(self, *states: AskState) -> list[AskRecord]:
        """The asks in these states, in order."""
        which = [schema.asks.c.state.in_(states)] if states else []
        with self._transaction("read the asks") as connection:
            return [rows.ask_record(row) for row in _all(connection, schema.asks, *which)]

    def add_call(self, call: Exchange) -> None:
        """Keeps one turn of an open ask."""
        with self._transaction("keep a model's reply") as connection:
            _require_state(connection, call.ask_id, "open")
            connection.execute(insert(schema.calls).values(rows.call_values(call)))

    def calls(self, ask_id: int | None = None) -> list[Exchange]:
        """The turns of one ask, or of all, in order."""
        which = [] if ask_id is None else [schema.calls.c.ask_id == ask_id]
        with self._transaction("read the models' replies") as connection:
            return [rows.call_of(row) for row in _all(connection, schema.calls, *which)]

    def queue(self, ask_id: int, proposal: Proposal) -> None:
        """Gives an open ask its proposal."""
        with self._transaction("keep a proposal") as connection:
            _require_state(connection, ask_id, "open")
            values = {"state": "queued", "proposal": rows.proposal_values(proposal)}
            connection.execute(_of_ask(ask_id).values(values))

    def expire(self, ask_id: int) -> None:
        """Ends an ask without a step."""
        with self._transaction("end an ask") as connection:
            _require_state(connection, ask_id, "open", "queued")
            connection.execute(_of_ask(ask_id).values(state="expired"))

    def record(self, node: Node) -> None:
        """Keeps a step as one transaction, its candidate only if it is new."""
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
                if not self._complete:
                    schema.metadata.create_all(connection)  # a run of an earlier release lacks it
                connection.execute(insert(schema.repeats), rows.repeat_values(node))

    def node_count(self) -> int:
        """How many steps are recorded."""
        with self._transaction("count the steps") as connection:
            return _last(connection, schema.nodes)

    def nodes(self) -> list[Node]:
        """Every recorded step, in order; nodes with the same candidate share the object."""
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
        """Keeps a confirmation."""
        with self._transaction("keep the confirmation") as connection:
            if not 0 < confirmation.node_id <= _last(connection, schema.nodes):
                raise ValueError(f"node {confirmation.node_id} is confirmed but not recorded")
            connection.execute(
                insert(schema.confirmations).values(
                    node_id=confirmation.node_id,
                    evaluation=to_json(confirmation.evaluation),
                    at=confirmation.at,
                )
            )

    def confirmations(self) -> list[Confirmation]:
        """All confirmations, in order."""
        with self._transaction("read the confirmations") as connection:
            return [
                Confirmation(row.node_id, from_json(row.evaluation), row.at)
                for row in _all(connection, schema.confirmations)
            ]

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


def _refuse_out_of_order(node: Node, last_id: int) -> None:
    if node.id != last_id + 1:
        raise ValueError(f"node {node.id} cannot be recorded: the next is {last_id + 1}")
    if not ROOT_ID <= node.parent_id <= last_id:
        raise ValueError(f"node {node.id} names parent {node.parent_id}, which is not recorded")


def _all(connection: Connection, table: Table, *which: ColumnElement[bool]) -> list[Row[Any]]:
    """The rows that are meant, by id; none where an earlier release made the run."""
    if not inspect(connection).has_table(table.name):
        return []
    order = [table.c.id] if "id" in table.c else []
    return list(connection.execute(select(table).where(*which).order_by(*order)))


def _last(connection: Connection, table: Table) -> int:
    """The highest id, 0 where there is no row."""
    if not inspect(connection).has_table(table.name):
        return 0
    return connection.execute(select(func.max(table.c.id))).scalar() or 0


def _of_ask(ask_id: int) -> Update:
    return update(schema.asks).where(schema.asks.c.id == ask_id)


def _require_state(connection: Connection, ask_id: int, *states: AskState) -> None:
    found = connection.execute(select(schema.asks.c.state).where(schema.asks.c.id == ask_id))
    state = found.scalar()
    if state not in states:
        raise ValueError(f"ask {ask_id} is {state or 'unknown'}, not {' or '.join(states)}")
