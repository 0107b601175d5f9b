"""The process that works on a search, as the live pages see it: in files and in PostgreSQL."""

import os
import platform
import signal
import subprocess
import sys
import time

import pytest
from live_runs import HOLD, at_work, campaign, make_run, passed, step
from services import PROBLEM

from adaexplore.core.errors import BadInputError
from adaexplore.core.settings.config import Config
from adaexplore.serve.page import shelf as shelf_module
from adaexplore.serve.page.shelf import FolderShelf
from adaexplore.store import holders

CAMPAIGN = HOLD.replace("open_run", "hold_lock").replace("store import", "store.directory import")


@pytest.fixture(autouse=True)
def _look_each_time(monkeypatch):
    monkeypatch.setattr(holders, "_LOOK_S", -1.0)
    monkeypatch.setattr(shelf_module, "_LOOK_S", -1.0)


@pytest.fixture
def new_database(postgresql):
    """Make a function that returns the URL of an empty database."""
    return lambda: postgresql.new_database(f"pages{time.monotonic_ns()}")


@pytest.fixture(params=["files", "postgresql"])
def config(request):
    """Settings of a search whose records are in files, or in a database of its own."""
    if request.param == "files":
        return Config(steps=9)
    return Config(steps=9, store=request.getfixturevalue("new_database")())


@pytest.fixture
def found(tmp_path, config):
    """The shelf of a folder with one run, and the run's entry."""
    make_run(tmp_path / "night", step(1, 0, passed(1.2)), config=config)
    make_run(tmp_path / "other", step(1, 0, passed(1.2)), config=config)
    shelf = FolderShelf([tmp_path])
    return shelf, *shelf.entries()


def test_stop_interrupts_the_process_that_holds_the_run_and_no_other(found, eventually):
    shelf, entry, other = found
    (entry.path / "run.lock").write_text(str(os.getpid()))  # a holder of long ago
    assert shelf.state(entry) == ""
    with pytest.raises(BadInputError, match="nothing runs here"):
        shelf.stop(entry)
    with at_work(entry.path) as process:
        assert (shelf.state(entry), shelf.state(other)) == ("running", "")
        with pytest.raises(BadInputError, match="at work already"):
            shelf.go_on(entry)
        shelf.stop(entry)
        assert process.stdout.readline() == "stopped\n"
    assert eventually(lambda: shelf.state(entry) == "")


def test_a_search_that_is_killed_is_not_running(found, eventually):
    shelf, entry, _ = found
    with at_work(entry.path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert eventually(lambda: shelf.state(entry) == "")


def test_a_search_that_ignores_interrupts_is_told_of(found):
    shelf, entry, _ = found
    script = HOLD.replace("with open_run", "signal.signal(2, signal.SIG_IGN)\nwith open_run")
    with at_work(entry.path, script) as process, pytest.raises(BadInputError) as refused:
        shelf.stop(entry)
    assert f"ignores Ctrl-C; nothing recorded is lost with: kill {process.pid}" in str(
        refused.value
    )


def test_a_campaign_is_running_while_its_folder_or_a_run_in_a_database_is_held(
    tmp_path, config, eventually
):
    campaign(tmp_path / "all")
    for name in ("a", "b"):
        make_run(tmp_path / "all" / name, config=config)
    shelf = FolderShelf([tmp_path])
    entry, _, last = shelf.entries()
    with at_work(last.path if config.store else entry.path, HOLD if config.store else CAMPAIGN):
        assert shelf.state(entry) == "running"
    assert eventually(lambda: shelf.state(entry) == "")


@pytest.mark.slow
def test_a_real_search_in_a_database_is_running_until_it_is_killed(
    tmp_path, new_database, file, eventually
):
    problem, run, shelf = file("relu.py", PROBLEM), tmp_path / "run", FolderShelf([tmp_path])
    words = ["explore", problem, "--run", run, "--store", new_database(), "--steps", 50]
    words += ["--proposer", "compiler", "--device", "cpu", "--language", "cpp"]
    command = [sys.executable, "-P", "-m", "adaexplore", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        assert eventually(lambda: [*map(shelf.state, shelf.entries())] == ["running"])
        process.kill()
    assert eventually(lambda: [*map(shelf.state, shelf.entries())] == [""])


def test_a_search_of_another_machine_is_running_and_stopped_there(tmp_path, new_database):
    make_run(tmp_path / "night", config=Config(store=new_database()))
    shelf = FolderShelf([tmp_path])
    [entry] = shelf.entries()
    elsewhere = "import platform\nplatform.node = lambda: 'gpu-7'\n"
    with at_work(entry.path, elsewhere + HOLD) as process:
        assert shelf.state(entry) == "running"
        with pytest.raises(BadInputError, match=f"elsewhere .*adaexplore {process.pid} of gpu-7"):
            shelf.stop(entry)
        assert process.poll() is None
    assert platform.node() != "gpu-7"
