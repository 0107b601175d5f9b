"""The tables of `docs/results/record.md` from a folder of `adaexplore bench`, in Markdown.

    python lab/benchmarks/record_table.py runs/record
    python lab/benchmarks/record_table.py runs/record --brief       # collections alone

A mean is geometric, over right answers to problems without a label, with the 95 % interval of a
bootstrap over these answers. fast_1 is the share of judged answers to such problems that are right
and faster than the strongest baseline. Both take of a noisy measurement its lower end.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from adaexplore.core import set_apart

_RESAMPLES = 10_000
_MOST_WORDS = 150
_COLLECTIONS = (
    *("collection", "drawn", "judged", "passed", "faster", "mean (95 %)", "over eager", "fast_1"),
    *("labelled, their mean", "verdicts", "not judged", "no verdict"),
)
_ANSWERS = (
    *("collection", "problem", "verdict", "class", "like for like (95 %)", "strongest baseline"),
    *("over eager", "labels"),
)
Row = Mapping[str, Any]


def main() -> None:
    """Print the tables of a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--brief", action="store_true", help="the table of collections alone")
    options = parser.parse_args()
    entries, verdicts = read(options.folder)
    print(collections_table(entries, verdicts))
    if not options.brief:
        print(f"\n{answers_table(verdicts)}")


def read(folder: Path) -> tuple[list[Row], list[Row]]:
    """Return the entries of a folder, and the last verdict on each that has one, by collection."""
    entries = json.loads((folder / "bench.json").read_text(encoding="utf-8"))["entries"]
    file = folder / "verdicts.jsonl"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    last = {}
    for line in text[: text.rfind("\n") + 1].splitlines():
        verdict = json.loads(line)
        last[_id(verdict["entry"])] = verdict
    known = [last[_id(entry)] for entry in entries if _id(entry) in last]
    names = list(dict.fromkeys(entry["collection"] for entry in entries))
    return entries, sorted(known, key=lambda one: (names.index(_collection(one)), *_key(one)))


def collections_table(entries: Sequence[Row], verdicts: Sequence[Row]) -> str:
    """Return a row for each collection."""
    drawn = Counter(entry["collection"] for entry in entries)
    rows = [
        _collection_cells(name, count, [one for one in verdicts if _collection(one) == name])
        for name, count in drawn.items()
    ]
    return table(_COLLECTIONS, rows)


def answers_table(verdicts: Sequence[Row]) -> str:
    """Return a row for each answer that has a verdict, or a reason for none."""
    return table(_ANSWERS, [_answer_cells(one) for one in verdicts])


def interval_of_mean(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of a geometric mean, by a bootstrap under a fixed seed."""
    draw = random.Random(0)
    logs = [math.log(value) for value in values]
    means = sorted(
        math.fsum(draw.choices(logs, k=len(logs))) / len(logs) for _ in range(_RESAMPLES)
    )
    cut = round(0.025 * _RESAMPLES)
    return math.exp(means[cut]), math.exp(means[-1 - cut])


def _collection_cells(name: str, drawn: int, verdicts: Sequence[Row]) -> list[object]:
    unjudged = sum(one["evaluation"] is None for one in verdicts)
    judged = [one for one in verdicts if one["evaluation"] and _status(one) != "infra error"]
    timed = [one for one in judged if one["evaluation"]["speedup"]]
    ordinary = [one for one in timed if not set_apart(one["labels"])]
    labelled = [one for one in timed if set_apart(one["labels"])]
    plain = sum(not set_apart(one["labels"]) for one in judged)
    claims = [claim_of(one) for one in ordinary]
    statuses = Counter(_status(one) for one in judged if _status(one) != "passed")
    return [
        name,
        drawn,
        len(judged),
        sum(_status(one) == "passed" for one in judged),
        sum(one["evaluation"]["speedup_ci"][0] > 1 for one in timed),
        mean_with_interval(claims),
        mean([one["evaluation"]["speedup_eager"] for one in ordinary]),
        f"{sum(claim > 1 for claim in claims) / plain:.0%}" if plain else "",
        f"{len(labelled)}, {mean([claim_of(one) for one in labelled])}" if labelled else "",
        ", ".join(f"{count} {status}" for status, count in statuses.most_common()),
        unjudged,
        drawn - len(judged) - unjudged,
    ]


def _answer_cells(one: Row) -> list[object]:
    found, key = one["evaluation"], one["entry"]["key"]
    where = [_collection(one), key]
    if found is None:
        return [*where, f"not judged: {_words(one['unjudged'])}", *[""] * 5]
    labels = ", ".join(dict.fromkeys([*one["labels"], *found["labels"]]))
    if not found["speedup"]:
        why = _words(found["reason"])
        said = _status(one) + (f": {why}" if why else "")
        return [*where, said, found["precision"] or "", "", "", "", labels]
    said = "passed, too noisy" if found["too_noisy"] else "passed"
    gain = f"{times(claim_of(one))} ({span(found['speedup_ci'])})"
    over_eager = times(found["speedup_eager"])
    return [*where, said, found["precision"], gain, found["strongest"], over_eager, labels]


def claim_of(one: Row) -> float:
    """Return what counts; a gain under the load of other programs is none."""
    claim = one["evaluation"]["claim"]
    return 1.0 if claim is None else float(claim)


def mean(values: Sequence[float]) -> str:
    """Return a geometric mean as text, empty of no values."""
    return times(geometric_mean(values)) if values else ""


def mean_with_interval(values: Sequence[float]) -> str:
    """Return a geometric mean as `mean` does, of two values or more with its interval."""
    return f"{mean(values)} ({span(interval_of_mean(values))})" if len(values) > 1 else mean(values)


def times(value: float) -> str:
    """Return a speedup as text."""
    return f"{value:.2f}x"


def span(interval: Sequence[float]) -> str:
    """Return an interval as text."""
    low, high = interval
    return f"{low:.2f} to {high:.2f}"


def _words(text: str) -> str:
    line = " ".join(text.split()).replace("|", "\\|")
    return line if len(line) <= _MOST_WORDS else f"{line[:_MOST_WORDS]} ..."


def _status(one: Row) -> str:
    return str(one["evaluation"]["status"]).replace("_", " ") if one["evaluation"] else ""


def _collection(one: Row) -> str:
    return str(one["entry"]["collection"])


def _id(entry: Row) -> tuple[str, str, str]:
    return entry["collection"], entry["place"], entry["digest"]


def _key(one: Row) -> tuple[int, ...]:
    return tuple(int(part) for part in one["entry"]["key"].split("/"))


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


if __name__ == "__main__":
    main()
