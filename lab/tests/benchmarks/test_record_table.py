"""The tables of record count every answer that was drawn, and say how sure a mean is."""

import json

import pytest
import record_table

from adaexplore.core import Failed, Passed, Timing, evaluation_to_json


def timing(speedup, low, high):
    baselines = {"eager": 30.0, "compile": 20.0}
    return Timing(20 / speedup, (9.0, 11.0), baselines, speedup, (low, high), 1.5 * speedup, 40)


def passed(speedup, low=None, high=None):
    measured = timing(speedup, low or 0.99 * speedup, high or 1.01 * speedup)
    return Passed("tf32", 1e-4, timing=measured)


@pytest.fixture
def folder(tmp_path):
    """A folder of seven answers of two collections; one has no verdict."""
    found = [
        ("a", "1/10", passed(4.0), {}),
        ("a", "1/9", passed(1.0, 0.5, 1.9), {}),
        ("a", "2/1", Failed("wrong_output", "off | by\n1"), {}),
        ("a", "2/2", passed(50.0), {"constant": "it is"}),
        ("b", "1/1", None, {}),
        ("b", "1/2", Failed("infra_error", "the judge is gone"), {}),
    ]
    entries = [
        {"collection": name, "place": key, "digest": "", "key": key}
        for name, key in [*((name, key) for name, key, _, _ in found), ("a", "3/1")]
    ]
    lines = [
        {
            "entry": entry,
            "evaluation": evaluation_to_json(evaluation) if evaluation else None,
            "labels": labels,
            "unjudged": "" if evaluation else "it is random",
        }
        for entry, (_, _, evaluation, labels) in zip(entries, found, strict=False)
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in [*lines[1:], lines[0]])
    (tmp_path / "verdicts.jsonl").write_text(f'{text}{{"cut')
    (tmp_path / "bench.json").write_text(json.dumps({"entries": entries}))
    return tmp_path


def cells(table, name):
    head, _, *rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    return [dict(zip(head, row, strict=False)) for row in rows if row[0] == name]


def test_all_that_was_drawn_is_judged_or_counted_as_not_judged(folder):
    table = record_table.collections_table(*record_table.read(folder))
    [a], [b] = cells(table, "a"), cells(table, "b")
    assert (a["drawn"], a["judged"], a["passed"], a["faster"]) == ("5", "4", "3", "2")
    assert a["verdicts"] == "1 wrong output"
    assert a["no verdict"] == "1"
    assert (b["judged"], b["not judged"], b["no verdict"]) == ("0", "1", "1")


def test_a_mean_is_over_ordinary_problems_and_a_noisy_answer_counts_by_its_lower_end(folder):
    [a] = cells(record_table.collections_table(*record_table.read(folder)), "a")
    assert a["mean (95 %)"].startswith("1.41x")  # of 4 and of 0.5
    assert a["fast_1"] == "33%"
    assert a["labelled, their mean"] == "1, 50.00x"


def test_the_interval_of_a_mean_holds_it_and_narrows_with_the_number():
    few, many = ([1.0, 4.0] * count for count in (2, 200))
    (low, high), (tight_low, tight_high) = map(record_table.interval_of_mean, (few, many))
    assert low < tight_low < 2 < tight_high < high


def test_answers_stand_in_the_order_of_their_problems_with_interval_and_baseline(folder):
    _, verdicts = record_table.read(folder)
    rows = cells(record_table.answers_table(verdicts), "a")
    assert [row["problem"] for row in rows] == ["1/9", "1/10", "2/1", "2/2"]
    assert rows[0]["verdict"] == "passed, too noisy"
    assert rows[1]["like for like (95 %)"] == "4.00x (3.96 to 4.04)"
    assert rows[1]["strongest baseline"] == "compile"
    assert rows[2]["verdict"] == r"wrong output: off \| by 1"
    [random, _] = cells(record_table.answers_table(verdicts), "b")
    assert random["verdict"] == "not judged: it is random"
