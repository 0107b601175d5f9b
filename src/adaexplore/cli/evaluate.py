"""The command that judges one candidate: evaluate."""

from __future__ import annotations

import json as json_format
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adaexplore.cli.benchmarks.handover import (
    FlashInferOption,
    SolOption,
    hand_over,
    require_definitions,
)
from adaexplore.cli.options import ProblemArg, ServerOption, configured

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adaexplore.core.verdict.evaluation import Evaluation

app = typer.Typer(rich_markup_mode=None)
FELL_SHORT = 1
"""The exit code of a verdict below --min-speedup."""


@app.command(cls=configured("problem", names=("evaluation_cache",)))
def evaluate(
    ctx: typer.Context,
    problem: ProblemArg,
    candidate: Annotated[
        Path, typer.Argument(metavar="CANDIDATE", help="A Python file that defines ModelNew.")
    ],
    min_speedup: Annotated[
        float | None,
        typer.Option(
            "--min-speedup",
            metavar="X",
            help="For CI: exit code 1 unless the candidate is right and its like-for-like speedup "
            "is at least X.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    flashinfer: FlashInferOption = None,
    sol: SolOption = None,
    server: ServerOption = "",
) -> None:
    """Judge one candidate: correctness, precision class, and speed.

    Exit code 0 for any verdict, 2 for bad input, 3 for infrastructure trouble; with --min-speedup
    also 1, for a verdict that falls short.
    """
    from rich.console import Console

    from adaexplore.cli.terminal.progress import EvaluationProgress
    from adaexplore.core.errors import BadInputError, InfrastructureError
    from adaexplore.core.verdict.evaluation_json import evaluation_to_json
    from adaexplore.run.api import judge

    if min_speedup is not None and not 0 < min_speedup < math.inf:  # nor NaN
        raise BadInputError(f"--min-speedup {min_speedup:g}: write a positive number, such as 1.2")
    if server:
        from adaexplore.cli.remote import evaluate_there

        if flashinfer or sol:
            raise BadInputError(
                "--server: a verdict from there cannot be handed over; leave out "
                "--flashinfer and --sol"
            )
        there = evaluate_there(server, problem, candidate, ctx.obj)
        verdict, labels = there.verdict, there.labels
    else:
        require_definitions(problem, flashinfer, sol, backward=ctx.obj.with_backward)
        asked = ctx.obj.device
        local = None if ctx.obj.ray else lambda: _device_here(asked)
        progress = EvaluationProgress(Console(stderr=True), local)
        with progress:
            judged = judge(problem, candidate, ctx.obj, listener=progress)
        verdict, labels = judged.verdict, judged.labels
    if json:
        print(json_format.dumps(evaluation_to_json(verdict) | {"problem_labels": dict(labels)}))
    else:
        _print(verdict, labels, str(ctx.obj.mode))
    if flashinfer or sol:
        from adaexplore.run.outcome.deliver import delivery_of_judged

        hand_over(delivery_of_judged(judged, problem), flashinfer, sol, quiet=json)
    if verdict.status == "infra_error":
        raise typer.Exit(InfrastructureError.exit_code)
    if min_speedup is None:
        return
    timing = verdict.measured
    if timing is None or timing.is_under_load or timing.claim < min_speedup:
        found = f"{timing.claim:.3g}x" if timing else "no measured speedup"
        found = "no claim, measured under load" if timing and timing.is_under_load else found
        print(f"falls short of --min-speedup {min_speedup:g}: {found}", file=sys.stderr)
        raise typer.Exit(FELL_SHORT)


def _device_here(asked: str | None) -> str:
    from adaexplore.run.session import device_of

    return device_of(asked)


def _print(verdict: Evaluation, labels: Mapping[str, str], mode: str) -> None:
    from rich.console import Console

    from adaexplore.cli.terminal.printing import say
    from adaexplore.core.text.feedback import render
    from adaexplore.core.verdict.evaluation import Failed, Fault
    from adaexplore.report.text import origin_of

    taken = verdict.taken_over
    text = f"taken over from the evaluation cache: {origin_of(taken)}\n" if taken else ""
    text += render(verdict) + f"\nmode of the reference: {mode}"
    text += "".join(f"\nthe problem is {name}: {why}" for name, why in labels.items())
    if isinstance(verdict, Failed) and verdict.detail:
        located = isinstance(verdict.feedback, Fault) and verdict.feedback.line > 0
        text += "" if located else f"\n{verdict.detail}"  # a located fault says it all
    say(Console(), text)
