import sqlite3
from pathlib import Path

import pytest
from stored_runs import sample_node, sample_run

from adaexplore.core.errors import BadInputError
from adaexplore.store import FORMAT_VERSION, create_run, open_run, read_run
from adaexplore.store.sql import SqlStore
from adaexplore.store.sqlite import sqlite_engine


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create_run(tmp_path / "run", sample_run()).close()
    return tmp_path / "run"


def query(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path / "run.db", isolation_level=None)
    rows = connection.execute(sql).fetchall()
    connection.close()
    return rows


def test_a_candidate_is_stored_once(path):
    with open_run(path) as run:
        for node_id in range(1, 21):  # five different candidates
            run.store.record(sample_node(node_id))
        nodes = run.store.nodes()
    assert query(path, "SELECT count(*) FROM candidates") == [(5,)]
    assert query(path, "SELECT count(*) FROM nodes") == [(20,)]
    assert nodes[0].candidate is nodes[5].candidate
    assert query(path, "SELECT digest FROM candidates ORDER BY digest") == sorted(
        (digest,) for digest in {node.candidate.digest for node in nodes}
    )


@pytest.mark.parametrize("opening", [open_run, read_run])
def test_a_run_of_a_newer_release_names_both_formats(path, opening):
    query(path, "UPDATE run SET format_version = 9")
    query(path, "ALTER TABLE run DROP COLUMN config")  # an incompatible change
    with pytest.raises(BadInputError) as refusal:
        opening(path)
    assert str(refusal.value) == (
        f"{path} is in run format 9, this adaexplore reads up to {FORMAT_VERSION}; "
        "upgrade it with: pip install --upgrade adaexplore"
    )


@pytest.mark.parametrize("opening", [open_run, read_run])
def test_an_interrupted_creation_is_not_a_run(tmp_path, opening):
    (tmp_path / "run.db").touch()
    with pytest.raises(BadInputError, match="holds no run: its creation was interrupted"):
        opening(tmp_path)


def test_creation_is_all_or_nothing(tmp_path):
    engine = sqlite_engine(tmp_path / "run.db", "create")
    with engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 4")
    with pytest.raises(
        BadInputError, match=r"cannot create the run in .*: disk full; free some sp"
    ):
        SqlStore.create(engine, tmp_path, sample_run())
    engine.dispose()
    assert query(tmp_path, "SELECT count(*) FROM sqlite_master") == [(0,)]
