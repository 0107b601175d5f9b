"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adaexplore.core.problem import Language, Mode, Precision, TargetName

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
NewRunOption = Annotated[
    Path | None,
    typer.Option(
        "--run", metavar="DIR", help="Where to keep the run. Default: runs/<problem>-<time>."
    ),
]
TokensOption = Annotated[
    str, typer.Option("--budget", metavar="LIMIT", help="When to stop asking: 2usd, 500ktok.")
]
TechniquesOption = Annotated[
    bool,
    typer.Option(
        "--techniques/--no-techniques",
        help="Ask each attempt to use a part of Triton, another for each task, that a safe answer "
        "would do without.",
    ),
]
AT_ONCE = "Steps under way at once: proposals, compilation and measurement overlap."
StepsAtOnceOption = Annotated[
    int,
    typer.Option(
        "--parallel",
        min=1,
        max=64,
        help=f"{AT_ONCE} With more than one, the tree depends on who is done first: the same seed "
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


def folder_text(path: Path | None) -> str:
    """A folder's absolute path, "" for none."""
    return str(path.resolve()) if path else ""


MemoryArg = Annotated[
    str,
    typer.Argument(metavar="MEMORY", help="A memory's file, or `bundled`: the package's own."),
]
ParallelOption = Annotated[
    int | None,
    typer.Option(
        min=1, help="How many are run at once, but for what a GPU times. Default: by the cores."
    ),
]
