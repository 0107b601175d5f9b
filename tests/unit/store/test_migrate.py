"""Databases of the first format, on SQLite and PostgreSQL."""

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import MetaData, inspect
from sqlalchemy.types import TypeEngine
from stored_runs import sample_node, sample_run

from adaexplore.core.ask import Ask
from adaexplore.core.errors import BadInputError
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.store import Confirmation, memory_store, read_run, schema
from adaexplore.store.column_types import Json
from adaexplore.store.migrate import upgrade
from adaexplore.store.postgres import postgres_engine
from adaexplore.store.sql import SqlStore
from adaexplore.store.sqlite import sqlite_engine

_names = itertools.count(1)


@pytest.fixture(params=["sqlite", "postgresql"])
def opening(request, tmp_path):
    """Make an engine on one empty database, by mode."""
    if request.param == "sqlite":
        return lambda mode: sqlite_engine(tmp_path / "run.db", mode)
    url = request.getfixturevalue("postgresql").new_database(f"old{next(_names)}")
    return lambda mode: postgres_engine(url, mode)


def filled() -> SqlStore:
    """A run with every kind of record."""
    store = memory_store(sample_run())
    for node_id in (1, 2, 3):
        store.record(sample_node(node_id))
    store.confirm(Confirmation(1, Failed("timeout", "took 180 s"), 2.0))
    store.open_ask(Ask(1, 0, "small", 2**31 - 1, (1,), (2,), 3, "compiler", 1.5e9))
    store.queue(1, sample_node(1).proposal)
    return store


def write_format_1(engine, store: SqlStore) -> None:
    """Write a run as the first release did, without Alembic's table."""
    with store.engine.begin() as source, engine.begin() as target:
        upgrade(target, "1")
        target.exec_driver_sql("DROP TABLE alembic_version")
        old = MetaData()
        old.reflect(target)
        for table in schema.RECORDS:
            for row in source.execute(table.select()):
                known = old.tables[table.name].c
                values = {k: v for k, v in row._mapping.items() if k in known}
                values |= {"format_version": 1} if table.name == "run" else {}
                plain = {k: _plain(table.c[k].type, v) for k, v in values.items()}
                target.execute(old.tables[table.name].insert().values(plain))


def _plain(kind: TypeEngine, value: object) -> object:
    return json.dumps(value) if isinstance(kind, Json) else value


def test_an_old_run_is_migrated_and_goes_on(opening):
    store = filled()
    engine = opening("create")
    write_format_1(engine, store)
    engine.dispose()
    engine = opening("write")
    migrated = SqlStore.open(engine, Path("run"))
    assert migrated.nodes() == store.nodes()
    assert migrated.asks() == store.asks()
    assert migrated.confirmations() == store.confirmations()
    for each in (store, migrated):
        each.record(sample_node(4))
        each.confirm(Confirmation(4, Failed("timeout", "again"), 3.0))
    assert migrated.nodes() == store.nodes()
    assert migrated.confirmations() == store.confirmations()
    engine.dispose()


def test_migrated_tables_are_those_of_a_new_database(opening):
    engine = opening("create")
    write_format_1(engine, filled())
    SqlStore.open(engine, Path("run"))
    with engine.begin() as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []
        for table in schema.metadata.sorted_tables:
            key = inspect(connection).get_pk_constraint(table.name)["constrained_columns"]
            assert key == [column.name for column in table.primary_key]
    assert SqlStore.create(engine, Path("two"), sample_run()).run_id == 2
    engine.dispose()


def test_an_old_file_is_read_without_a_change_to_it(tmp_path):
    engine = sqlite_engine(tmp_path / "run.db", "create")
    write_format_1(engine, filled())
    engine.dispose()
    before = (tmp_path / "run.db").read_bytes()
    with read_run(tmp_path) as run:
        assert run.store.nodes() == filled().nodes()
    assert (tmp_path / "run.db").read_bytes() == before


def test_old_files_are_migrated_at_the_same_time(tmp_path):
    folders = [tmp_path / str(number) for number in range(8)]
    for folder in folders:
        folder.mkdir()
        engine = sqlite_engine(folder / "run.db", "create")
        write_format_1(engine, filled())
        engine.dispose()

    def nodes(folder):
        with read_run(folder) as run:
            return run.store.nodes()

    with ThreadPoolExecutor(len(folders)) as pool:
        assert list(pool.map(nodes, folders)) == [filled().nodes()] * len(folders)


def test_an_old_database_that_may_only_be_read_is_refused(postgresql):
    url = postgresql.new_database(f"old{next(_names)}")
    engine = postgres_engine(url, "create")
    write_format_1(engine, filled())
    engine.dispose()
    with pytest.raises(BadInputError, match="in run format 1 and only read here; a command that"):
        SqlStore.open(postgres_engine(url, "read"), Path("run"))
