"""The confusion matrix of checkers from their verdicts, and its Markdown."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ADVANTAGE = 1.25
"""A cheat gains if the checker saw a speedup above this, as `tests/adversarial` has it."""

OURS = "adaexplore"
_HEAD = (
    *("checker", "device", "cheats", "refused", "pass, no gain", "pass, gain", "pass, untimed"),
    *("passes warned of", "honest", "refused", "warned of"),
)
_LINE = re.compile(
    r"(?P<wrong>✗ |  )(?P<id>(?:hacks|honest)/\S+)\s+(?P<status>[a-z_]+)"
    r"(?:\s+(?P<speedup>[\d.]+)x)?(?:\s\s(?P<why>\S.*))?"
)
_SANDBOX = ("PermissionError", "[Errno 13]", "[Errno 27]", "processes and threads at once")
"""Parts of the errors that a candidate gets from our sandbox."""
Row = Mapping[str, Any]


def read_ours(log: Path) -> list[dict[str, Any]]:
    """Return the verdicts in a log of `python -m tests.adversarial`, as rows of a checker.

    The last one of a case counts; where the judge broke down there is none.
    """
    found = {}
    device = "cpu" if "cpu" in log.name else "cuda"
    for line in log.read_text(encoding="utf-8").splitlines():
        match = _LINE.match(line)
        if match and match["status"] != "infra_error":
            kind, family = match["id"].split("/")[:2]
            passed = match["status"] == "passed"
            found[match["id"]] = {
                "sample": match["id"],
                "kind": "cheat" if kind == "hacks" else "honest",
                "family": family,
                "aimed": False,
                "checker": OURS,
                "device": device,
                "refused": not passed,
                "why": "" if passed else match["why"] or "",
                "speedup": float(match["speedup"]) if match["speedup"] else None,
                "right": not match["wrong"].strip(),
            }
    return list(found.values())


def read_bench(file: Path) -> list[dict[str, Any]]:
    """Return the verdicts of `adaexplore bench` on collections of cheats, as rows of a checker."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        verdict = json.loads(line)
        entry, judged = verdict["entry"], verdict["evaluation"]
        if judged is None or judged["status"] == "infra_error":
            continue
        refused, interval = judged["status"] != "passed", judged["speedup_ci"]
        found.append(
            {
                "sample": f"{entry['collection']}/{entry['place']}",
                "kind": "cheat",
                "family": entry["collection"],
                "aimed": False,
                "checker": OURS,
                "device": "cuda" if verdict["language"] != "cpp" else "cpu",
                "refused": refused,
                "why": judged["reason"],
                "speedup": judged["speedup"],
                "right": refused or not interval or interval[0] <= ADVANTAGE,
            }
        )
    return found


def matrix(found: Iterable[Row], ours: Sequence[Row] = ()) -> dict[str, Any]:
    """Return the matrix: one entry for each checker and device, and the disagreements by family.

    Cheats that are aimed at this package count for its own judge alone; so do those that our
    sandbox holds back where another's checker runs in it.
    """
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in [*ours, *found]:
        if not row["aimed"] and not _is_held_back(row):
            groups[row["checker"], row["device"].partition(":")[0]].append(row)
    return {
        "checkers": [_checker(*key, rows) for key, rows in groups.items()],
        "disagreements": [
            {"checker": checker, "device": device, **one}
            for (checker, device), rows in groups.items()
            for one in _missed(rows)
        ],
    }


def render(table: Mapping[str, Any]) -> str:
    """Return the matrix and the disagreements by kind in Markdown."""
    lines = [_line(_HEAD), _line(["---"] * len(_HEAD))]
    for one in table["checkers"]:
        cells = [*_key(one), one["cheats"], one["caught"]]
        cells += [one["no_gain"], one["gain"], one["untimed"], one["warned"]]
        cells += [one["honest"], one["honest_refused"], one["honest_warned"]]
        lines.append(_line(cells))
    for kind, title in (("cheat", "cheats that pass"), ("honest", "honest kernels refused")):
        found = [one for one in table["disagreements"] if one["kind"] == kind]
        lines += ["", *_by_family(title, table["checkers"], found)] if found else []
    return "\n".join(lines)


def _by_family(title: str, checkers: Sequence[Row], found: Sequence[Row]) -> list[str]:
    """Return a table of families and checkers; a cell is empty where a checker is never wrong."""
    wrong = {(*_key(one), one["family"]): f"{one['count']} of {one['of']}" for one in found}
    keys = [_key(one) for one in checkers if any(_key(one) == _key(each) for each in found)]
    head = [title, *(f"{name}, {device}" for name, device in keys)]
    families = sorted({one["family"] for one in found})
    rows = [[name, *(wrong.get((*key, name), "") for key in keys)] for name in families]
    return [_line(head), _line(["---"] * len(head)), *map(_line, rows)]


def _key(one: Row) -> tuple[str, str]:
    """Return the names of a checker and of the device that it used."""
    return (one["checker"], one["device"] or "static")


def _checker(checker: str, device: str, rows: Sequence[Row]) -> dict[str, Any]:
    cheats = [row for row in rows if row["kind"] == "cheat"]
    honest = [row for row in rows if row["kind"] == "honest"]
    outcomes = [_outcome(row) for row in cheats]
    return {
        "checker": checker,
        "device": device,
        "cheats": len(cheats),
        "caught": outcomes.count("refused"),
        "no_gain": outcomes.count("no gain"),
        "gain": outcomes.count("gain"),
        "untimed": outcomes.count("untimed"),
        "warned": _warned(cheats),
        "honest": len(honest),
        "honest_refused": sum(row["refused"] for row in honest),
        "honest_warned": _warned(honest),
    }


def _is_held_back(row: Row) -> bool:
    """Return whether our sandbox and not the checker stopped a candidate."""
    runs = row["checker"] != OURS and row["device"] and row["refused"]
    return bool(runs) and (row["family"] == "harm" or any(s in row["why"] for s in _SANDBOX))


def _warned(rows: Sequence[Row]) -> int:
    """Return the number of those that pass with a warning."""
    return sum(not row["refused"] and bool(row["why"]) for row in rows)


def _outcome(row: Row) -> str:
    """Return what a cheat got: refused, a pass without a gain, with one, or without a time.

    Our own judge's gain is that of the corpus, which knows the interval of the speedup.
    """
    if row["refused"]:
        return "refused"
    if "right" in row:
        return "no gain" if row["right"] else "gain"
    if row["speedup"] is None:
        return "untimed"
    return "gain" if row["speedup"] > ADVANTAGE else "no gain"


def _missed(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the families in which a checker is wrong, with how often, cheats first."""
    families: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        families[row["kind"], row["family"]].append(row)
    found = []
    for (kind, family), members in sorted(families.items()):
        wrong = [row for row in members if _is_wrong(row)]
        if wrong:
            ids = sorted(row["sample"] for row in wrong)
            counted = {"count": len(wrong), "of": len(members), "samples": ids}
            found.append({"kind": kind, "family": family, **counted})
    return found


def _is_wrong(row: Row) -> bool:
    if row["kind"] == "honest":
        return bool(row["refused"])
    return _outcome(row) in ("gain", "untimed")


def _line(cells: Sequence[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"
