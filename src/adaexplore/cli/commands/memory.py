"""Memories: list, show, check, lift, diff, export, import, merge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adaexplore.cli.commands.options import (
    DeviceOption,
    MemoryArg,
    ParallelOption,
    PromptsOption,
    SetOption,
    TargetOption,
    TechniquesOption,
    folder_text,
)

app = typer.Typer(
    help="Look at memories: rules with their witnesses and remedies.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def memory_list(memory: MemoryArg = "bundled") -> None:
    """Print a line for each rule."""
    from adaexplore.cli import memory as commands

    raise typer.Exit(commands.show_all(memory))


@app.command("show")
def memory_show(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="The rule's name.")],
    memory: MemoryArg = "bundled",
) -> None:
    """Print a rule with its programs."""
    from adaexplore.cli import memory as commands

    raise typer.Exit(commands.show(memory, rule))


@app.command("check")
def memory_check(
    memory: MemoryArg = "bundled",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where to note what was seen. Default: in the memory itself, unless bundled.",
        ),
    ] = None,
    device: DeviceOption = None,
    target: TargetOption = None,
    parallel: ParallelOption = None,
    unseen: Annotated[
        bool, typer.Option("--unseen", help="Only rules that were never tried here.")
    ] = False,
) -> None:
    """Run every witness and remedy on the installed versions; note which rules hold, or are gone.

    Exit code 1 if one does not hold.
    """
    from adaexplore.cli import adapt as commands

    raise typer.Exit(commands.check(memory, output, device, target, parallel, unseen=unseen))


@app.command("lift")
def memory_lift(
    memory: MemoryArg,
    problems: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="The tasks, as `adaexplore synthesize` makes them. Those that a rule was learned "
            "from are left out.",
        ),
    ],
    model: Annotated[
        str, typer.Option(metavar="PROVIDER:NAME", help="Who makes the tries. Default: you do.")
    ] = "",
    tasks: Annotated[int, typer.Option(min=1, help="How many tasks, in the order of names.")] = 200,
    repeats: Annotated[
        int, typer.Option(min=1, max=100, help="First tries at each task with each memory.")
    ] = 1,
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="MEMORY", help="Another memory to try as well; repeatable."),
    ] = None,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="Also try the memory without just this rule, where a prompt has it; repeatable.",
        ),
    ] = None,
    budget: Annotated[
        str, typer.Option(metavar="LIMIT", help="What the model may take in all: 2usd, 500ktok.")
    ] = "",
    work: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the tries are kept. Default: MEMORY.lift."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where to note lifts. Default: in the memory itself, unless bundled.",
        ),
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything as JSON.")
    ] = None,
    prompts: PromptsOption = None,
    techniques: TechniquesOption = False,
    settings: SetOption = None,
    device: DeviceOption = None,
    target: TargetOption = None,
    parallel: ParallelOption = None,
) -> None:
    """Measure what a memory is worth: first tries that are right, with it and without.

    Prompts differ in the memory's rules alone. The same command goes on where it was stopped.
    Without a model the prompts wait in files: answer each in WORK/asks and run the same command
    again.
    """
    from adaexplore.cli import lift as commands

    options = commands.Options(
        memory,
        problems,
        model=model,
        tasks=tasks,
        repeats=repeats,
        against=against or (),
        leave_out=leave_out or (),
        budget=budget,
        work=work,
        output=output,
        json=json,
        settings=settings or (),
        device=device,
        target=target,
        parallel=parallel,
        prompts=folder_text(prompts),
        techniques=techniques,
    )
    raise typer.Exit(commands.measure(options))


@app.command("diff")
def memory_diff(old: MemoryArg, new: MemoryArg) -> None:
    """Print which rules were added, removed or changed. Exit code 1 if any."""
    from adaexplore.cli import memory as commands

    raise typer.Exit(commands.diff(old, new))


@app.command("export")
def memory_export(
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Ends in .json, .md or .txt, which says how."
        ),
    ],
    memory: MemoryArg = "bundled",
) -> None:
    """Write a memory as JSON, as a page to read, or as AdaExplore's statement||count lines."""
    from adaexplore.cli import memory as commands

    raise typer.Exit(commands.export(memory, output))


@app.command("import")
def memory_import(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE", help="A memory (.toml, .json), or statement||count lines."
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The memory to write or add to.")
    ] = Path("memory.toml"),
    known: Annotated[
        str, typer.Option(metavar="MEMORY", help="Rules that lines are compared with.")
    ] = "bundled",
    least_count: Annotated[
        float, typer.Option(min=0, metavar="N", help="Lines met less often are left out.")
    ] = 3.0,
    device: DeviceOption = None,
    target: TargetOption = None,
    parallel: ParallelOption = None,
) -> None:
    """Take rules from elsewhere: of mere statements only those that a known, true rule bears out.

    Prints for each line whether a rule witnesses it here, whether it is stale (what it forbids
    works), unverified (nothing known says it), or no rule (nothing in it can be tried).
    """
    from adaexplore.cli import imports as commands

    raise typer.Exit(commands.take(source, output, known, least_count, device, target, parallel))


@app.command("merge")
def memory_merge(
    memories: Annotated[
        list[str], typer.Argument(metavar="MEMORY...", help="Files, or bundled; later ones win.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The memory to write.")
    ],
) -> None:
    """Write several memories as one: places, tasks and support of all are kept."""
    from adaexplore.cli import memory as commands

    raise typer.Exit(commands.combine(memories, output))
