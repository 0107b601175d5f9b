import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError
from stored_runs import sample_node, sample_run

from adaexplore.core.errors import BadInputError
from adaexplore.core.node import Node
from adaexplore.store import Store, create_run, open_run, read_run
from adaexplore.store.sql import SqlStore
from adaexplore.store.sqlite import explain, sqlite_engine


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed run with three steps."""
    with create_run(tmp_path / "run", sample_run()) as run:
        for node_id in (1, 2, 3):
            run.store.record(sample_node(node_id))
    return tmp_path / "run"


def large_node(node_id: int) -> Node:
    return sample_node(node_id, filler=str(node_id) * 3000)


def fill(store: Store) -> str:
    """Record large steps until the storage refuses; return the message."""
    for node_id in range(store.node_count() + 1, 1000):
        try:
            store.record(large_node(node_id))
        except BadInputError as refusal:
            return str(refusal)
    raise AssertionError("the storage accepted everything")


def assert_continues(path: Path, large_from: int) -> None:
    """Assert that every stored step is intact and the next one can be recorded."""
    with open_run(path) as run:
        nodes = run.store.nodes()
        for node in nodes:
            assert node == (large_node if node.id >= large_from else sample_node)(node.id)
        run.store.record(sample_node(len(nodes) + 1))


def test_commits_use_a_synced_write_ahead_log(path):
    with sqlite_engine(path / "run.db", "write").connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL


def test_disk_full_names_the_last_step_and_the_remedy(path):
    engine = sqlite_engine(path / "run.db", "write")
    store = SqlStore.open(engine, path)
    with engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 60")
    message = fill(store)
    kept = store.node_count()
    assert kept > 3
    assert message == (
        f"cannot record step {kept + 1} in {path}: disk full; free some space, then continue with: "
        f"adaexplore resume {path} (the run is intact up to step {kept})"
    )
    store.close()
    assert_continues(path, large_from=4)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 KiB."""
    disk = tmp_path / "small disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a file system takes root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_reported(small_disk):
    path = small_disk / "run"
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(100_000))
    with create_run(path, sample_run()) as run:
        message = fill(run.store)
        kept = run.store.node_count()
    assert f"cannot record step {kept + 1}" in message
    assert "disk full" in message
    assert f"adaexplore resume '{path}'" in message  # quoted, because it contains a blank
    ballast.unlink()
    assert_continues(path, large_from=1)


def test_a_quota_is_a_disk_error(path):
    program = (
        "import resource, sys; from pathlib import Path; "
        "from test_sqlite import fill; from adaexplore.store import open_run\n"
        "run = open_run(Path(sys.argv[1]))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))\n"
        "print(fill(run.store))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "disk error; check the disk and its quota, then continue with:" in result.stdout
    assert_continues(path, large_from=4)


@pytest.mark.parametrize("opening", [open_run, read_run])
def test_a_file_that_is_not_a_database_is_damaged(path, opening):
    (path / "run.db").write_bytes(b"not a database, however long" * 1000)
    with pytest.raises(BadInputError, match=rf"{path}: run\.db is damaged; restore .*\.recover$"):
        opening(path)


def test_overwritten_pages_are_damage(path):
    with open_run(path) as run:
        for node_id in range(4, 40):
            run.store.record(sample_node(node_id, filler="x" * 3000))
    database = path / "run.db"
    whole = database.read_bytes()
    database.write_bytes(whole[: 5 * 4096] + b"\xff" * (len(whole) - 5 * 4096))
    with (
        read_run(path) as run,
        pytest.raises(BadInputError, match=r"cannot read the steps .*damag"),
    ):
        run.store.nodes()


def test_invalid_json_is_damage(path):
    with sqlite3.connect(path / "run.db") as connection:
        connection.execute("UPDATE nodes SET evaluation = '{' WHERE id = 2")
    connection.close()
    with read_run(path) as run, pytest.raises(BadInputError, match=r"run\.db is damaged"):
        run.store.nodes()


def test_a_database_locked_by_another_program_is_reported(path):
    engine = sqlite_engine(path / "run.db", "write")
    store = SqlStore.open(engine, path)
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout = 0")
    other = sqlite3.connect(path / "run.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BadInputError, match=r"another program holds run\.db; close that program"):
        store.record(sample_node(4))
    other.execute("ROLLBACK")
    other.close()
    store.record(sample_node(4))
    store.close()


def test_a_run_on_a_read_only_file_system_can_be_read(path):
    bind = ["mount", "--bind", "-o", "ro", str(path), str(path)]
    if subprocess.run(bind, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a file system takes root")
    try:
        with read_run(path) as run:
            assert run.store.node_count() == 3
        with pytest.raises(BadInputError, match="for writing: Read-only file system"):
            open_run(path)
    finally:
        subprocess.run(["umount", str(path)], check=True)


def test_a_programming_error_is_not_explained():
    cause = sqlite3.IntegrityError("UNIQUE constraint failed")
    assert explain(IntegrityError("INSERT", {}, cause)) is None


def test_the_database_refuses_a_row_without_a_value(tmp_path):
    create_run(tmp_path / "run", sample_run()).close()
    query = (
        "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c "
        """WHERE m.type = 'table' AND NOT c."notnull" """
    )
    with closing(sqlite3.connect(tmp_path / "run" / "run.db")) as connection:
        optional = set(connection.execute(query))
    assert optional == {("nodes", "ask_id"), ("asks", "proposal")}


def test_several_that_make_a_file_at_once_all_can(tmp_path):
    """Of the beginning of a log, SQLite's own timeout says at once that somebody else has it."""

    def begin(path):
        engine = sqlite_engine(path, "create")
        together.wait()
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS made (x)")
        engine.dispose()

    together = threading.Barrier(4, timeout=20)
    with ThreadPoolExecutor(4) as threads:
        for number in range(60):
            list(threads.map(begin, [tmp_path / f"{number}.db"] * 4))
