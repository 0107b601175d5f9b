from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.verdict.evaluation import Cost
from adaexplore.report import text
from adaexplore.report.calls import CallTotals


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(2.314, "2.31×"), (1.0042, "1.004×"), (12.34, "12.3×"), (263.4, "263×"), (0.0042, "0.0042×")],
)
def test_speedups_have_significant_digits(ratio, shown):
    assert text.speedup(ratio) == shown


@pytest.mark.parametrize(
    ("time_us", "shown"),
    [
        (0.5, "0.50 µs"),
        (31.25, "31.2 µs"),
        (312.4, "312 µs"),
        (1240.0, "1.24 ms"),
        (2.5e6, "2.50 s"),
    ],
)
def test_times_have_a_short_unit(time_us, shown):
    assert text.duration_us(time_us) == shown


@pytest.mark.parametrize(
    ("time_s", "shown"),
    [(0.0, "0 s"), (0.42, "0.42 s"), (37.2, "37 s"), (125.0, "2 min 05 s"), (4320.0, "1 h 12 min")],
)
def test_long_durations_have_several_units(time_s, shown):
    assert text.duration_s(time_s) == shown


@pytest.mark.parametrize(
    ("took_s", "shown"),
    [
        ({}, "50 s"),
        ({"being timed": 30.0, "its first call": 4.9}, "50 s (being timed 30 s)"),
        (
            {"a": 5.0, "b": 12.0, "waiting for the device": 20.0, "c": 9.0},
            "50 s (waiting for the device 20 s, b 12 s, c 9 s)",
        ),
    ],
)
def test_the_time_of_evaluations_names_its_largest_parts(took_s, shown):
    assert text.cost_s(Cost(50.0, 1.0, took_s)) == shown


@pytest.mark.parametrize(
    ("error", "shown"), [(None, ""), (0.0, "0"), (1.23e-7, "1.2e-7"), (math.inf, "inf")]
)
def test_errors_are_short(error, shown):
    assert text.relative_error(error) == shown


@pytest.mark.parametrize(
    ("spent", "shown"),
    [
        (CallTotals(1, 900, 20, unpriced=1), "1 call, 900 tok in, 20 tok out, unknown price"),
        (
            CallTotals(7, 31_200, 4_100, cost_usd=0.03124, waited_s=100.0),
            "7 calls, 31.2 ktok in, 4.10 ktok out, 0.0312 USD, 1 min 40 s waiting",
        ),
        (
            CallTotals(3, 2_500_000, 50, estimated=1, cost_usd=12.345, unpriced=1),
            "3 calls, about 2.50 Mtok in, about 50 tok out, 12.35 USD and 1 of unknown price",
        ),
        (
            CallTotals(1, 900, 20, estimated=1, by_hand=1),
            "1 call, about 900 tok in, about 20 tok out",
        ),
        (
            CallTotals(3, 900, 20, unpriced=1, by_hand=2),
            "3 calls, 900 tok in, 20 tok out, unknown price",
        ),
    ],
)
def test_call_totals_in_one_line(spent, shown):
    assert text.spent(spent) == shown


@given(st.text(), st.integers(1, 40))
def test_one_line_is_printable_and_within_its_limit(message, limit):
    line = text.one_line(message, limit)

    assert len(line) <= limit
    assert line.isprintable()


def test_one_line_strips_terminal_escapes():
    assert text.one_line("red \x1b[31mtext\nnext") == "red [31mtext next"


def test_facts_are_flat_rows():
    nested = {
        "git": {"commit": "abc", "dirty": False},
        "gpu": None,
        "sets": ["own", "large"],
        "c": 0.3,
    }

    assert text.facts(nested) == [
        ("git.commit", "abc"),
        ("git.dirty", "no"),
        ("gpu", "none"),
        ("sets", "own, large"),
        ("c", "0.3"),
    ]
