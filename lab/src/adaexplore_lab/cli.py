"""The command line of the research tools. Importing it loads no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adaexplore.cli import run_app
from adaexplore_lab.options import (
    BudgetOption,
    DeviceOption,
    MemoryArg,
    NewMemoryOption,
    ParallelOption,
    RunArg,
    TargetOption,
)

app = typer.Typer(
    name="adaexplore-lab",
    help="Research tools around AdaExplore: simulate policies, synthesize tasks, probe Triton, "
    "measure the lift of a memory, replay recorded runs.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run a command; an expected failure is one line on stderr and an exit code."""
    run_app(app, "adaexplore-lab")


@app.command()
def probe(
    kinds: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND,...",
            help="Only these kinds: compile, launch, resource, numerics, silent, speed. "
            "Default: all; speed only on a GPU.",
        ),
    ] = "",
    output: NewMemoryOption = Path("memory.toml"),
    device: DeviceOption = None,
    target: TargetOption = None,
    parallel: ParallelOption = None,
) -> None:
    """Try the bundled rules and the rule candidates on the installed Triton; keep those that hold.

    Takes minutes, on a laptop too. Ctrl-C keeps the rules found so far.
    """
    from adaexplore_lab.rules import command

    raise typer.Exit(command.probe(output, device, target, parallel, kinds))


@app.command()
def simulate(
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:KEY=VALUE,...]",
            help="A policy, with settings or parameters of its own, such as uct:reward=published "
            "or beam:width=4. Repeatable; the others are compared with the first. Default: all, "
            "with UCT as published first.",
        ),
    ] = None,
    landscape: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LANDSCAPE",
            help="synthetic:NAME, synthetic:NAME:KEY=VALUE,... for a variant, a run's folder, or a "
            "file written by --save. Repeatable; all runs make one fit, and each of their problems "
            "a landscape. Default: every synthetic one.",
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps of each search.")] = 100,
    seeds: Annotated[int, typer.Option(min=1, help="Searches of each policy.")] = 50,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of the seeds.")] = 0,
    parallel: Annotated[
        int, typer.Option(min=1, help="Steps of a search that are in flight at a time.")
    ] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that simulate.")] = 2,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the results as JSON."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Only write the records of the runs to a file."),
    ] = None,
) -> None:
    """Compare search policies on landscapes with a known optimum, or fitted to runs, at no cost.

    Prints the true speedup of each policy's best kernel, as a geometric mean over seeds with its
    95 % interval.
    """
    from adaexplore.core import BadInputError
    from adaexplore_lab.simulate import command

    if save:
        if not landscape:
            raise BadInputError("--save takes the landscapes of runs: --landscape RUN")
        raise typer.Exit(command.save(landscape, save))
    status = command.compare(
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
    """Replay a recorded search with the policies, prompts and parsers of today.

    Asks no model and measures nothing: recorded replies and evaluations stand in. Prints the first
    selection, the first prompt and the first candidate that differ. Exit code 1 if any does.
    """
    from adaexplore_lab import replay_command as command

    raise typer.Exit(command.replay_run(run))


@app.command()
def synthesize(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Folder of the tasks, new or not.")
    ],
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="Number of new tasks.")] = 20,
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
            help="Used in turn: self-instruct, mutation, creative, composite (by a model), "
            "grammar. Default: all those of a model, or the grammar.",
        ),
    ] = "",
    budget: BudgetOption = "",
    exclude: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Problems that no task may repeat, besides KernelBench's; repeatable.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**31 - 1, help="Fixes the choices of the grammar and styles.")
    ] = 0,
) -> None:
    """Make small tasks to learn from: validated, all different, and none of a benchmark's.

    Each is a file in KernelBench form; tasks.json describes them. Exit code 1 if fewer could be
    made.
    """
    from adaexplore_lab.synthesize import command

    status = command.synthesize(
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
            help="The tasks, as `adaexplore-lab synthesize` makes them. Tasks that a rule was "
            "learned from are left out.",
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            metavar="PROVIDER:NAME",
            help="The model that makes the tries. Default: you answer prompts in files.",
        ),
    ] = "",
    tasks: Annotated[
        int, typer.Option(min=1, help="Number of tasks, in the order of their names.")
    ] = 200,
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
    budget: BudgetOption = "",
    work: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the tries. Default: MEMORY.lift.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The file to note lifts in. Default: the memory itself, unless bundled.",
        ),
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything as JSON.")
    ] = None,
    prompts: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Prompt templates of your own, in place of some or all."),
    ] = None,
    techniques: Annotated[
        bool,
        typer.Option(
            "--techniques/--no-techniques",
            help="Ask each task's tries to use a part of Triton that a safe answer would avoid.",
        ),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change a setting of the tries; repeatable."
        ),
    ] = None,
    device: DeviceOption = None,
    target: TargetOption = None,
    parallel: ParallelOption = None,
) -> None:
    """Measure the lift of a memory: the share of correct first tries, with it and without.

    Prompts differ in the memory's rules alone. The same command goes on where it was stopped.
    Without a model the prompts wait in files: answer each in WORK/asks and run the same command
    again.
    """
    from adaexplore_lab.lift import command

    options = command.LiftOptions(
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
        prompts=str(prompts.resolve()) if prompts else "",
        techniques=techniques,
    )
    raise typer.Exit(command.measure(options))


