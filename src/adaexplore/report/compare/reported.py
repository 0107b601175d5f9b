"""Runs whose verdicts are others': what they report, beside what was measured here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.table import Table

from adaexplore.core.node import Node
from adaexplore.report import text

REPORTED_AFTER = (10, 25, 50, 100, 200)
"""Numbers of steps after which the best so far is shown."""


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """A run as others report it. Speedups are over eager on `gpu`, and nothing was judged here.

    `best` maps numbers of steps, up to that of the whole run, to the best so far. `measured` is the
    best speedup over eager of the runs of the same problem that were measured here, if any.
    """

    path: str
    steps: int
    correct: int
    gpu: str
    best: Mapping[int, float] = field(default_factory=dict)
    measured: float | None = None


def reported_run(
    path: str, nodes: Sequence[Node], gpu: str, measured: float | None = None
) -> ReportedRun:
    """Return what a run reports."""
    verdicts = [node.evaluation.published for node in nodes]
    speedups = [(verdict.speedup if verdict else None) or 0.0 for verdict in verdicts]
    places = sorted({*(at for at in REPORTED_AFTER if at < len(nodes)), len(nodes)})
    best = {at: max(speedups[:at], default=0.0) for at in places}
    correct = sum(node.evaluation.status == "reported" for node in nodes)
    return ReportedRun(path, len(nodes), correct, gpu, best, measured)


def reported_heads(runs: Sequence[ReportedRun]) -> tuple[str, ...]:
    """Return the names of the columns."""
    places = [f"{at} steps" for at in REPORTED_AFTER if any(run.steps > at for run in runs)]
    here = ("measured here",) if any(run.measured for run in runs) else ()
    return ("reported run", "steps", "correct", *places, "over eager", "GPU", *here)


def reported_cells(run: ReportedRun, runs: Sequence[ReportedRun]) -> tuple[str, ...]:
    """Return the row of a run in the table of these runs."""
    places = [at for at in REPORTED_AFTER if any(run.steps > at for run in runs)]
    bests = [_speedup(run.best.get(at)) if run.steps > at else "" for at in places]
    here = (_speedup(run.measured),) if any(each.measured for each in runs) else ()
    last = _speedup(run.best.get(run.steps))
    return (run.path, str(run.steps), str(run.correct), *bests, last, run.gpu, *here)


def reported_summary(runs: Sequence[ReportedRun]) -> str:
    """Return the runs in one line."""
    steps, correct = sum(run.steps for run in runs), sum(run.correct for run in runs)
    plural = "s" if len(runs) > 1 else ""
    return (
        f"{len(runs)} reported run{plural}: {correct} of {steps} steps correct there. Speedups are "
        "over eager as reported; nothing of them was judged here."
    )


def reported_table(runs: Sequence[ReportedRun]) -> Table:
    """Return the table of these runs."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for head in reported_heads(runs):
        left = head in ("reported run", "GPU")
        table.add_column(head, justify="left" if left else "right", overflow="fold")
    for run in runs:
        table.add_row(*reported_cells(run, runs))
    return table


def _speedup(value: float | None) -> str:
    return text.speedup(value) if value else "-"
