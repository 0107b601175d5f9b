"""The command that judges one candidate."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from adaexplore.cli.progress import warn, working
from adaexplore.core.candidate import Candidate
from adaexplore.core.configure import parse_settings
from adaexplore.core.errors import BadInputError, InfrastructureError
from adaexplore.core.evaluation import Evaluation, Failed, Fault, evaluation_to_json
from adaexplore.core.feedback import render
from adaexplore.run.session import Asked, load_problem, open_session, preparation


def evaluate(asked: Asked, path: Path, settings: list[str], *, as_json: bool) -> int:
    """Judges the candidate and prints the verdict; the exit code."""
    chosen = parse_settings(settings)
    problem = load_problem(asked)
    candidate = Candidate(_read(path), problem.language)
    stderr = Console(stderr=True)
    with working(stderr, "starting the worker processes"), open_session(problem, chosen) as running:
        warn(stderr, running.environment)
        with working(stderr, preparation(problem)):
            labels = dict(running.evaluator.prepare().labels)
        with working(stderr, f"evaluating {path.name}"):
            evaluation = running.evaluator.evaluate(candidate)
    if as_json:
        print(json.dumps(evaluation_to_json(evaluation) | {"problem_labels": labels}))
    else:
        _print(evaluation, labels)
    return InfrastructureError.exit_code if evaluation.status == "infra_error" else 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"{path}: cannot read the candidate: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path}: not UTF-8 text: {error.reason}") from error


def _print(evaluation: Evaluation, labels: dict[str, str]) -> None:
    console = Console()
    text = render(evaluation)
    text += "".join(f"\nthe problem is {name}: {why}" for name, why in labels.items())
    if isinstance(evaluation, Failed) and evaluation.detail and not _is_located(evaluation):
        text += f"\n{evaluation.detail}"
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _is_located(failed: Failed) -> bool:
    """Whether the feedback names the line, so that a traceback would only repeat it."""
    return isinstance(failed.feedback, Fault) and failed.feedback.line > 0
