"""Answering prompts oneself: start, ask, tell, evaluate-pending, mcp."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from adaexplore.cli.commands.options import (
    DeviceOption,
    LanguageOption,
    MemoryOption,
    ModeOption,
    NewRunOption,
    PrecisionOption,
    ProblemArg,
    PromptsOption,
    RequireCustomOption,
    RunArg,
    SeedOption,
    SetOption,
    TargetOption,
    folder_text,
)

app = typer.Typer(rich_markup_mode=None)


@app.command()
def start(
    problem: ProblemArg,
    steps: Annotated[int, typer.Option(min=1, help="Candidates to try.")] = 20,
    prompts: PromptsOption = None,
    memory: MemoryOption = "",
    language: LanguageOption = None,
    device: DeviceOption = None,
    target: TargetOption = None,
    precision: PrecisionOption = "fp32",
    mode: ModeOption = "as-built",
    seed: SeedOption = 0,
    require_custom: RequireCustomOption = False,
    run: NewRunOption = None,
    settings: SetOption = None,
) -> None:
    """Make a run whose prompts you answer: a person, an agent, or a machine without internet.

    Then, again and again: `ask` for prompts, answer them in files, `tell` the replies, and
    `evaluate-pending` on the machine with the device.
    """
    from adaexplore.cli import asks as commands
    from adaexplore.core.ask import MANUAL
    from adaexplore.run.proposers import Plan
    from adaexplore.run.session import Asked

    status = commands.start(
        Asked(problem, language, device, precision, mode, seed, require_custom, target),
        steps=steps,
        plan=Plan(proposers=(MANUAL,), prompts=folder_text(prompts), memory=memory),
        run=run,
        settings=settings or [],
    )
    raise typer.Exit(status)


@app.command()
def ask(
    run: RunArg,
    count: Annotated[int, typer.Option("-n", "--count", min=0, help="How many new ones.")] = 1,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Where to write the prompts.")
    ] = Path("asks"),
    steps: Annotated[
        int | None, typer.Option(min=1, help="New total of steps. Default: what was planned.")
    ] = None,
    prompts: PromptsOption = None,
) -> None:
    """Write prompts as files: those of new steps, and of all that still wait for an answer.

    Answer asks/7.1.md (ask 7, first turn) in asks/7.1.reply.md. In any order, or never: an ask that
    nobody answers ends after a week.
    """
    from adaexplore.cli import asks as commands

    raise typer.Exit(commands.ask(run, count, output, steps, folder_text(prompts)))


@app.command()
def tell(
    run: RunArg,
    replies: Annotated[
        list[Path], typer.Argument(metavar="REPLIES", help="Reply files, or folders of them.")
    ],
) -> None:
    """Take replies from files: patches are applied, candidates queued, follow-ups written.

    Exit code 2 if a reply could not be taken; the others were.
    """
    from adaexplore.cli import asks as commands

    raise typer.Exit(commands.tell(run, replies))


@app.command(name="evaluate-pending")
def evaluate_pending(
    run: RunArg,
    parallel: Annotated[
        int,
        typer.Option(min=1, max=64, help="Candidates at once: one is compiled beside another."),
    ] = 1,
) -> None:
    """Evaluate the candidates that wait for it, and record them as steps."""
    from adaexplore.cli import asks as commands

    raise typer.Exit(commands.evaluate_pending(run, parallel))


@app.command()
def mcp(
    transport: Annotated[
        Literal["stdio", "http"],
        typer.Option(help="stdio: the agent starts this command. http: it connects to a port."),
    ] = "stdio",
    host: Annotated[str, typer.Option(help="Address to listen at, with http.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port, with http.")] = 8321,
) -> None:
    """Serve runs over MCP: a coding agent takes the prompts and gives the replies.

    For an agent that starts its servers itself, name the command `adaexplore mcp`.
    """
    from adaexplore.cli import mcp as commands

    raise typer.Exit(commands.serve(transport, host, port))
