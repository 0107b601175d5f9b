"""Evaluations that all runs share, in a database beside them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    Column,
    Connection,
    Engine,
    Float,
    MetaData,
    String,
    Table,
    create_engine,
    delete,
    event,
    func,
    insert,
    select,
)
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.schema import CreateTable

from adaexplore.core.errors import BadInputError
from adaexplore.core.evaluation import Evaluation
from adaexplore.core.evaluation_json import evaluation_from_json, evaluation_to_json
from adaexplore.store.postgres import postgres_engine

_BUSY_S = 30
_POSTGRES = "postgresql://"

_EVALUATIONS = Table(
    "shared_evaluations",
    MetaData(),
    Column("key", String(64), primary_key=True),
    Column("evaluation", JSON, nullable=False),
    Column("machine", String(200), nullable=False),
    Column("at", Float, nullable=False),
)


@dataclass(frozen=True, slots=True)
class SharedEvaluation:
    """An evaluation of an earlier run, reached on `machine`, `at` seconds since the epoch."""

    evaluation: Evaluation
    machine: str
    at: float


class SharedEvaluations:
    """Evaluations by the digest of all that decides them; several processes may use them at once.

    `place` is a file, or the URL of a PostgreSQL database. Raises `BadInputError` for a place that
    cannot be used, in all methods.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._engine = _engine(place)
        with suppress(IntegrityError), self._connected() as connection:  # others make it, too
            connection.execute(CreateTable(_EVALUATIONS, if_not_exists=True))

    def find(self, key: str) -> SharedEvaluation | None:
        """Return the evaluation with a key."""
        with self._connected() as connection:
            row = connection.execute(select(_EVALUATIONS).where(_EVALUATIONS.c.key == key)).first()
        if row is None:
            return None
        return SharedEvaluation(evaluation_from_json(row.evaluation), row.machine, row.at)

    def add(self, key: str, evaluation: Evaluation, machine: str) -> None:
        """Keep an evaluation; the first one with a key stays."""
        values = {"evaluation": evaluation_to_json(evaluation), "machine": machine[:200]}
        with suppress(IntegrityError), self._connected() as connection:
            connection.execute(insert(_EVALUATIONS).values(key=key, at=time.time(), **values))

    def __len__(self) -> int:
        with self._connected() as connection:
            return int(connection.execute(select(func.count(_EVALUATIONS.c.key))).scalar_one())

    def forget(self, older_than_s: float) -> int:
        """Delete evaluations that are so old, in seconds; return their number."""
        with self._connected() as connection:
            old = _EVALUATIONS.c.at <= time.time() - older_than_s
            return connection.execute(delete(_EVALUATIONS).where(old)).rowcount

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            why = str(getattr(error, "orig", error)).strip().splitlines()[0]
            raise BadInputError(f"--evaluation-cache {self._place}: {why}") from None


def _engine(place: str) -> Engine:
    if place.startswith(_POSTGRES):
        return postgres_engine(place, "create")
    engine = create_engine(
        f"sqlite:///{Path(place).expanduser()}", connect_args={"timeout": _BUSY_S}
    )

    @event.listens_for(engine, "connect")
    def many_processes(connection: Any, _: object) -> None:
        connection.execute("PRAGMA journal_mode = WAL").close()

    return engine
