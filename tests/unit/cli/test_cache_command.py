"""Verdicts that commands share."""

import json

import pytest


def test_a_second_command_takes_over_the_verdict_until_it_is_cleared(
    adaexplore, problem, candidate, file, tmp_path
):
    wrong = file("wrong.py", candidate.read_text().replace("+ 1", "+ 2"))
    place = str(tmp_path / "verdicts.db")
    words = ("evaluate", problem, wrong, "--device", "cpu", "--evaluation-cache", place)

    def judged():
        return json.loads(adaexplore(*words, "--json").out)

    first, second = judged(), judged()
    assert first["taken_over"] is None
    assert second["taken_over"].keys() == {"machine", "at"}
    assert (second["status"], second["reason"]) == (first["status"], first["reason"])
    assert second["cost"] == {"wall_s": 0.0, "device_s": 0.0, "took_s": {}}
    assert adaexplore(*words).out.startswith("taken over from the evaluation cache: judged on ")
    assert adaexplore("cache", "size", place).out.startswith("verdicts: 1\n")
    assert adaexplore("cache", "clear", place, "--days", 1).out == "verdicts forgotten: 0\n"
    assert adaexplore("cache", "clear", place).out == "verdicts forgotten: 1\n"


@pytest.mark.parametrize("command", ["size", "clear"])
def test_a_cache_that_is_not_there_is_not_made(adaexplore, tmp_path, command):
    line = adaexplore("cache", command, tmp_path / "new" / "missing.db").complaint
    assert "missing.db: no such cache" in line
    assert list(tmp_path.iterdir()) == []
    other = tmp_path / "other.db"
    other.touch()
    line = adaexplore("cache", command, other).complaint
    assert line.endswith(f"{other} is no evaluation cache; name another place")
    assert other.stat().st_size == 0


def test_a_place_that_is_none_is_refused_in_one_line(adaexplore):
    for place, why in {
        "off": "is no place of a cache",
        "mysql://x/y": "write the database as postgresql://",
        "/proc/none/verdicts.db": "/proc/none/verdicts.db: no such cache",
    }.items():
        assert why in adaexplore("cache", "size", place).complaint
