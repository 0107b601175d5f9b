"""The tables over released kernels say what their rows say."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

NUMBERS = st.floats(0.01, 1e6)


def row(key, status="passed", precision="fp32", *, criterion=True, speedup=1.0, **more):
    """A row of a kernel whose last attempt ended so."""
    passed = status == "passed"
    evaluation = {
        "status": status,
        "precision": precision if passed else None,
        "error": 1e-7,
        "time_us": 100.0 / speedup if passed else None,
        "speedup": speedup if passed else None,
        "speedup_ci": [speedup, speedup] if passed else None,
        "speedup_eager": 2 * speedup if passed else None,
        "reason": "" if passed else "because",
    }
    return {
        "key": list(key),
        "name": f"{key[0]}/{key[1]}_Some",
        "recorded": {"recorded": 3.0, "measured": 2.0},
        "attempts": [{"precision": precision, "evaluation": evaluation}],
        "criterion": {"passes": criterion, "why": "" if criterion else "off by 1"},
        "facts": {"labels": []},
        "stopped": "",
        "unjudged": "",
        "wall_s": 3.0,
    } | more


def cells(text, first):
    """The cells of the line that begins with `first`."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {first} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_means_leave_labelled_problems_to_their_own_line():
    from released_tables import report

    rows = [
        row((2, 1), speedup=2.0),
        row((2, 2), "passed", "half", speedup=8.0),
        row((2, 3), speedup=100.0, facts={"labels": ["constant"]}),
        row((3, 1), "wrong_output"),
    ]
    text = report(rows)
    assert cells(text, "no label")[1:] == ["2", "4.00x", "8.00x", "3.00x"]
    assert cells(text, "no label, half")[1:3] == ["1", "8.00x"]
    assert cells(text, "constant")[1:3] == ["1", "100.00x"]


def test_verdicts_are_counted_by_level_and_class():
    from released_tables import report

    text = report([row((2, 1)), row((3, 1)), row((3, 2)), row((3, 3), "timeout")])
    assert cells(text, "passed, fp32") == ["passed, fp32", "1", "2", "3"]
    assert cells(text, "timeout") == ["timeout", "0", "1", "1"]


def test_disagreements_are_listed_with_their_reasons():
    from released_tables import report

    stopped = row((2, 5), stopped="not done after 9 s", attempts=[])
    looser = row((2, 6), "passed", "half")
    looser["attempts"] = looser["attempts"] * 2
    rows = [
        row((2, 1)),
        row((2, 2), "wrong_output"),
        row((2, 3), criterion=False),
        row((2, 4), "wrong_output", criterion=False),
        stopped,
        looser,
    ]
    text = report(rows)
    assert "Passed by 5e-2, refused here: 1 of 5\n\n- 2/2_Some: wrong_output: because\n" in text
    assert "Refused by 5e-2, passed here: 1 of 5\n\n- 2/3_Some: passed as fp32" in text
    assert "in a looser class only: 1 of 5\n\n- 2/6_Some: passed as half" in text


def test_comparing_counts_agreement_and_ranks_times():
    from released_tables import comparison

    gpu = [row((2, i), speedup=float(i)) for i in range(1, 6)] + [row((2, 9), "timeout")]
    offline = [row((2, i), speedup=float(i)) for i in range(1, 5)] + [row((2, 9))]
    for r in offline:
        last = r["attempts"][-1]["evaluation"]
        last["estimate"] = {"time_us": 10 * last.pop("time_us")}
        last["speedup_eager"] = None
        r["facts"]["estimate"] = {"time_us": 500.0}
    text = comparison(offline, gpu)
    assert "5 kernels in both; 4 pass in both or in neither" in text
    assert "- 2/9_Some: passed as fp32, error 1.0e-07; second: timeout: because" in text
    assert "times of 4 kernels: Spearman 1.00, 0 within a factor of 2, median ratio 10.00" in text
    assert "speedups over eager of 4 kernels: Spearman 1.00" in text


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=3, max_size=20))
def test_spearman_is_what_it_is_by_its_definition(pairs):
    from released_tables import spearman

    found = spearman(pairs)
    first, second = zip(*pairs, strict=True)
    if len(set(first)) == len(set(second)) == len(pairs):
        n = len(pairs)
        squares = sum((sorted(first).index(a) - sorted(second).index(b)) ** 2 for a, b in pairs)
        assert found == pytest.approx(1 - 6 * squares / (n * (n * n - 1)))
    elif min(len(set(first)), len(set(second))) == 1:
        assert math.isnan(found)
    else:
        assert -1.0000001 <= found <= 1.0000001


def test_any_beginning_of_the_order_mixes_the_levels():
    from pathlib import Path

    from released_kernels import Released, mixed

    some = [
        Released(level, i, Path(), Path(), {}) for level, n in ((2, 100), (3, 50)) for i in range(n)
    ]
    order = mixed(some)
    assert sorted(k.key for k in order) == sorted(k.key for k in some)
    for count in (12, 60, 120):
        assert sum(k.level == 3 for k in order[:count]) == pytest.approx(count / 3, abs=1)
    assert [k.id for k in order if k.level == 2] != list(range(100))
