"""Searches many problems, one `adaexplore explore` each, and prints one table over all.

    python benchmarks/run_problems.py examples/problems/*.py --steps 8
    python benchmarks/run_problems.py KernelBench/level2/*.py --precision tf32 --parallel 4

Runs lie in `--runs`, by precision class and problem; one that is there already is resumed, so the
whole can be stopped and started again. `--out` writes the rows as JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from adaexplore.errors import BadInputError
from adaexplore.evaluation import Passed, rank, to_json
from adaexplore.store import read_run

CLEAR, FASTER, LEVEL, SLOWER = "faster", "faster?", "level", "slower"


def main() -> None:
    """Runs them all and prints the table."""
    options = _options()
    jobs = [(path, precision) for precision in options.precision for path in options.problems]
    console = Console()
    deadline = time.monotonic() + options.budget_s
    rows = []
    with Progress(console=console) as progress, ThreadPoolExecutor(options.parallel) as threads:
        task = progress.add_task("searching", total=len(jobs))
        pending = [threads.submit(_search, *job, options, deadline) for job in jobs]
        for done in as_completed(pending):
            row = done.result()
            rows.append(row)
            if options.out:
                options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
            progress.console.print(f"{row['problem']} ({row['precision']}): {_result(row)}")
            progress.advance(task)
    for precision in options.precision:
        for part in tables([row for row in rows if row["precision"] == precision], precision):
            console.print(part, highlight=False)


def tables(rows: list[dict[str, Any]], precision: str) -> list[Table | Text]:
    """The problems, then those that carry a label, in a table of their own with the reasons."""
    labelled = [row for row in rows if row.get("labels")]
    parts: list[Table | Text] = [_table([row for row in rows if row not in labelled], precision)]
    if labelled:
        parts.append(_table(labelled, f"{precision}, labelled problems, in no mean above"))
        parts += [
            Text(f"{row['problem']}: {name}: {why}")
            for row in labelled
            for name, why in row["labels"].items()
        ]
    return parts


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="+", type=Path)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--precision", nargs="+", default=["fp32"])
    parser.add_argument("--device", default=None)
    parser.add_argument("--mode", default="as-built")
    parser.add_argument(
        "--parallel", type=int, default=1, help="searches at once; timing is exclusive"
    )
    parser.add_argument("--budget-s", type=float, default=math.inf, help="seconds; then stop all")
    parser.add_argument("--runs", type=Path, default=Path("runs/all"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    return parser.parse_args()


def _search(
    path: Path, precision: str, options: argparse.Namespace, deadline: float
) -> dict[str, Any]:
    run = options.runs / precision / path.stem
    adaexplore = [sys.executable, "-m", "adaexplore"]
    if (run / "run.db").exists():
        command = [*adaexplore, "resume", str(run), "--steps", str(options.steps)]
    else:
        command = [*adaexplore, "explore", str(path), "--steps", str(options.steps)]
        command += ["--precision", precision, "--mode", options.mode, "--run", str(run)]
        command += ["--device", options.device] if options.device else []
        for pair in options.settings:
            command += ["--set", pair]
    started = time.monotonic()
    error = "no time left"
    if started < deadline:
        run.parent.mkdir(parents=True, exist_ok=True)
        error = _run(command, deadline - started)
    row = {"problem": path.stem, "precision": precision, "error": error}
    return row | _outcome(run) | {"wall_s": round(time.monotonic() - started, 1)}


def _run(command: list[str], limit_s: float) -> str:
    """Runs a search, interrupting it at its limit; why it failed, empty if it did not."""
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as search:
        try:
            _, stderr = search.communicate(timeout=limit_s if math.isfinite(limit_s) else None)
        except subprocess.TimeoutExpired:
            search.send_signal(signal.SIGINT)  # it finishes writing; the row shows what it has
            search.communicate()
            return "stopped: no time left"
    return (stderr.strip().splitlines() or [""])[-1] if search.returncode else ""


def _outcome(run: Path) -> dict[str, Any]:
    """What a run has to show: its winner, measured again if it was."""
    try:
        with read_run(run) as directory:
            nodes = directory.store.nodes()
            confirmation = directory.store.confirmation()
            reference = directory.store.run().reference
    except BadInputError:
        return {"steps": 0, "best": None}
    costs = [node.evaluation.cost for node in nodes if not node.reused]
    best = max(nodes, key=lambda node: rank(node.evaluation), default=None)
    evaluation = best.evaluation if best else None
    if confirmation and best and confirmation.node_id == best.id:
        evaluation = confirmation.evaluation
    passed = isinstance(evaluation, Passed)
    return {
        "steps": len(nodes),
        "passed": sum(isinstance(node.evaluation, Passed) for node in nodes),
        "failures": [
            {
                "step": n.id,
                "note": n.proposal.note,
                "status": n.evaluation.status,
                "reason": n.evaluation.reason,
            }
            for n in nodes
            if not isinstance(n.evaluation, Passed)
        ],
        "note": best.proposal.note if best else "",
        "best": to_json(evaluation) | {"detail": ""} if passed else None,
        "evaluate_s": round(sum(c.wall_s for c in costs), 2),
        "device_s": round(sum(c.device_s for c in costs), 2),
        "propose_s": round(sum(n.propose_s for n in nodes), 2),
        "notes": reference.get("notes", []),
        "labels": reference.get("labels", {}),
    }


def _verdict(best: dict[str, Any]) -> str:
    low, high = best["speedup_ci"]
    if low > 1:
        return CLEAR
    return SLOWER if high < 1 else FASTER if best["speedup"] > 1 else LEVEL


def _result(row: dict[str, Any]) -> str:
    if row["best"] is None:
        return row["error"] or "nothing correct"
    return f"{row['best']['speedup']:.3f}x, {_verdict(row['best'])}"


def _table(rows: list[dict[str, Any]], precision: str) -> Table:
    speedups = [row["best"]["speedup"] for row in rows if row["best"]]
    mean = math.exp(sum(map(math.log, speedups)) / len(speedups)) if speedups else 0.0
    clear = sum(_verdict(row["best"]) == CLEAR for row in rows if row["best"])
    table = Table(
        title=f"{precision}: {len(speedups)} of {len(rows)} correct, {clear} clearly faster, "
        f"geometric mean {mean:.3f}x",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    table.add_column("times in µs", no_wrap=True)
    for name in ("eager", "compile", "best", "like for like", "over eager", "error"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        best = row["best"]
        if best is None:
            table.add_row(row["problem"], *["-"] * 5, row["error"][:40])
            continue
        baselines, (low, high) = best["baselines_us"], best["speedup_ci"]
        table.add_row(
            row["problem"],
            f"{baselines['eager']:.0f}",
            f"{baselines['compile']:.0f}" if baselines["compile"] else "-",
            f"{best['time_us']:.0f}",
            f"{best['speedup']:.2f}x {low:.2f}-{high:.2f}",
            f"{best['speedup_eager']:.2f}x",
            f"{best['error']:.0e}",
        )
    return table


if __name__ == "__main__":
    main()
