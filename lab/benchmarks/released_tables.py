"""Markdown from the rows that `released_kernels.py` writes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

Row = dict[str, Any]


def report(rows: list[Row]) -> str:
    """One table over all kernels, counts, means, and where the published criterion disagrees."""
    rows = sorted(rows, key=lambda row: row["key"])
    parts = [_kernels(rows), _counts(rows), _means(rows), _disagreements(rows)]
    return "\n\n".join(part for part in parts if part)


def comparison(first: list[Row], second: list[Row]) -> str:
    """Return the agreement of two files on the same kernels: verdicts, then ranks of times."""
    other = {tuple(row["key"]): row for row in second}
    pairs = [(row, other[tuple(row["key"])]) for row in first if tuple(row["key"]) in other]
    pairs = sorted(
        ((a, b) for a, b in pairs if a["attempts"] and b["attempts"]), key=lambda p: p[0]["key"]
    )
    verdicts = Counter((verdict(a), verdict(b)) for a, b in pairs)
    same = sum(n for (a, b), n in verdicts.items() if (a == "passed") == (b == "passed"))
    lines = [
        f"{len(pairs)} kernels in both; {same} pass in both or in neither",
        "",
        *_table(["first", "second", "kernels"], [(*k, n) for k, n in sorted(verdicts.items())]),
        "",
        *(
            f"- {a['name']}: {_said(a)}; second: {_said(b)}"
            for a, b in pairs
            if (verdict(a) == "passed") != (verdict(b) == "passed")
        ),
    ]
    times = [(x, y) for a, b in pairs if (x := _time_us(a)) and (y := _time_us(b))]
    gains = [(x, y) for a, b in pairs if (x := gain(a)) and (y := gain(b))]
    for what, found in (("times", times), ("speedups over eager", gains)):
        if len(found) > 2:
            within = sum(1 / 2 <= x / y <= 2 for x, y in found)
            lines += [
                "",
                f"{what} of {len(found)} kernels: Spearman {spearman(found):.2f}, "
                f"{within} within a factor of 2, median ratio "
                f"{median(x / y for x, y in found):.2f}",
            ]
    return "\n".join(lines)


def verdict(row: Row) -> str:
    """The status of the last attempt, "stopped" or "unjudged"."""
    if row["stopped"]:
        return "stopped"
    return row["attempts"][-1]["evaluation"]["status"] if not row["unjudged"] else "unjudged"


def gain(row: Row) -> float | None:
    """The speedup over eager; of an estimate, from the reference's own estimate."""
    last = _last(row)
    if last.get("speedup_eager"):
        return float(last["speedup_eager"])
    reference = (row["facts"].get("estimate") or {}).get("time_us")
    time_us = _time_us(row)
    return reference / time_us if reference and time_us else None


def spearman(pairs: Sequence[tuple[float, float]]) -> float:
    """Spearman's rank correlation; ties get their mean rank."""
    first, second = (_ranks(values) for values in zip(*pairs, strict=True))
    mean = (len(pairs) + 1) / 2
    a, b = ([rank - mean for rank in ranks] for ranks in (first, second))
    spread = math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / spread if spread else math.nan


