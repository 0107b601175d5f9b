"""Store in a relational database."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    Row,
    Select,
    Table,
    Update,
    and_,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError

from adaexplore.core.ask import Ask, AskRecord, AskState, Exchange
from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadInputError, DatabaseGoneError
from adaexplore.core.node import ROOT_ID, Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.store import Confirmation, RunRecord
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation_json import evaluation_from_json, evaluation_to_json
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.store import postgres, rows, schema, sqlite
from adaexplore.store.failures import StorageFailure
from adaexplore.store.migrate import create_tables, current


class SqlStore:
    """`Store` of one run in a database of SQLite or PostgreSQL; made by `create` or `open`.

    `place` is the run's directory as messages name it.
    """

    def __init__(self, engine: Engine, place: Path, run_id: int) -> None:
        self.engine = engine
        self.run_id = run_id
        self._place = place

    @classmethod
    def create(
        cls,
        engine: Engine,
        place: Path,
        run: RunRecord,
        before_commit: Callable[[Connection, int], None] = lambda *_: None,
    ) -> SqlStore:
        """Create a run, and the tables where there are none, as one transaction.

        `before_commit` gets the id of the run while nobody else sees it. Raises `BadInputError` on
        a storage failure.
        """
        with _transaction(engine, place, "create the run") as connection:
            create_tables(connection)
            created = connection.execute(insert(schema.run).values(rows.run_values(run)))
            assert created.inserted_primary_key  # it is None for other statements only
            run_id: int = created.inserted_primary_key[0]
            connection.execute(insert(schema.plan).values(run_id=run_id, plan=dict(run.plan)))
            before_commit(connection, run_id)
        return cls(engine, place, run_id)

    def delete(self) -> None:
        """Delete the run with all its records; a run that is not there stays so."""
        with self._transaction("delete the run") as connection:
            create_tables(connection)  # none are there if the first run was never committed
            for table in reversed(schema.RECORDS):
                connection.execute(delete(table).where(self._where(table)))

    @classmethod
    def open(cls, engine: Engine, place: Path, run_id: int = schema.ONLY_RUN) -> SqlStore:
        """Open a run of a database, which is migrated first if an older release wrote it.

        Raises `BadInputError` if there is none, or if a newer release wrote it.
        """
        with _explained(engine, place, "open the run"):
            engine = current(engine, place)
        with _transaction(engine, place, "open the run") as connection:
            here = select(schema.run.c.run_id).where(schema.run.c.run_id == run_id)
            if connection.execute(here).first() is None:
                raise BadInputError(f"{place}: its database holds no run {run_id}")
        return cls(engine, place, run_id)

    def run(self) -> RunRecord:
        """Return the run's record."""
        with self._transaction("read the run") as connection:
            plan = connection.execute(self._one(schema.plan.c.plan)).scalar_one()
            row = connection.execute(self._one(*schema.run.c)).one()
            return rows.run_record(row, plan)

    def set_reference(self, facts: ReferenceFacts) -> None:
        """Store the measured facts about the reference."""
        with self._transaction("store the facts about the reference") as connection:
            before = connection.execute(self._one(schema.run.c.reference)).scalar_one()
            if ReferenceFacts.from_json(before) == facts:
                return
            table, next_ask = schema.references, self._last(connection, schema.asks) + 1
            if connection.execute(self._one(table.c.first_ask)).first() is None:
                self._insert(connection, table, first_ask=0, facts=before)
            which = self._where(table, table.c.first_ask == next_ask)
            connection.execute(delete(table).where(which))
            self._insert(connection, table, first_ask=next_ask, facts=facts.to_json())
            connection.execute(self._update(schema.run).values(reference=facts.to_json()))

    def reference_for(self, ask_id: int) -> ReferenceFacts:
        """Return the facts about the reference that an ask was opened with."""
        table = schema.references
        with self._transaction("read the facts about the reference") as connection:
            known = self._all(connection, table, table.c.first_ask <= ask_id)
            latest = max(known, key=lambda row: row.first_ask, default=None)
            if latest is not None:
                return ReferenceFacts.from_json(latest.facts)
            reference = connection.execute(self._one(schema.run.c.reference)).scalar_one()
            return ReferenceFacts.from_json(reference)

    def set_config(self, config: Config) -> None:
        """Replace the configuration."""
        with self._transaction("keep the configuration") as connection:
            connection.execute(
                self._update(schema.run).values(config=config.model_dump(mode="json"))
            )

    def move(self, problem: Problem) -> None:
        """Take the problem's device and the places of its files over."""
        with self._transaction("keep the place of the problem") as connection:
            known = connection.execute(self._one(schema.run.c.problem)).scalar_one()
            if Problem.from_json(known).digest != problem.digest:
                raise ValueError(f"{problem.name} is not the problem of the run in {self._place}")
            connection.execute(self._update(schema.run).values(problem=problem.to_json()))

    def set_plan(self, plan: Mapping[str, Any]) -> None:
        """Replace the plan."""
        with self._transaction("store the plan") as connection:
            connection.execute(self._update(schema.plan).values(plan=dict(plan)))

    def open_ask(self, ask: Ask) -> None:
        """Store a new, open ask."""
        with self._transaction("open an ask") as connection:
            last = self._last(connection, schema.asks)
            if ask.id != last + 1:
                raise ValueError(f"ask {ask.id} cannot be opened: the next is {last + 1}")
            self._insert(connection, schema.asks, **rows.ask_values(ask))

    def ask_count(self) -> int:
        """Return the number of asks ever opened."""
        with self._transaction("count the asks") as connection:
            return self._last(connection, schema.asks)

    def find_ask(self, ask_id: int) -> AskRecord | None:
        """Return the ask with this id."""
        with self._transaction("read an ask") as connection:
            found = self._all(connection, schema.asks, schema.asks.c.id == ask_id)
            return rows.ask_record(found[0]) if found else None

    def asks(self, *states: AskState) -> list[AskRecord]:
        """Return the asks in these states, in order."""
        which = [schema.asks.c.state.in_(states)] if states else []
        with self._transaction("read the asks") as connection:
            return [rows.ask_record(row) for row in self._all(connection, schema.asks, *which)]

    def add_call(self, call: Exchange) -> None:
        """Store one exchange of an open ask."""
        with self._transaction("store a model's reply") as connection:
            self._require_state(connection, call.ask_id, "open")
            self._insert(connection, schema.calls, **rows.exchange_values(call))

    def calls(self, ask_id: int | None = None) -> list[Exchange]:
        """Return the exchanges of one ask, or of all, in order."""
        which = [] if ask_id is None else [schema.calls.c.ask_id == ask_id]
        with self._transaction("read the models' replies") as connection:
            return [rows.exchange_of(row) for row in self._all(connection, schema.calls, *which)]

    def queue(self, ask_id: int, proposal: Proposal) -> None:
        """Attach the proposal to an open ask."""
        with self._transaction("store a proposal") as connection:
            self._require_state(connection, ask_id, "open")
            values = {"state": "queued", "proposal": rows.proposal_values(proposal)}
            connection.execute(self._of_ask(ask_id).values(values))

    def expire(self, ask_id: int) -> None:
        """End an ask without a step."""
        with self._transaction("end an ask") as connection:
            self._require_state(connection, ask_id, "open", "queued")
            connection.execute(self._of_ask(ask_id).values(state="expired"))

    def record(self, node: Node) -> None:
        """Store a step as one transaction, and its candidate if it is new."""
        with self._transaction(f"record step {node.id}", last_kept=node.id - 1) as connection:
            _refuse_out_of_order(node, self._last(connection, schema.nodes))
            if node.ask_id is not None:
                self._require_state(connection, node.ask_id, "queued")
                connection.execute(self._of_ask(node.ask_id).values(state="done", proposal=None))
            digest = node.candidate.digest
            known = self._one(schema.candidates.c.digest).where(
                schema.candidates.c.digest == digest
            )
            if connection.execute(known).first() is None:
                values = rows.candidate_values(node.candidate)
                self._insert(connection, schema.candidates, **values)
            self._insert(connection, schema.nodes, **rows.node_values(node))
            for values in rows.repeat_values(node):
                self._insert(connection, schema.repeats, **values)

    def node_count(self) -> int:
        """Return the number of recorded steps."""
        with self._transaction("count the steps") as connection:
            return self._last(connection, schema.nodes)

    def nodes(self) -> list[Node]:
        """Return every recorded step, in order; nodes with the same candidate share the object."""
        with self._transaction("read the steps") as connection:
            candidates = {
                row.digest: Candidate(row.source, row.language)
                for row in connection.execute(self._one(*schema.candidates.c))
            }
            repeats: defaultdict[int, list[Row[Any]]] = defaultdict(list)
            for row in self._all(connection, schema.repeats):
                repeats[row.node_id].append(row)
            return [
                rows.node_of(row, candidates[row.candidate], repeats[row.id])
                for row in self._all(connection, schema.nodes)
            ]

    def confirm(self, confirmation: Confirmation) -> None:
        """Store a confirmation."""
        with self._transaction("store the confirmation") as connection:
            if not 0 < confirmation.node_id <= self._last(connection, schema.nodes):
                raise ValueError(f"node {confirmation.node_id} is confirmed but not recorded")
            self._insert(
                connection,
                schema.confirmations,
                node_id=confirmation.node_id,
                evaluation=evaluation_to_json(confirmation.evaluation),
                at=confirmation.at,
            )

    def confirmations(self) -> list[Confirmation]:
        """Return all confirmations, in order."""
        with self._transaction("read the confirmations") as connection:
            return [
                Confirmation(row.node_id, evaluation_from_json(row.evaluation), row.at)
                for row in self._all(connection, schema.confirmations)
            ]

    def close(self) -> None:
        """Close the database; SQLite merges its log into the file."""
        self.engine.dispose()

    @contextmanager
    def _transaction(self, doing: str, last_kept: int | None = None) -> Iterator[Connection]:
        with _transaction(self.engine, self._place, doing, last_kept) as connection:
            yield connection

    def _where(self, table: Table, *which: ColumnElement[bool]) -> ColumnElement[bool]:
        return and_(table.c.run_id == self.run_id, *which)

    def _one(self, *columns: Column[Any]) -> Select[Any]:
        """Select columns of a table from the rows of this run."""
        return select(*columns).where(columns[0].table.c.run_id == self.run_id)

    def _all(
        self, connection: Connection, table: Table, *which: ColumnElement[bool]
    ) -> list[Row[Any]]:
        """Return the selected rows of this run, by id."""
        order = [table.c.id] if "id" in table.c else []
        chosen = select(table).where(self._where(table, *which)).order_by(*order)
        return list(connection.execute(chosen))

    def _last(self, connection: Connection, table: Table) -> int:
        """Return the highest id, 0 where the run has no row."""
        highest = select(func.max(table.c.id)).where(self._where(table))
        return connection.execute(highest).scalar() or 0

    def _insert(self, connection: Connection, table: Table, **values: Any) -> None:
        connection.execute(insert(table).values(run_id=self.run_id, **values))

    def _update(self, table: Table) -> Update:
        return update(table).where(self._where(table))

    def _of_ask(self, ask_id: int) -> Update:
        return self._update(schema.asks).where(schema.asks.c.id == ask_id)

    def _require_state(self, connection: Connection, ask_id: int, *states: AskState) -> None:
        found = connection.execute(self._one(schema.asks.c.state).where(schema.asks.c.id == ask_id))
        state = found.scalar()
        if state not in states:
            raise ValueError(f"ask {ask_id} is {state or 'unknown'}, not {' or '.join(states)}")


