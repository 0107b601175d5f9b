"""Searching: explore, campaign, resume, evaluate, simulate, settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from adaexplore.cli.commands.options import (
    AT_ONCE,
    DeviceOption,
    LanguageOption,
    MemoryOption,
    ModelOption,
    ModeOption,
    NewRunOption,
    PrecisionOption,
    ProblemArg,
    PromptsOption,
    RequireCustomOption,
    RunArg,
    SeedOption,
    SetOption,
    StepsAtOnceOption,
    TargetOption,
    folder_text,
)
from adaexplore.core.problem import Mode, Precision

app = typer.Typer(rich_markup_mode=None)


@app.command()
def explore(
    problem: ProblemArg,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Candidates to try. Default: as the budget says, or 20."),
    ] = None,
    model: ModelOption = None,
    proposer: Annotated[
        Literal["compiler"] | None,
        typer.Option(
            help="compiler: TorchInductor, no model needed; beside models it is one of several. "
            "Default: compiler if there is no --model."
        ),
    ] = None,
    budget: Annotated[
        str,
        typer.Option(
            metavar="LIMIT",
            help="When to stop, such as 2usd, 500ktok, 30min, 100steps, or several by commas.",
        ),
    ] = "",
    parallel: StepsAtOnceOption = 1,
    tune: Annotated[
        int | None,
        typer.Option(
            min=0, help="Variants of the winner's numbers to try at the end; no model is asked."
        ),
    ] = None,
    prompts: PromptsOption = None,
    memory: MemoryOption = "",
    memory_update: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Make rules of what failed, at the end, into this memory; the first --model "
            "writes them. Several runs may update one memory.",
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep every model's reply there, for --replay."),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Take models' replies from there and ask nobody."),
    ] = None,
    base_url: Annotated[
        str,
        typer.Option(metavar="URL", help="Where an openai-compatible:MODEL is served."),
    ] = "",
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
    """Search for a faster kernel.

    Proposes candidates, verifies each against float64, times each against eager PyTorch and
    torch.compile at equal precision, and keeps everything in one run directory: the store, best.py
    and report.html. Stop it at any time; `adaexplore resume DIR` goes on.
    """
    from adaexplore.cli import run as commands
    from adaexplore.run.proposers import Plan, proposers
    from adaexplore.run.session import Asked

    status = commands.explore(
        Asked(problem, language, device, precision, mode, seed, require_custom, target),
        steps=steps,
        plan=Plan(
            proposers=proposers(model or [], compiler=proposer is not None),
            budget=budget,
            prompts=folder_text(prompts),
            record=folder_text(record),
            replay=folder_text(replay),
            base_url=base_url,
            memory=memory,
            memory_update=str(memory_update) if memory_update else "",
            parallel=parallel,
        ),
        run=run,
        settings=[*(settings or []), *([] if tune is None else [f"tune={tune}"])],
    )
    raise typer.Exit(status)


@app.command()
def campaign(
    what: Annotated[
        list[Path],
        typer.Argument(
            metavar="PROBLEMS", help="A TOML file, problem files, or a campaign to go on with."
        ),
    ],
    steps: Annotated[
        int | None, typer.Option(min=1, help="Candidates a problem. Default: as the budget, or 20.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="LIMIT", help="For all together, such as 20usd, 2h, 500steps."),
    ] = None,
    allocation: Annotated[
        Literal["headroom", "uniform"] | None,
        typer.Option(
            help="Who gets the next steps: whose steps gain most of what the roofline leaves "
            "(headroom, the default), or who has had the fewest (uniform)."
        ),
    ] = None,
    parallel: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Steps under way at once, over all problems. Default: 1."),
    ] = None,
    model: ModelOption = None,
    proposer: Annotated[
        Literal["compiler", "manual"] | None,
        typer.Option(
            help="compiler: ask the compiler besides the models. manual: you answer the prompts, "
            "in files; the same command with the folder continues."
        ),
    ] = None,
    prompts: PromptsOption = None,
    memory: MemoryOption = "",
    record: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep every model's reply there.")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Take models' replies from there.")
    ] = None,
    base_url: Annotated[
        str, typer.Option(metavar="URL", help="Where an openai-compatible:MODEL is served.")
    ] = "",
    language: LanguageOption = None,
    device: Annotated[
        str | None,
        typer.Option(help="One, or several by commas to spread problems over: cuda:0,cuda:1."),
    ] = None,
    target: TargetOption = None,
    precision: Annotated[
        Precision | None, typer.Option(help="The loosest precision class allowed. Default: fp32.")
    ] = None,
    mode: Annotated[
        Mode | None,
        typer.Option(help="How references run. Default: as their constructors leave them."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, max=2**31 - 1, help="Default: 0.")] = None,
    require_custom: RequireCustomOption = False,
    run: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to keep the runs. Default: runs/campaign-<time>."),
    ] = None,
    settings: SetOption = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", help="Write the results there, as JSON.")
    ] = None,
) -> None:
    """Search many problems within one budget, and put it where it pays.

    Every problem is a run directory of its own in one folder; index.html there has the results.
    Stop it at any time; the same command with the folder goes on. Exit code 0 also where some
    problems could not be judged, 3 where the machinery failed for some.
    """
    from adaexplore.cli import campaign as commands
    from adaexplore.core.configure import parse_pairs
    from adaexplore.run.campaign_file import Options

    shared = {
        "budget": budget,
        "parallel": parallel,
        "allocation": allocation,
        "prompts": folder_text(prompts) or None,
        "memory": memory or None,
        "record": folder_text(record) or None,
        "replay": folder_text(replay) or None,
        "base_url": base_url or None,
    }
    options = Options(
        language=language,
        device=device,
        target=target,
        precision=precision,
        mode=mode,
        seed=seed,
        require_custom=require_custom or None,
        steps=steps,
        model=model or None,
        proposer=proposer,
        settings=dict(parse_pairs(settings or [])),
    )
    said = {name: value for name, value in shared.items() if value is not None}
    raise typer.Exit(commands.campaign(what, commands.Asked(options, said, run, json)))


@app.command()
def resume(
    run: RunArg,
    steps: Annotated[
        int | None, typer.Option(min=1, help="New total of steps. Default: what was planned.")
    ] = None,
    parallel: Annotated[
        int | None, typer.Option(min=1, max=64, help=f"{AT_ONCE} Default: as many as before.")
    ] = None,
    budget: Annotated[
        str,
        typer.Option(
            metavar="LIMIT",
            help="New budget in place of the run's, counting what was used. Default: as before.",
        ),
    ] = "",
    base_url: Annotated[
        str,
        typer.Option(metavar="URL", help="Where the openai-compatible:MODEL is served now."),
    ] = "",
    prompts: PromptsOption = None,
) -> None:
    """Go on with a run that was stopped or killed, or give it more steps or another budget."""
    from adaexplore.cli import run as commands

    status = commands.resume(
        run, steps, parallel, budget=budget, base_url=base_url, prompts=folder_text(prompts)
    )
    raise typer.Exit(status)


@app.command()
def tune(
    run: RunArg,
    variants: Annotated[
        int, typer.Option("-n", "--variants", min=1, help="How many of the best kernel, in all.")
    ] = 20,
    parallel: StepsAtOnceOption = 1,
) -> None:
    """Vary the numbers in a run's best kernel: block sizes, warps, stages, unrolling.

    An optimizer proposes, no model is asked, and the steps are recorded beside those planned. Stop
    it at any time; the same command goes on.
    """
    from adaexplore.cli import tune as commands

    raise typer.Exit(commands.tune(run, variants, parallel))


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
    from adaexplore.run.session import Asked

    asked = Asked(problem, language, device, precision, mode, seed, require_custom, target)
    raise typer.Exit(commands.evaluate(asked, candidate, settings or [], as_json=json))


@app.command()
def settings() -> None:
    """List what --set can change, with defaults."""
    from adaexplore.cli import inspect

    raise typer.Exit(inspect.settings())
