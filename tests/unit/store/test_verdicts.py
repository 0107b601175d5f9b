"""The database of shared verdicts: bounds, several processes, failures."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.store import verdicts as module
from adaexplore.store.verdicts import SqlVerdicts, open_verdicts

WRONG = Failed("wrong_output", "a", "b\0c")
WRITES = """
import sys
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.store.verdicts import open_verdicts
verdicts = open_verdicts(sys.argv[1])
for number in range(20):
    verdicts.keep(str(number), Failed("wrong_output", sys.argv[2]))
    assert verdicts.find(str(number)).taken_over
assert not verdicts._is_lost
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "verdicts.db")
    server = request.getfixturevalue("postgresql")
    return server.new_database(f"verdicts{abs(hash(tmp_path)):x}")


def test_the_first_verdict_under_a_key_stays_until_it_is_too_old(place, monkeypatch):
    verdicts = open_verdicts(place)
    assert verdicts.find("k") is None
    verdicts.keep("k", WRONG)
    verdicts.keep("k", Failed("wrong_output", "later"))
    assert replace(verdicts.find("k"), taken_over=None) == WRONG
    monkeypatch.setattr(module, "MOST_DAYS", -1.0)
    assert verdicts.find("k") is None
    verdicts.keep("k", Failed("wrong_output", "new"))
    monkeypatch.setattr(module, "MOST_DAYS", 1.0)
    assert verdicts.find("k").reason == "new"
    verdicts.close()


def test_the_oldest_go_when_there_are_too_many(place, monkeypatch):
    monkeypatch.setattr(module, "_TRIM_EVERY", 1)
    first = open_verdicts(place)
    verdicts = SqlVerdicts(first._engine, most=3)
    for number in range(6):
        verdicts.keep(str(number), WRONG)
    assert [bool(verdicts.find(str(number))) for number in range(6)] == [False] * 3 + [True] * 3
    size = verdicts.size()
    assert (size.verdicts, sum(size.machines.values())) == (3, 3)
    assert size.oldest < size.latest
    assert verdicts.clear(3600.0) == 0
    assert verdicts.clear() == 3
    assert verdicts.size().verdicts == 0
    verdicts.close()


def test_several_processes_make_and_use_one_cache(place):
    def write(name: str) -> int:
        command = [sys.executable, "-c", WRITES, place, name]
        return subprocess.run(command, timeout=60).returncode

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(write, "abc")) == [0, 0, 0]
    verdicts = open_verdicts(place)
    assert verdicts.size().verdicts == 20
    verdicts.close()


def test_a_run_goes_on_without_a_cache_that_is_damaged_meanwhile(tmp_path):
    place = tmp_path / "verdicts.db"
    verdicts = open_verdicts(str(place))
    verdicts.keep("k", WRONG)
    verdicts.close()
    place.write_bytes(b"no database at all, but some text" * 99)
    for stale in tmp_path.glob("verdicts.db-*"):
        stale.unlink()
    verdicts.keep("k", WRONG)
    assert verdicts.find("k") is None


def test_a_run_goes_on_without_a_server_that_ends_meanwhile(postgresql):
    verdicts = open_verdicts(postgresql.new_database("ending"))
    verdicts.keep("k", WRONG)
    postgresql.kill()
    try:
        verdicts.keep("l", WRONG)
        assert verdicts.find("k") is None
    finally:
        postgresql.start()
    verdicts.close()


def test_damage_names_the_file(tmp_path):
    place = tmp_path / "my verdicts.db"
    verdicts = open_verdicts(str(place))
    verdicts.keep("k", WRONG)
    verdicts.close()
    content = bytearray(place.read_bytes())
    content[4096:] = b"\xff" * len(content[4096:])
    place.write_bytes(content)
    with pytest.raises(BadInputError, match=rf"it is damaged; .*: sqlite3 '{place}' \.recover$"):
        open_verdicts(str(place)).size()


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("/proc/none/verdicts.db", "^the evaluation cache /proc/none/verdicts.db: "),
        ("/proc/version", "^the evaluation cache /proc/version: "),
        ("/proc", "^the evaluation cache /proc: is a directory; name a file$"),
        (__file__, "test_verdicts.py is no evaluation cache; name another file$"),
        ("postgresql://me@/runs?host=/nowhere", "cannot be reached; start it"),
    ],
)
def test_a_place_that_cannot_be_used_is_refused_in_one_line(place, message):
    with pytest.raises(BadInputError, match=message) as refused:
        open_verdicts(place)
    assert "\n" not in str(refused.value)
