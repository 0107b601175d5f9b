"""PostgreSQL beyond the contract of a store: many runs, their writers, kills, and refusals."""

import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError
from sqlalchemy import create_engine, make_url, text
from stored_runs import sample_node, sample_run

from adaexplore.core.errors import BadInputError, RunInUseError
from adaexplore.core.settings.config import Config
from adaexplore.store import create_run, export_run, is_run, make_run, open_run, read_run
from adaexplore.store.directory import remove_unfinished
from adaexplore.store.postgres import postgres_engine

WRITER = Path(__file__).with_name("endless_writer.py")
DIES = Path(__file__).with_name("dies_creating.py")


def run_in(url: str):
    run = sample_run()
    return replace(run, config=run.config.model_copy(update={"store": url}))


@pytest.fixture
def path(tmp_path, postgresql):
    """A closed run in the server's database."""
    create_run(tmp_path / "one", run_in(postgresql.url)).close()
    return tmp_path / "one"


def start_writer(path: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, str(WRITER), str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def counted(url: str, sql: str) -> int:
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
    with engine.connect() as connection:
        found = connection.execute(text(sql)).scalar_one()
    engine.dispose()
    return found


def test_the_folder_names_the_database_and_nothing_is_in_it_twice(path, tmp_path):
    assert [entry.name for entry in path.iterdir()] == ["run.url"]
    assert is_run(path)
    with open_run(path) as run:
        run.store.record(sample_node(1))
    with read_run(path) as run:
        assert run.store.nodes() == [sample_node(1)]
        export_run(run.store, tmp_path / "run.json.xz")
    with read_run(tmp_path / "run.json.xz") as run:
        assert run.store.nodes() == [sample_node(1)]


def test_runs_in_one_database_do_not_see_each_other(path, tmp_path, postgresql):
    with create_run(tmp_path / "two", run_in(postgresql.url)) as two, open_run(path) as one:
        with pytest.raises(RunInUseError):
            open_run(tmp_path / "two")
        one.store.record(sample_node(1))
        two.store.record(sample_node(1))
        two.store.record(sample_node(2))
        assert one.store.nodes() == [sample_node(1)]
        assert two.store.node_count() == 2


def test_a_second_writer_is_refused_until_the_first_is_gone(path):
    with start_writer(path) as writer:
        writer.stdout.readline()
        with pytest.raises(RunInUseError, match=f"^run directory {path} is in use by another"):
            open_run(path)
        with read_run(path) as run:
            assert run.store.node_count() >= 1
        writer.kill()
    for _ in range(100):
        try:
            open_run(path).close()
            break
        except RunInUseError:  # the server has not seen the end of the connection yet
            time.sleep(0.05)
    else:
        pytest.fail("the run of a killed writer stays locked")


@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_kill_9_of_writers_and_of_the_server_loses_and_doubles_nothing(
    tmp_path, postgresql, rounds
):
    """Two writers in one database; each round kills them, and every second the server too."""
    rng = random.Random(2)
    paths = [tmp_path / f"run{number}" for number in range(2)]
    for path in paths:
        create_run(path, run_in(postgresql.url)).close()
    for round_number in range(rounds):
        writers = [start_writer(path) for path in paths]
        printed = [[writer.stdout.readline()] for writer in writers]
        time.sleep(0.1 * rng.random())
        victims = [postgresql.kill] if round_number % 2 else []
        for kill in victims + [writer.kill for writer in writers]:
            kill()
        for lines, writer in zip(printed, writers, strict=True):
            lines += writer.communicate()[0].splitlines()
        if victims:
            postgresql.start()
        for path, lines in zip(paths, printed, strict=True):
            with read_run(path) as run:
                nodes = run.store.nodes()
            assert len(nodes) in (int(lines[-1]), int(lines[-1]) + 1)
            assert nodes == [sample_node(node_id) for node_id in range(1, len(nodes) + 1)]
    rows = "SELECT count(*) - count(DISTINCT (run_id, id)) FROM nodes"
    assert counted(postgresql.url, rows) == 0


def test_a_writer_that_lost_its_run_to_another_cannot_write(path, postgresql):
    with open_run(path) as first:
        first.store.record(sample_node(1))
        postgresql.kill()
        postgresql.start()
        with pytest.raises(BadInputError, match=r"record step 2 in .*: the database cannot be rea"):
            first.store.record(sample_node(2))
        with open_run(path) as second:
            with pytest.raises(RunInUseError, match="in use by another process"):
                first.store.record(sample_node(2))
            second.store.record(sample_node(2))
    with read_run(path) as run:
        assert run.store.node_count() == 2


def test_commits_are_durable_and_reads_see_one_state(postgresql):
    with postgres_engine(postgresql.url, "read").connect() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
        assert connection.exec_driver_sql("SHOW transaction_isolation").scalar() == (
            "repeatable read"
        )


def test_a_server_that_is_down_is_named(path, postgresql):
    postgresql.kill()
    try:
        with pytest.raises(BadInputError, match=r"cannot open the run in .*: the database cannot"):
            read_run(path)
    finally:
        postgresql.start()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://me@host/runs", "write the database as postgresql://USER@HOST/NAME"),
        ("postgresql://me@host", "write the database as postgresql://USER@HOST/NAME"),
        ("postgresql://me:secret@host/runs", "leave the password to PGPASSWORD or ~/.pgpass"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused(url, message):
    with pytest.raises(ValidationError, match=message):
        Config(store=url)


def test_a_damaged_pointer_is_named(path):
    (path / "run.url").write_text("postgresql://host/runs\n")
    with pytest.raises(BadInputError, match=r"run\.url is damaged: write URL#ID"):
        read_run(path)


@pytest.mark.parametrize(
    ("how", "when"),
    [("create", "write_text"), ("create", "before rename"), ("make", "rename")],
)
def test_a_kill_while_a_run_is_made_leaves_no_row_without_a_folder(tmp_path, postgresql, how, when):
    url = postgresql.new_database(f"dies{time.monotonic_ns()}")
    path = tmp_path / "one"
    dies = [sys.executable, str(DIES), str(path), url, how, when]
    assert subprocess.run(dies, timeout=60).returncode == -9
    for _ in range(100):
        try:
            if not is_run(path):
                make_run(path, run_in(url))
            break
        except RunInUseError:  # the server has not seen the end of the connection yet
            time.sleep(0.05)
    with read_run(path) as run:
        assert run.store.node_count() == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["one"]
    assert [entry.name for entry in path.iterdir()] == ["run.url"]
    assert counted(url, "SELECT count(*) FROM run") == 1


def test_a_run_that_is_being_made_is_not_removed(tmp_path, postgresql):
    with create_run(tmp_path / "one", run_in(postgresql.url)) as run:
        (tmp_path / "one" / "run.url").rename(tmp_path / "one" / "run.url.new")
        with pytest.raises(RunInUseError):
            remove_unfinished(tmp_path / "one")
        run.store.record(sample_node(1))
