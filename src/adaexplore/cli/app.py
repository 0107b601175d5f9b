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
    typer.Option(
        help="What kernels are written in. Default: triton on a GPU, cpp on the CPU. cuda is CUDA "
        "C++ on a GPU, and needs nvcc."
    ),
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


ModelOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PROVIDER:NAME",
        help="A language model, such as openai:gpt-5-mini or anthropic:NAME; its key is read from "
        "the provider's variable (OPENAI_API_KEY, ANTHROPIC_API_KEY, ...). Repeatable: several are "
        "asked by what pays off.",
    ),
]
_AT_ONCE = "Steps under way at once: proposals, compilation and measurement overlap."
StepsAtOnceOption = Annotated[
    int,
    typer.Option(
        "--parallel",
        min=1,
        max=64,
        help=f"{_AT_ONCE} With more than one, the tree depends on who is done first: the same seed "
        "need not give the same tree.",
    ),
]
PromptsOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Prompt templates of your own, in place of some or all."),
]


MemoryOption = Annotated[
    str,
    typer.Option(
        metavar="MEMORY",
        help="Rules for the prompts: a memory's file, bundled or none. Default: bundled for "
        "Triton, else none.",
    ),
]


LeastTasksOption = Annotated[
    int,
    typer.Option(min=1, help="Ask for a rule only where so many distinct tasks met the failure."),
]


def _folder(path: Path | None) -> str:
    return str(path.resolve()) if path else ""


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
    from adaexplore.cli.proposers import Plan, proposers
    from adaexplore.cli.session import Asked

    status = commands.explore(
        Asked(problem, language, device, precision, mode, seed, require_custom, target),
        steps=steps,
        plan=Plan(
            proposers=proposers(model or [], compiler=proposer is not None),
            budget=budget,
            prompts=_folder(prompts),
            record=_folder(record),
            replay=_folder(replay),
            base_url=base_url,
            memory=memory,
            memory_update=str(memory_update) if memory_update else "",
            parallel=parallel,
        ),
        run=run,
        settings=settings or [],
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
        Literal["compiler"] | None, typer.Option(help="compiler: beside models, it is asked too.")
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
    from adaexplore.cli.campaign_file import Options
    from adaexplore.settings import parse_pairs

    shared = {
        "budget": budget,
        "parallel": parallel,
        "allocation": allocation,
        "prompts": _folder(prompts) or None,
        "memory": memory or None,
        "record": _folder(record) or None,
        "replay": _folder(replay) or None,
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
def learn(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Directories of runs that have failures.")
    ],
    memory: Annotated[
        Path, typer.Option(metavar="FILE", help="The memory to write or add to.")
    ] = Path("memory.toml"),
    model: Annotated[
        str, typer.Option(metavar="PROVIDER:NAME", help="Who writes the rules. Default: you do.")
    ] = "",
    asks: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where cases, prompts and replies are kept. Default: MEMORY.learning.",
        ),
    ] = None,
    budget: Annotated[
        str, typer.Option(metavar="LIMIT", help="When to stop asking, such as 2usd or 500ktok.")
    ] = "",
    least_tasks: LeastTasksOption = 1,
    device: DeviceOption = None,
    target: TargetOption = None,
) -> None:
    """Make rules of what failed in runs, each with a small witness, and a remedy that passes.

    Failures of one cause are taken together and the shortest candidate is reduced while it fails so
    still. A model writes the rule and the remedy; without one, the prompts wait in files: answer
    DIR/ID.1.md in DIR/ID.1.reply.md and run the same command again. Nothing is done twice.
    """
    from adaexplore.cli import learn as commands

    status = commands.learn_from_runs(
        runs,
        memory=memory,
        model=model,
        asks=asks,
        budget=budget,
        least_tasks=least_tasks,
        device=device,
        target=target,
    )
    raise typer.Exit(status)


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
    run: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to keep the run. Default: runs/<problem>-<time>."),
    ] = None,
    settings: SetOption = None,
) -> None:
    """Make a run whose prompts you answer: a person, an agent, or a machine without internet.

    Then, again and again: `ask` for prompts, answer them in files, `tell` the replies, and
    `evaluate-pending` on the machine with the device.
    """
    from adaexplore.ask import PERSON
    from adaexplore.cli import asks as commands
    from adaexplore.cli.proposers import Plan
    from adaexplore.cli.session import Asked

    status = commands.start(
        Asked(problem, language, device, precision, mode, seed, require_custom, target),
        steps=steps,
        plan=Plan(proposers=(PERSON,), prompts=_folder(prompts), memory=memory),
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

    raise typer.Exit(commands.ask(run, count, output, steps, _folder(prompts)))


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


@app.command()
def resume(
    run: RunArg,
    steps: Annotated[
        int | None, typer.Option(min=1, help="New total of steps. Default: what was planned.")
    ] = None,
    parallel: Annotated[
        int | None, typer.Option(min=1, max=64, help=f"{_AT_ONCE} Default: as many as before.")
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
        run, steps, parallel, budget=budget, base_url=base_url, prompts=_folder(prompts)
    )
    raise typer.Exit(status)


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
def cost(
    run: RunArg,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print what a run's models cost: by model, by form of step, by section of the prompt."""
    from adaexplore.cli import inspect

    raise typer.Exit(inspect.cost(run, as_json=json))


@app.command()
def retrace(run: RunArg) -> None:
    """Go through a recorded search again, with the policies, prompts and parsers of today.

    Asks nobody and measures nothing: recorded replies and evaluations stand in. Prints the first
    step that would grow elsewhere or be shown something else, the first prompt that says something
    else, and the first replies that lead to another candidate. Exit code 1 if any.
    """
    from adaexplore.cli import retrace as commands

    raise typer.Exit(commands.retrace_run(run))


@app.command()
def export(
    run: RunArg,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Ends in .json.xz.")
    ],
) -> None:
    """Write a run as one small file, which show, cost, report and retrace take in its place."""
    from adaexplore.cli import inspect

    raise typer.Exit(inspect.export(run, output))


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
            "directory, or a file written by --save. Repeatable. Default: every synthetic one.",
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
        typer.Option(metavar="FILE", help="Only write the landscape of one run to a file."),
    ] = None,
) -> None:
    """Set search policies against landscapes with a known optimum, or fitted to a run: at no cost.

    Prints what each has found by then, the true speedup of what it believes best, as a geometric
    mean over seeds with its 95 % interval.
    """
    from adaexplore.cli import simulate as commands
    from adaexplore.errors import BadInputError

    if save:
        if len(landscape or []) != 1:
            raise BadInputError("--save takes the landscape of one run: --landscape RUN")
        raise typer.Exit(commands.save((landscape or [])[0], save))
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


