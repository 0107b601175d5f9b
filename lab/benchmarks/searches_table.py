"""The tables of campaigns of searches, in Markdown: each problem after some steps, and means.

    python lab/benchmarks/searches_table.py runs/record --after 1 3 10
    python lab/benchmarks/searches_table.py runs/record --released runs/released-*

A problem counts by what may be claimed of its fastest right candidate so far, at least 1: where
nothing is faster, the strongest baseline is used. A mean is geometric, with the 95 % interval of a
bootstrap over problems. Problems with a label that says that a speedup means little are apart.

`--released` has folders of `adaexplore bench` with verdicts on kernels of others for the same
problems. The best of them that is right in the folder's class, or in a stricter one, stands beside
each problem.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from statistics import median

from record_table import claim_of, mean, mean_with_interval, read, span, table, times

from adaexplore.core import PRECISIONS, Node, Passed
from adaexplore.report import CampaignSummary, Result
from adaexplore.run import recorded
from adaexplore.store import read_run

_MOST_KERNELS = 2
_MOST_CHARS = 40
_AS_FAST = 0.98  # of another's speedup: two measurements differ by as much


@dataclass(frozen=True, slots=True)
class Released:
    """The fastest kernel of others for a problem, by what may be claimed of it."""

    collection: str
    claim: float


@dataclass(frozen=True, slots=True)
class Row:
    """A problem: its result, what could be claimed after some steps, and if step 1 was right.

    `released` is the best kernel of others, None where there is none or no right one.
    """

    result: Result
    after: tuple[float, ...]
    first_is_right: bool
    released: Released | None = None

    @property
    def final(self) -> float:
        """What may be claimed in the end; where it was confirmed, by the confirmation."""
        return max(self.result.timing.claim, 1.0) if self.result.timing else 1.0


def main() -> None:
    """Print the tables of the folders of campaigns."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--after", type=int, nargs="+", default=[1, 3, 10], metavar="STEPS")
    parser.add_argument("--released", type=Path, nargs="+", default=[], metavar="FOLDER")
    options = parser.parse_args()
    released = best_released(options.released)
    rows: list[Row] = []
    summaries: list[CampaignSummary] = []
    for folder in options.folders:
        summary = recorded(folder, reports=False)
        assert isinstance(summary, CampaignSummary)
        rows += rows_of(summary, folder, options.after, released)
        summaries.append(summary)
    print(problems_table(rows, options.after))
    print(f"\n{means_table(rows, options.after)}")
    print(f"\n{figures(rows, summaries)}")


def best_released(folders: Sequence[Path]) -> dict[str, Released]:
    """Return the best kernel of others for each problem, by its key, such as `3/7`."""
    best: dict[str, Released] = {}
    for folder in folders:
        config = json.loads((folder / "bench.json").read_text(encoding="utf-8"))["config"]
        allowed = PRECISIONS[: PRECISIONS.index(config["precision"]) + 1]
        for verdict in read(folder)[1]:
            entry, found = verdict["entry"], verdict["evaluation"]
            if found and found["status"] == "passed" and found["precision"] in allowed:
                one = Released(entry["collection"], claim_of(verdict))
                best[entry["key"]] = max(best.get(entry["key"], one), one, key=attrgetter("claim"))
    return best


def rows_of(
    summary: CampaignSummary,
    folder: Path,
    after: Sequence[int],
    released: Mapping[str, Released],
) -> list[Row]:
    """Return the row of each judged problem, in the order of the summary."""
    rows = []
    for result in (one for group in summary.groups for one in group.results):
        with read_run(folder / result.folder) as run:
            steps = [node for node in run.store.nodes() if node.is_planned]
        claims = tuple(best_claim(steps[:count]) for count in after)
        first_is_right = bool(steps) and isinstance(steps[0].evaluation, Passed)
        key = f"{result.category.removeprefix('level ')}/{result.name.partition('_')[0]}"
        rows.append(Row(result, claims, first_is_right, released.get(key)))
    return rows


def best_claim(steps: Sequence[Node]) -> float:
    """Return what may be claimed of the best of some steps, as the search measured them."""
    found = [node.evaluation for node in steps if isinstance(node.evaluation, Passed)]
    return max([1.0, *(one.measured.claim for one in found if one.measured)])


