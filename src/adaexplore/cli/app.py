"""The commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from adaexplore.problem import Language, Mode, Precision, TargetName

app = typer.Typer(
    name="adaexplore",
    help="Turns a PyTorch module into a faster, verified kernel.\n\n"
    "Start with: adaexplore explore examples/problems/softmax.py",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

ProblemArg = Annotated[
    Path,
    typer.Argument(
        metavar="PROBLEM",
        help="A Python file in KernelBench form: Model, get_inputs(), get_init_inputs().",
    ),
]
RunArg = Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.")]
DeviceOption = Annotated[
    str | None,
    typer.Option(help="cpu, cuda or cuda:<index>. Default: a GPU if there is one."),
]
LanguageOption = Annotated[
    Language | None,
    typer.Option(help="What kernels are written in. Default: triton on a GPU, cpp on the CPU."),
]
TargetOption = Annotated[
    TargetName | None,
    typer.Option(
        help="Judge Triton without a GPU (--device cpu --language triton): the architecture to "
        "compile for. Kernels are interpreted on small sizes; times are estimated, not measured. "
        "Default there: sm_90."
    ),
]
PrecisionOption = Annotated[
    Precision,
    typer.Option(
        help="The loosest precision class allowed: fp32 is strict, tf32 lets matrix products use "
        "TF32, half is autocast's. Baselines run in the same class."
    ),
]
ModeOption = Annotated[
    Mode,
    typer.Option(help="Run the reference as its constructor leaves it, or in train or eval mode."),
]
SeedOption = Annotated[
    int, typer.Option(min=0, max=2**31 - 1, help="Fixes weights, inputs and the search's choices.")
]
RequireCustomOption = Annotated[
    bool,
    typer.Option(
        "--require-custom",
        help="Reject candidates whose own kernels do not do the work (cuBLAS, cuDNN or PyTorch's "
        "kernels do). Otherwise they are labelled. Needs a GPU.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a setting, for example --set c=0.5; repeatable. "
        "`adaexplore settings` lists them.",
    ),
]


@app.command()
def explore(
    problem: ProblemArg,
    steps: Annotated[int, typer.Option(min=1, help="Candidates to try.")] = 20,
    proposer: Annotated[
        Literal["compiler"],
        typer.Option(help="Who proposes. compiler: TorchInductor, no model needed."),
    ] = "compiler",
    language: LanguageOption = None,
    device: DeviceOption = None,
    target: TargetOption = None,
    precision: PrecisionOption = "fp32",
    mode: ModeOption = "as-built",
    seed: SeedOption = 0,
    require_custom: RequireCustomOption = False,
    run: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to keep the run. Default: runs/<problem>-<time>."),
    ] = None,
    settings: SetOption = None,
) -> None:
    """Search for a faster kernel.

    Proposes candidates, verifies each against float64, times each against eager PyTorch and
    torch.compile at equal precision, and keeps everything in one run directory: the store, best.py
    and report.html. Stop it at any time; `adaexplore resume DIR` goes on.
    """
    from adaexplore.cli import run as commands
    from adaexplore.cli.session import Asked

    status = commands.explore(
        Asked(problem, language, device, precision, mode, seed, require_custom, target),
        steps=steps,
        proposer=proposer,
        run=run,
        settings=settings or [],
    )
    raise typer.Exit(status)


@app.command()
def resume(
    run: RunArg,
    steps: Annotated[
        int | None, typer.Option(min=1, help="New total of steps. Default: what was planned.")
    ] = None,
) -> None:
    """Go on with a run that was stopped or killed, or give it more steps."""
    from adaexplore.cli import run as commands

    raise typer.Exit(commands.resume(run, steps))


@app.command()
def evaluate(
    problem: ProblemArg,
    candidate: Annotated[
        Path, typer.Argument(metavar="CANDIDATE", help="A Python file that defines ModelNew.")
    ],
    language: LanguageOption = None,
    device: DeviceOption = None,
    target: TargetOption = None,
    precision: PrecisionOption = "fp32",
    mode: ModeOption = "as-built",
    seed: SeedOption = 0,
    require_custom: RequireCustomOption = False,
    settings: SetOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Judge one candidate: is it right, how precise is it, and how fast.

    Exit code 0 for any verdict, 2 for bad input, 3 for infrastructure trouble.
    """
    from adaexplore.cli import evaluate as commands
    from adaexplore.cli.session import Asked

    asked = Asked(problem, language, device, precision, mode, seed, require_custom, target)
    raise typer.Exit(commands.evaluate(asked, candidate, settings or [], as_json=json))


@app.command()
def show(run: RunArg) -> None:
    """Print the tree of a run: id, parent, step kind, status, time, speedup."""
    from adaexplore.cli import inspect

    raise typer.Exit(inspect.show(run))


@app.command()
def report(
    run: RunArg,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The file to write. Default: RUN/report.html."),
    ] = None,
) -> None:
    """Write a run's report: one HTML file that opens anywhere, offline."""
    from adaexplore.cli import inspect

    raise typer.Exit(inspect.report(run, output))


@app.command()
def settings() -> None:
    """List what --set can change, with defaults."""
    from adaexplore.cli import inspect

    raise typer.Exit(inspect.settings())