MemoryArg = Annotated[
    str,
    typer.Argument(metavar="MEMORY", help="A memory's file, or `bundled`: the package's own."),
]
ParallelOption = Annotated[
    int | None,
    typer.Option(min=1, help="How many are run at once. Default: one for each processor core."),
]


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
    budget: Annotated[
        str, typer.Option(metavar="LIMIT", help="What the model may take: 2usd, 500ktok.")
    ] = "",
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
    from adaexplore.cli import synthesize as commands

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
def adapt(
    probe: Annotated[
        bool,
        typer.Option("--probe", help="Try the package's probes on the installed Triton; no model."),
    ] = False,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The memory to write or add to.")
    ] = Path("memory.toml"),
    model: Annotated[
        str, typer.Option(metavar="PROVIDER:NAME", help="Who attempts tasks and writes rules.")
    ] = "",
    problems: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The tasks, as `adaexplore synthesize` makes them: problems, a file each.",
        ),
    ] = None,
    tasks: Annotated[int, typer.Option(min=1, help="How many tasks, in the order of names.")] = 200,
    memory: MemoryOption = "",
    work: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where runs and cases are. Default: OUTPUT.learning."),
    ] = None,
    budget: Annotated[
        str, typer.Option(metavar="LIMIT", help="When to stop asking, such as 2usd or 500ktok.")
    ] = "",
    least_tasks: LeastTasksOption = 1,
    device: DeviceOption = None,
    target: TargetOption = None,
    parallel: ParallelOption = None,
) -> None:
    """Learn rules about Triton: each with a program that fails so, and one that does not.

    With --probe: which of the known pitfalls hold for the installed version and target. Takes
    minutes, on a laptop too. Ctrl-C keeps what was found so far.

    With --model and --problems: the model attempts each task, once and with one repair, and rules
    are made of what fails. The same command goes on where it was stopped.
    """
    from adaexplore.errors import BadInputError

    if probe:
        from adaexplore.cli import adapt as commands

        raise typer.Exit(commands.probe(output, device, target, parallel))
    if not model or problems is None:
        raise BadInputError(
            "say how to learn: adaexplore adapt --probe, or adaexplore adapt --model NAME "
            "--problems DIR"
        )
    from adaexplore.cli import learn as by_model

    status = by_model.adapt_by_model(
        problems,
        tasks=tasks,
        model=model,
        memory=memory,
        output=output,
        work=work,
        budget=budget,
        least_tasks=least_tasks,
        device=device,
        target=target,
    )
    raise typer.Exit(status)


memory_app = typer.Typer(
    help="Look at memories: rules with their witnesses and remedies.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(memory_app, name="memory")


@memory_app.command("list")
def memory_list(memory: MemoryArg = "bundled") -> None:
    """Print a line for each rule."""
    from adaexplore.cli import memory as commands

    raise typer.Exit(commands.show_all(memory))


@memory_app.command("show")
def memory_show(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="The rule's name.")],
    memory: MemoryArg = "bundled",
) -> None:
    """Print a rule with its programs."""
    from adaexplore.cli import memory as commands

    raise typer.Exit(commands.show(memory, rule))


@memory_app.command("check")
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


@memory_app.command("diff")
def memory_diff(old: MemoryArg, new: MemoryArg) -> None:
    """Print which rules were added, removed or changed. Exit code 1 if any."""
    from adaexplore.cli import memory as commands

    raise typer.Exit(commands.diff(old, new))


@memory_app.command("export")
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


@memory_app.command("import")
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


@memory_app.command("merge")
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
