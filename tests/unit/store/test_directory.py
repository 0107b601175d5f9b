import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stored_runs import sample_node, sample_run

from adaexplore.core.errors import BadInputError
from adaexplore.store import create_run, make_run, open_run, read_run, require_free

WRITER = Path(__file__).with_name("endless_writer.py")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed run with three steps."""
    path = tmp_path / "runs" / "one"
    with create_run(path, sample_run()) as run:
        for node_id in (1, 2, 3):
            run.store.record(sample_node(node_id))
    return path


def start_writer(path: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, str(WRITER), str(path)], stdout=subprocess.PIPE, text=True
    )


def test_a_run_is_one_directory(path):
    assert sorted(entry.name for entry in path.iterdir()) == ["run.db", "run.lock"]
    with read_run(path) as run:
        assert run.path == path
        assert run.best_path == path / "best.py"
        assert run.report_path == path / "report.html"
        assert run.store.run() == sample_run()
        assert run.store.nodes() == [sample_node(node_id) for node_id in (1, 2, 3)]


def test_an_opened_run_continues(path):
    with open_run(path) as run:
        run.store.record(sample_node(4))
    with open_run(path) as run:
        assert run.store.node_count() == 4


def test_a_run_may_be_closed_twice(path):
    run = open_run(path)
    run.close()
    run.close()
    open_run(path).close()


def test_an_empty_directory_may_become_a_run(tmp_path):
    create_run(tmp_path, sample_run()).close()
    read_run(tmp_path).close()


def test_make_run_replaces_the_remains_of_a_kill(tmp_path):
    path = tmp_path / "run"
    half = tmp_path / ".run.new"
    half.mkdir()
    (half / "run.db").write_bytes(b"half")
    make_run(path, sample_run())
    assert not half.exists()
    with open_run(path) as run:
        assert run.store.run().seed == sample_run().seed
    with pytest.raises(BadInputError, match="exists and is not empty"):
        make_run(path, sample_run())


def test_a_run_is_never_created_over_existing_files(path, tmp_path):
    with pytest.raises(BadInputError, match=r"exists and is not empty.*--run.*adaexplore resume"):
        create_run(path, sample_run())
    assert read_run(path).store.node_count() == 3
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(
        BadInputError, match=r"cannot create the run directory .*file: Not a directory"
    ):
        create_run(file, sample_run())
    with pytest.raises(BadInputError, match=r"file is no folder that you may write to.*--run"):
        create_run(file / "below" / "it", sample_run())
    assert file.read_text() == "mine"


def test_a_place_that_only_seems_writable_is_refused_before_a_run_is_made(tmp_path):
    with pytest.raises(BadInputError, match=r"/proc is no folder that you may write to.*--run"):
        require_free(Path("/proc/run"))  # for root, its rights allow to write there
    require_free(tmp_path / "below" / "run")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("opening", [open_run, read_run])
def test_a_path_that_is_not_a_run_is_refused_and_unchanged(opening, tmp_path):
    with pytest.raises(BadInputError, match="is not a run directory: it does not exist"):
        opening(tmp_path / "nowhere")
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(BadInputError, match="is not a run directory: it is a file"):
        opening(file)
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(BadInputError, match=r"is not a run directory: there is no run\.db in it"):
        opening(other)
    assert list(other.iterdir()) == []
    inside = other / "search" / "block"
    inside.mkdir(parents=True)
    (inside / "run.db").touch()
    with pytest.raises(BadInputError, match=f"in it; it holds runs: name one, such as {inside}$"):
        opening(other)


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\0\x80",
        b"postgresql://a@b/\xff#7",
        b"postgresql://a@b/c\0#7",
        b"words#7",
        b"postgresql://a@b/c#" + b"9" * 5000,
    ],
)
def test_a_pointer_to_no_database_is_damaged(tmp_path, content):
    (tmp_path / "run.url").write_bytes(content)
    with pytest.raises(BadInputError, match=r"run\.url is damaged: write URL#ID"):
        read_run(tmp_path)


def test_a_second_writer_is_refused_and_readers_do_not_wait(path):
    with start_writer(path) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        message = f"^run directory {path} is in use by another process \\(pid {writer.pid}\\)$"
        with pytest.raises(BadInputError, match=message):
            open_run(path)
        with read_run(path) as run:
            before = run.store.node_count()
            recorded = int(writer.stdout.readline())
            while recorded <= before:
                recorded = int(writer.stdout.readline())
            assert run.store.node_count() >= recorded
            assert run.store.nodes()[:5] == [sample_node(node_id) for node_id in range(1, 6)]
        writer.kill()
    open_run(path).close()


def test_the_lock_also_holds_within_one_process(path):
    with open_run(path), pytest.raises(BadInputError, match=rf"in use .*\(pid {os.getpid()}\)"):
        open_run(path)


def test_a_failed_opening_releases_the_lock(path):
    database = path / "run.db"
    whole = database.read_bytes()
    database.write_bytes(b"no database" * 1000)
    with pytest.raises(BadInputError, match="damaged"):
        open_run(path)
    database.write_bytes(whole)
    open_run(path).close()


def test_kill_9_at_any_moment_loses_at_most_the_step_in_flight(path):
    rng = random.Random(0)
    for _ in range(6):
        with start_writer(path) as writer:
            assert writer.stdout is not None
            printed = [writer.stdout.readline() for _ in range(rng.randint(1, 40))]
            time.sleep(rng.random() * 0.02)
            writer.kill()
            printed += writer.stdout.readlines()
        last_printed = int(printed[-1])
        with read_run(path) as run:
            nodes = run.store.nodes()
        assert len(nodes) in (last_printed, last_printed + 1)
        assert nodes == [sample_node(node_id) for node_id in range(1, len(nodes) + 1)]