@app.command()
def mutate(
    targets: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[TARGET...]", help="Modules or folders below the root. Default: of the plan."
        ),
    ] = None,
    root: Annotated[
        Path, typer.Option(metavar="DIR", help="The root of the repository; a git checkout.")
    ] = Path(),
    lists: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Folder, below the root, of the plan mutate.toml, named.toml and equivalent.toml.",
        ),
    ] = Path("lab/mutants"),
    sample: Annotated[
        int, typer.Option(min=0, help="Mutants of each target, besides the named ones.")
    ] = 15,
    seed: Annotated[int, typer.Option(min=0, help="Fixes the sample.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Mutants that are tried at a time.")] = 1,
    minutes: Annotated[
        float, typer.Option(min=0, help="Begin no mutant after so many minutes.")
    ] = 20.0,
    limit: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="For the tests of one mutant.")
    ] = 300.0,
    again: Annotated[
        bool, typer.Option("--again", help="Try those that survived before once more.")
    ] = False,
    least: Annotated[
        float, typer.Option(min=0, max=1, help="The least score for exit code 0.")
    ] = 0.9,
    outcomes: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Outcomes, one a line; the same file goes on."),
    ] = Path("build/mutants.jsonl"),
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write scores and survivors as JSON."),
    ] = None,
) -> None:
    """Put single defects into the source, in a copy, and see whether the fast tests notice.

    Tries the named mutants and a random sample of each target's. Prints the survivors and the share
    that died. Exit code 1 if a named mutant survived or the score is below --least.
    """
    from adaexplore_lab.mutate import command

    options = command.MutateOptions(
        [str(target) for target in targets or ()],
        root=root,
        lists=lists,
        sample=sample,
        seed=seed,
        jobs=jobs,
        minutes=minutes,
        limit_s=limit,
        again=again,
        least=least,
        outcomes=outcomes,
        output=output,
    )
    raise typer.Exit(command.mutate(options))


@app.command(name="import")
def import_memory(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE", help="A memory (.toml, .json), or statement||count lines."
        ),
    ],
    output: NewMemoryOption = Path("memory.toml"),
    known: Annotated[
        str, typer.Option(metavar="MEMORY", help="Rules that lines are compared with.")
    ] = "bundled",
    least_count: Annotated[
        float, typer.Option(min=0, metavar="N", help="Leave out lines with a lower count.")
    ] = 3.0,
    device: DeviceOption = None,
    target: TargetOption = None,
    parallel: ParallelOption = None,
) -> None:
    """Import rules; of statements without programs, only those that a known rule bears out.

    Prints the status of each line: witnessed (a rule that holds here says the same), stale (what it
    forbids works), unverified (no known rule says it), or no rule (nothing in it can be tried).
    """
    from adaexplore_lab.memories import import_command as command

    raise typer.Exit(command.take(source, output, known, least_count, device, target, parallel))


@app.command()
def export(
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="A name that ends in .json, .md (a page) or .txt (statement||count lines).",
        ),
    ],
    memory: MemoryArg = "bundled",
) -> None:
    """Write a memory as JSON, as a page to read, or as AdaExplore's statement||count lines."""
    from adaexplore_lab.memories import command

    raise typer.Exit(command.export(memory, output))


@app.command()
def diff(old: MemoryArg, new: MemoryArg) -> None:
    """Print the rules that were added, removed or changed. Exit code 1 if any."""
    from adaexplore_lab.memories import command

    raise typer.Exit(command.diff(old, new))