def geometric_mean(values: Sequence[float]) -> float:
    """NaN where there are none."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def _ranks(values: Sequence[float]) -> list[float]:
    return [
        (sum(other < value for other in values) + sum(other <= value for other in values) + 1) / 2
        for value in values
    ]


def _last(row: Row) -> dict[str, Any]:
    return row["attempts"][-1]["evaluation"] if row["attempts"] else {}


def _time_us(row: Row) -> float | None:
    """Measured, or estimated where there was nothing to measure on."""
    last = _last(row)
    if last.get("status") != "passed":
        return None
    return last.get("time_us") or (last.get("estimate") or {}).get("time_us")


def _said(row: Row) -> str:
    if unfinished := row["stopped"] or row["unjudged"]:
        return str(unfinished)
    last = _last(row)
    if last["status"] == "passed":
        return f"passed as {last['precision']}, error {last['error']:.1e}"
    return f"{last['status']}: {last['reason']}"


def _labels(row: Row) -> list[str]:
    return [*(row["facts"].get("labels") or []), *(_last(row).get("labels") or [])]


def _kernels(rows: list[Row]) -> str:
    header = ["kernel", "verdict", "class", "error", "µs", "like for like", "over eager"]
    header += ["5e-2", "published", "published, re-timed", "labels"]
    body = []
    for row in rows:
        last = _last(row)
        passed = verdict(row) == "passed"
        interval = last.get("speedup_ci") if passed else None
        body.append(
            (
                row["name"],
                verdict(row),
                last["precision"] if passed else "",
                _number(last.get("error"), ".1e"),
                _number(_time_us(row), ".0f"),
                _number(last.get("speedup"), ".2f", "x")
                + (f" ({interval[0]:.2f} to {interval[1]:.2f})" if interval else ""),
                _number(last.get("speedup_eager"), ".2f", "x"),
                {True: "pass", False: "fail", None: ""}[(row["criterion"] or {}).get("passes")],
                _number(row["recorded"]["recorded"], ".2f", "x"),
                _number(row["recorded"]["measured"], ".2f", "x"),
                ", ".join(_labels(row)),
            )
        )
    return "\n".join(_table(header, body))


def _counts(rows: list[Row]) -> str:
    verdicts = Counter(
        f"passed, {_last(row)['precision']}" if verdict(row) == "passed" else verdict(row)
        for row in rows
    )
    levels = sorted({row["key"][0] for row in rows})
    body = [
        (
            name,
            *(
                sum(
                    row["key"][0] == level
                    and name.partition(",")[0] == verdict(row)
                    and (verdict(row) != "passed" or name.endswith(_last(row)["precision"]))
                    for row in rows
                )
                for level in levels
            ),
            count,
        )
        for name, count in sorted(verdicts.items(), key=lambda item: -item[1])
    ]
    seconds = [row["wall_s"] for row in rows]
    table = _table(["verdict", *(f"level {level}" for level in levels), "all"], body)
    return "\n".join([*table, "", f"Median {median(seconds):.1f} s a kernel."] if rows else table)


def _means(rows: list[Row]) -> str:
    """Geometric means of speedups, labelled problems apart from the others."""
    measured = [row for row in rows if verdict(row) == "passed" and _last(row).get("speedup")]
    if not measured:
        return ""
    groups = [("no label", [row for row in measured if not _labels(row)])]
    for precision in sorted({_last(row)["precision"] for row in measured}):
        chosen = [r for r in groups[0][1] if _last(r)["precision"] == precision]
        groups.append((f"no label, {precision}", chosen))
    labels = sorted({label for row in measured for label in _labels(row)})
    groups += [(label, [row for row in measured if label in _labels(row)]) for label in labels]
    body = []
    for name, group in groups:
        published = [row["recorded"]["recorded"] for row in group]
        body.append(
            (
                name,
                len(group),
                _number(geometric_mean([_last(r)["speedup"] for r in group]), ".2f", "x"),
                _number(geometric_mean([_last(r)["speedup_eager"] for r in group]), ".2f", "x"),
                _number(geometric_mean([p for p in published if p]), ".2f", "x"),
            )
        )
    header = ["geometric means", "kernels", "like for like", "over eager", "published"]
    return "\n".join(_table(header, body))


def _disagreements(rows: list[Row]) -> str:
    judged = [row for row in rows if row["criterion"] and verdict(row) not in ("stopped",)]
    judged = [row for row in judged if not row["unjudged"]]
    if not judged:
        return ""
    theirs = [r for r in judged if r["criterion"]["passes"] and verdict(r) != "passed"]
    ours = [r for r in judged if not r["criterion"]["passes"] and verdict(r) == "passed"]
    loose = [
        r
        for r in judged
        if r["criterion"]["passes"] and verdict(r) == "passed" and len(r["attempts"]) > 1
    ]
    lines = ["## Where the verdict and the published criterion differ"]
    for title, some in (
        ("Passed by 5e-2, refused here", theirs),
        ("Refused by 5e-2, passed here", ours),
        ("Passed by 5e-2 as fp32, passed here in a looser class only", loose),
    ):
        lines += ["", f"{title}: {len(some)} of {len(judged)}", ""]
        lines += [
            f"- {row['name']}: {_said(row)}"
            + (f" (5e-2: {row['criterion']['why']})" if row["criterion"]["why"] else "")
            for row in some
        ]
    return "\n".join(lines)


def _number(value: float | str | None, form: str, unit: str = "") -> str:
    value = math.nan if value is None else float(value)  # "inf" and "nan" are words in JSON
    return "" if math.isnan(value) else f"{value:{form}}{unit}"


def _table(header: list[str], body: Iterable[Sequence[object]]) -> list[str]:
    return [
        "| " + " | ".join(map(str, line)) + " |" for line in (header, ["---"] * len(header), *body)
    ]
