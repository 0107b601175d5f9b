"""The command that judges one candidate."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from adaexplore.candidate import Candidate
from adaexplore.cli.progress import working
from adaexplore.cli.session import Asked, load_problem, session
from adaexplore.errors import BadInputError, InfrastructureError
from adaexplore.evaluation import Estimate, Evaluation, Passed, to_json
from adaexplore.report.text import duration_us, estimate, interval, relative_error, speedup
from adaexplore.settings import parse_settings


def evaluate(asked: Asked, path: Path, settings: list[str], *, as_json: bool) -> int:
    """Judges the candidate and prints the verdict; the exit code."""
    chosen = parse_settings(settings)
    problem = load_problem(asked)
    candidate = Candidate(_read(path), problem.language)
    stderr = Console(stderr=True)
    with working(stderr, "starting the worker processes"), session(problem, chosen) as running:
        with working(stderr, "running the reference, in float64 too, and torch.compile"):
            running.evaluator.prepare()
        with working(stderr, f"evaluating {path.name}"):
            evaluation = running.evaluator.evaluate(candidate)
    if as_json:
        print(json.dumps(to_json(evaluation)))
    else:
        _print(evaluation)
    return InfrastructureError.exit_code if evaluation.status == "infra_error" else 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"{path}: cannot read the candidate: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path}: not UTF-8 text: {error.reason}") from error


def _print(evaluation: Evaluation) -> None:
    console = Console()
    if not isinstance(evaluation, Passed):
        console.print(f"{evaluation.status}: {evaluation.reason}", highlight=False, markup=False)
        if evaluation.detail:
            console.print(evaluation.detail, highlight=False, markup=False)
        return
    table = Table(show_header=False, box=None)
    table.add_row("status", "passed")
    table.add_row("precision", f"{evaluation.precision}, error {relative_error(evaluation.error)}")
    timing = evaluation.timing
    if isinstance(timing, Estimate):
        table.add_row("time", estimate(timing))
        console.print(table)
        return
    table.add_row("time", f"{duration_us(timing.time_us)} (median of {timing.samples} calls)")
    for name, time_us in timing.baselines_us.items():
        table.add_row(name, duration_us(time_us))
    table.add_row("speedup", f"{speedup(timing.speedup)} {interval(timing.speedup_ci)}")
    table.add_row("over eager", speedup(timing.speedup_eager))
    console.print(table)