def problems_table(rows: Sequence[Row], after: Sequence[int]) -> str:
    """Return a row for each problem."""
    heads = [
        *("problem", "class", "strongest baseline", *(f"after {count}" for count in after)),
        *("claimed (95 %)", "over eager", "of the roofline", "released", "rests on", "labels"),
    ]
    return table(heads, [_cells(row) for row in rows])


def means_table(rows: Sequence[Row], after: Sequence[int]) -> str:
    """Return the means of each level in each class, with and without algebra."""
    heads = ["level", "class", "problems", *(f"after {n}" for n in after), "claimed (95 %)"]
    heads += ["without algebra", "labelled, their mean"]
    kinds = sorted({(row.result.category, row.result.precision) for row in rows})
    levels = [(level, "all") for level in sorted({level for level, _ in kinds})]
    return table(heads, [_mean_cells(rows, *kind) for kind in sorted([*kinds, *levels])])


def figures(rows: Sequence[Row], summaries: Sequence[CampaignSummary]) -> str:
    """Return the figures over all problems, one a line."""
    faster = [row for row in rows if row.final > 1]
    shares = [one.roofline.share for row in faster if (one := row.result.claimed) and one.roofline]
    spent = [summary.spent for summary in summaries]
    calls, tokens = sum(one.calls for one in spent), sum(one.tokens for one in spent)
    device_s = sum(one.device_s for one in spent)
    paid = f"{calls} answers, {tokens} tokens, {device_s:.0f} s of the device"
    lines = [
        f"first answers right: {sum(row.first_is_right for row in rows)} of {len(rows)}",
        f"nothing faster: {len(rows) - len(faster)}",
        f"median winner, of its roofline: {median(shares):.0%}" if shares else "no winner",
        f"spent: {paid}",
    ]
    beside = [row for row in rows if row.released]
    if beside:
        ahead = sum(row.final >= _AS_FAST * row.released.claim for row in beside if row.released)
        lines.append(f"as fast as the best released kernel, or faster: {ahead} of {len(beside)}")
    return "\n".join(f"- {line}" for line in lines)


def _cells(row: Row) -> list[str]:
    result, found = row.result, row.result.claimed
    timing, roofline = result.timing, found.roofline if found else None
    star = "" if result.confirmed or not timing else "*"
    return [
        result.name,
        result.precision,
        timing.strongest if timing else "",
        *map(times, row.after),
        f"{times(row.final)}{star} ({span(timing.speedup_ci)})" if timing else times(1.0),
        times(timing.speedup_eager) if timing else "",
        f"{roofline.share:.0%}" if roofline else "",
        f"{row.released.collection} {times(row.released.claim)}" if row.released else "",
        rests_on(found),
        ", ".join([*(result.labels or ()), *(found.labels if found else ())]),
    ]


def rests_on(found: Passed | None) -> str:
    """Return the kernels that take most of a winner's time, with their shares of it."""
    profile = found.profile if found else None
    if profile is None or not profile.device_us:
        return ""
    longest = sorted(profile.kernels, key=lambda kernel: -kernel.time_us)[:_MOST_KERNELS]
    named = [f"{one.name[:_MOST_CHARS]} {one.time_us / profile.device_us:.0%}" for one in longest]
    return f"own {profile.custom_share:.0%}: {', '.join(named)}"


def _mean_cells(rows: Sequence[Row], level: str, precision: str) -> list[str]:
    chosen = [r for r in rows if r.result.category == level]
    chosen = [r for r in chosen if precision in ("all", r.result.precision)]
    ordinary = [row for row in chosen if not row.result.set_apart]
    steps = len(chosen[0].after)
    apart = [row.final for row in chosen if row.result.set_apart]
    return [
        level or "modules",
        precision,
        str(len(ordinary)),
        *(mean([row.after[i] for row in ordinary]) for i in range(steps)),
        mean_with_interval([row.final for row in ordinary]),
        mean_with_interval([row.final for row in ordinary if not row.result.by_algebra]),
        f"{len(apart)}, {mean(apart)}" if apart else "",
    ]


if __name__ == "__main__":
    main()
