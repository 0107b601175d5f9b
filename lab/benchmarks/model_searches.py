"""One table over searches by models, people or agents, from the runs they left.

    python lab/benchmarks/model_searches.py runs/* --released released.jsonl --out searches.json

For each run: the best like-for-like speedup after every few steps, the winner over eager, what the
compiler's seeds and the released AdaExplore kernel of the problem reach (from rows as in
`docs/results/h200-released.jsonl`, with the class it was judged in), how candidates failed, and
what a step cost in tokens. `--out` writes every step.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from itertools import accumulate
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from adaexplore.report import Row, Summary
from adaexplore.run import summary_of
from adaexplore.store import read_run

COMPILER = "compiler"
AFTER = (1, 2, 4, 6, 8, 10)
"""Steps of the model's own, after which the best is told; the compiler's seeds do not count."""


def main() -> None:
    """Print the tables and write the rows."""
    options = _options()
    released = _released(options.released) if options.released else {}
    runs = []
    for path in options.runs:
        with read_run(path) as directory:
            runs.append(described(summary_of(directory.store, path), released))
    if options.out:
        options.out.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")
    console = Console(width=160)
    console.print(speedups(runs))
    console.print(outcomes(runs))


def described(summary: Summary, released: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """One run as plain data: its steps, its seeds' best, its winner, its costs."""
    seeds = [row for row in summary.rows if row.node.proposal.origin == COMPILER]
    own = [row for row in summary.rows if row.node.proposal.origin != COMPILER]
    timing = summary.headline.timing
    forms = [(f.form, f.steps, f.tokens_per_step) for f in summary.costs.forms if f.steps]
    sections = [(s.section, s.tokens_per_step, s.share) for s in summary.costs.sections]
    return {
        "run": summary.info.name,
        "problem": summary.problem.name,
        "precision": summary.problem.precision,
        "labels": list(summary.labels),
        "baselines_us": dict(summary.info.reference.baselines_us),
        "seeds": [_step(row) for row in seeds],
        "steps": [_step(row) for row in own],
        "winner": timing and {"speedup": timing.speedup, "speedup_ci": timing.speedup_ci},
        "winner_over_eager": timing and timing.speedup_eager,
        "winner_origin": summary.headline.origin,
        "confirmed": summary.headline.confirmed,
        "verdict": summary.headline.verdict,
        "released": released.get(summary.problem.name),
        "tokens_per_step": summary.costs.total.tokens / len(own) if own else 0.0,
        "forms": forms,
        "sections": sections,
    }


def speedups(runs: list[dict[str, Any]]) -> Table:
    """Return a table of each search's best speedup by step, beside seeds and released kernels."""
    table = Table("problem", "seeds", *(f"after {n}" for n in AFTER), box=None)
    for column in ("winner", "95 %", "over eager", "compiler's best", "released"):
        table.add_column(column)
    for run in runs:
        best = list(accumulate((step["speedup"] or 0.0 for step in run["steps"]), max))
        winner, seeds = run["winner"] or {}, [seed["speedup"] or 0.0 for seed in run["seeds"]]
        low, high = winner.get("speedup_ci", (None, None))
        table.add_row(
            run["problem"],
            str(len(seeds)),
            *(_times(best[n - 1]) if n <= len(best) else "" for n in AFTER),
            _times(winner.get("speedup")),
            f"{low:.2f} to {high:.2f}" if low else "",
            _times(run["winner_over_eager"]),
            _times(max(seeds, default=None)),
            _told(run["released"]),
        )
    return table


def outcomes(runs: list[dict[str, Any]]) -> Table:
    """Return a table of the candidates' statuses and costs."""
    statuses = sorted({step["status"] for run in runs for step in run["steps"]})
    table = Table("problem", "seeds", "steps", *statuses, "tokens a step", box=None)
    for run in runs:
        count = Counter(step["status"] for step in run["steps"])
        table.add_row(
            run["problem"],
            str(len(run["seeds"])),
            str(len(run["steps"])),
            *(str(count[status] or "") for status in statuses),
            f"{run['tokens_per_step']:.0f}",
        )
    return table


def _step(row: Row) -> dict[str, Any]:
    timing = row.timing
    return {
        "step": row.node.id,
        "parent": row.node.parent_id,
        "kind": row.node.step_kind,
        "form": row.family,
        "status": row.node.evaluation.status,
        "reason": row.reason,
        "speedup": timing.speedup if timing else None,
        "speedup_ci": timing.speedup_ci if timing else None,
        "speedup_eager": timing.speedup_eager if timing else None,
        "time_us": timing.time_us if timing else None,
        "precision": row.passed.precision if row.passed else None,
        "turns": len(row.exchanges),
    }


def _released(path: Path) -> dict[str, dict[str, Any]]:
    """The last attempt at each problem's kernel, by the problem's name."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["attempts"]:
            attempt = row["attempts"][-1]
            verdict = attempt["evaluation"]
            found[row["name"].partition("/")[2]] = {
                "asked": attempt["precision"],
                "status": verdict["status"],
                "speedup": verdict["speedup"],
                "speedup_eager": verdict["speedup_eager"],
            }
    return found


def _times(speedup: float | None) -> str:
    return f"{speedup:.2f}x" if speedup else ""


def _told(released: dict[str, Any] | None) -> str:
    if released is None:
        return ""
    if released["speedup"] is None:
        return str(released["status"])
    return f"{released['speedup']:.2f}x ({released['asked']})"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+", help="directories of runs")
    parser.add_argument("--released", type=Path, help="rows as in docs/results/h200-released.jsonl")
    parser.add_argument("--out", type=Path, help="write every step there, as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    main()