@contextmanager
def _transaction(
    engine: Engine, place: Path, doing: str, last_kept: int | None = None
) -> Iterator[Connection]:
    """Run a transaction; raise `BadInputError` with one line on a storage failure."""
    with _explained(engine, place, doing, last_kept), engine.begin() as connection:
        yield connection


@contextmanager
def _explained(
    engine: Engine, place: Path, doing: str, last_kept: int | None = None
) -> Iterator[None]:
    """Raise `BadInputError` with one line in place of the database's own error."""
    try:
        yield
    except (DBAPIError, json.JSONDecodeError) as error:
        failure = failure_of(error, engine)
        if failure is None:
            raise
        message = f"cannot {doing} in {place}: {failure.problem}; {failure.remedy}"
        if last_kept is not None and failure.intact:
            message += (
                f", then continue with: adaexplore resume {shlex.quote(str(place))} "
                f"(the run is intact up to step {last_kept})"
            )
        gone = failure is postgres.UNREACHABLE
        raise (DatabaseGoneError if gone else BadInputError)(message) from error


def failure_of(error: DBAPIError | json.JSONDecodeError, engine: Engine) -> StorageFailure | None:
    """Return what an error of a database means to the user; None for a fault of this program."""
    if isinstance(error, DBAPIError) and engine.dialect.name == "postgresql":
        return postgres.explain(error)
    return sqlite.explain(error)


def _refuse_out_of_order(node: Node, last_id: int) -> None:
    if node.id != last_id + 1:
        raise ValueError(f"node {node.id} cannot be recorded: the next is {last_id + 1}")
    if not ROOT_ID <= node.parent_id <= last_id:
        raise ValueError(f"node {node.id} names parent {node.parent_id}, which is not recorded")
