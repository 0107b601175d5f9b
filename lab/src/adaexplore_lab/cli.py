"""The command line of the research tools. Importing it loads no torch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from adaexplore.cli.commands.options import (
    DeviceOption,
    MemoryArg,
    ParallelOption,
    PromptsOption,
    RunArg,
    SeedOption,
    SetOption,
    TargetOption,
    TechniquesOption,
    TokensOption,
    folder_text,
)
from adaexplore.core.errors import AdaExploreError

app = typer.Typer(
    name="adaexplore-lab",
    help="Research tools around AdaExplore: simulate policies, synthesize tasks, probe Triton, "
    "measure what a memory is worth, replay recorded runs.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run a command; an expected failure is one line on stderr and an exit code."""
    try:
        app()
    except AdaExploreError as error:
        print(f"adaexplore-lab: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


@app.command()
def probe(
    kinds: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND,...",
            help="Only these: compile, launch, resource, numerics, silent, speed. "
            "Default: all, but speed only on a GPU.",
        ),
    ] = "",
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The memory to write or add to.")
    ] = Path("memory.toml"),
    device: DeviceOption = None,
    target: TargetOption = None,
    parallel: ParallelOption = None,
) -> None:
    """Try the known pitfalls on the installed Triton, and keep those that are rules.

    Takes minutes, on a laptop too. Ctrl-C keeps what was found so far.
    """
    from adaexplore_lab.probe_command import probe as run_probes

    raise typer.Exit(run_probes(output, device, target, parallel, kinds))


@app.command()
def simulate(
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:KEY=VALUE,...]",
            help="A policy, with settings or parameters of its own, such as uct:reward=published "
            "or beam:width=4. Repeatable; the first is what the others are compared with. Default: "
            "all, with UCT as published first.",
        ),
    ] = None,
    landscape: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LANDSCAPE",
            help="synthetic:NAME, or synthetic:NAME:KEY=VALUE,... for another of its kind, a run's "
            "directory, or a file written by --save. Repeatable; all runs make one fit, and a "
            "landscape for each of their problems. Default: every synthetic one.",
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps of each search.")] = 100,
    seeds: Annotated[int, typer.Option(min=1, help="Searches of each policy.")] = 50,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of the seeds.")] = 0,
    parallel: Annotated[
        int, typer.Option(min=1, help="Steps of a search that are under way at a time.")
    ] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that simulate.")] = 2,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Where to keep it, as JSON."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Only write what was recorded in the runs to a file."),
    ] = None,
) -> None:
    """Set search policies against landscapes with a known optimum, or fitted to runs: at no cost.

    Prints what each has found by then, the true speedup of what it believes best, as a geometric
    mean over seeds with its 95 % interval.
    """
    from adaexplore.core.errors import BadInputError
    from adaexplore_lab.simulate import command as commands

    if save:
        if not landscape:
            raise BadInputError("--save takes the landscapes of runs: --landscape RUN")
        raise typer.Exit(commands.save(landscape, save))
    status = commands.compare(
        policy or [],
        landscape or [],
        steps=steps,
        seeds=range(first_seed, first_seed + seeds),
        parallel=parallel,
        jobs=jobs,
        output=output,
    )
    raise typer.Exit(status)


@app.command()
def replay(run: RunArg) -> None:
    """Go through a recorded search again, with the policies, prompts and parsers of today.

    Asks nobody and measures nothing: recorded replies and evaluations stand in. Prints the first
    step that would grow elsewhere or be shown something else, the first prompt that says something
    else, and the first replies that lead to another candidate. Exit code 1 if any.
    """
    from adaexplore_lab import replay_command as commands

    raise typer.Exit(commands.retrace_run(run))


@app.command()
def synthesize(
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="DIR", help="Where to write tasks, or add some."),
    ],
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many to keep.")] = 20,
    model: Annotated[
        str,
        typer.Option(
            metavar="PROVIDER:NAME", help="A language model that writes them. Default: a grammar."
        ),
    ] = "",
    styles: Annotated[
        str,
        typer.Option(
            metavar="STYLE,...",
            help="In turn: self-instruct, mutation, creative, composite (a model's), grammar. "
            "Default: all of a model's, or the grammar.",
        ),
    ] = "",
    budget: TokensOption = "",
    exclude: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Problems that no task may repeat, besides KernelBench's; repeatable.",
        ),
    ] = None,
    seed: SeedOption = 0,
) -> None:
    """Make small tasks to learn on: validated, all different, and none of a benchmark's.

    Each is a file in KernelBench form; tasks.json says what is known about them. Exit code 1 if
    fewer could be made.
    """
    from adaexplore_lab.synthesize import command as commands

    status = commands.synthesize(
        output,
        count=count,
        seed=seed,
        styles=styles,
        model=model,
        budget=budget,
        exclude=exclude or [],
    )
    raise typer.Exit(status)


@app.command()
def lift(
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
    from adaexplore_lab.lift import command as commands

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


@app.command(name="import")
def import_memory(
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
    from adaexplore_lab.imports import command as commands

    raise typer.Exit(commands.take(source, output, known, least_count, device, target, parallel))
