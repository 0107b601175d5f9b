"""Commands that read a run or a campaign: show, report, export; and settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adaexplore.cli.benchmarks.handover import FlashInferOption, SolOption, hand_over
from adaexplore.cli.options import RunArg
from adaexplore.cli.training import (
    ExcludeOption,
    FormOption,
    LicenseOption,
    ParquetOption,
    RewardOption,
    WithBenchmarksOption,
    export_training_data,
)

if TYPE_CHECKING:
    from adaexplore.problems.solutions.delivery import Delivery

app = typer.Typer(rich_markup_mode=None)


@app.command()
def show(
    run: RunArg,
    cost: Annotated[
        bool,
        typer.Option(
            "--cost", help="Print the cost of the models: by model, form of step, prompt section."
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="With --cost: one JSON object.")] = False,
) -> None:
    """Print the tree of a run: id, parent, step kind, status, time, speedup.

    Of a campaign: its tables, with the results so far of every problem. Of a folder with runs or
    released kernels of the published search: a line for each.
    """
    import json as json_format
    from dataclasses import asdict

    from rich.text import Text

    from adaexplore.cli.terminal.printing import show_table
    from adaexplore.core.errors import BadInputError
    from adaexplore.report.compare.reported import reported_summary, reported_table
    from adaexplore.report.run.cost_tables import cost_tables
    from adaexplore.report.run.terminal import headline, tree_table
    from adaexplore.run.outcome.comparison import reported_in
    from adaexplore.run.outcome.results import summary_of
    from adaexplore.store import read_run
    from adaexplore.store.campaign import is_campaign
    from adaexplore.store.published import published_runs

    if json and not cost:
        raise BadInputError("--json goes with --cost")
    if is_campaign(run):
        from adaexplore.cli.campaign import tables_of
        from adaexplore.run.campaign.recorded import recorded

        if cost:
            raise BadInputError(f"--cost: {run} is a campaign; name one of its runs")
        show_table(tables_of(recorded(run, reports=False)))
        return
    if theirs := published_runs(run):
        found = [reported_in(path) for path in theirs]
        show_table(reported_table(found))
        show_table(Text(reported_summary(found)))
        return
    with read_run(run) as directory:
        summary = summary_of(directory.store, run)
    if json:
        print(json_format.dumps(asdict(summary.costs)))
    elif cost:
        show_table(cost_tables(summary.costs))
    else:
        show_table(tree_table(summary))
        show_table(headline(summary))


@app.command()
def report(
    run: RunArg,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The file to write. Default: RUN/report.html, CAMPAIGN/index.html.",
        ),
    ] = None,
) -> None:
    """Write the report of a run: one HTML file that opens anywhere, offline.

    Of a campaign: the page of its problems, beside which their reports lie.
    """
    from adaexplore.run.outcome.results import summary_of, write_report
    from adaexplore.store import read_run
    from adaexplore.store.campaign import is_campaign

    if is_campaign(run):
        from adaexplore.cli.campaign import write_page
        from adaexplore.run.campaign.recorded import recorded

        print(write_page(recorded(run, reports=True), run, output))
        return
    with read_run(run) as directory:
        summary = summary_of(directory.store, run)
        target = output or directory.report_path
    write_report(summary, target)
    print(target)


@app.command()
def export(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="The folder of a run; with --kernelbench, of many problems; with --parquet, runs, "
            "exported runs and campaigns.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the run as one small file, which show, report and compare take in its "
            "place. Ends in .json.xz.",
        ),
    ] = None,
    without_problem: Annotated[
        bool,
        typer.Option(
            "--without-problem",
            help="With -o: leave out the source of the problem, and the prompts that quote it.",
        ),
    ] = False,
    flashinfer: FlashInferOption = None,
    sol: SolOption = None,
    kernelbench: Annotated[
        Path | None,
        typer.Option(
            "--kernelbench",
            metavar="DIR",
            help="Write the results of a campaign, or of judged answers, in KernelBench's own "
            "layout: eval_results.json, kernels, and baselines for its analysis script.",
        ),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            "--predictions",
            metavar="FILE",
            help="Write the winners of a run or a campaign, or the fastest right answers of a "
            'judged folder, as lines {"predict", "file"}: functions, for KernelBench-X.',
        ),
    ] = None,
    name: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="NAME",
            help='With --predictions: write lines {"instruction", "predict"} for this benchmark, '
            "tritonbench-t or tritonbench-g, a line for each of its prompts.",
        ),
    ] = "",
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="With --for: a clone of the benchmark."),
    ] = None,
    dataset: Annotated[
        Path | None,
        typer.Option(
            "--dataset",
            help="The dataset that has the definition. Default: DIR.",
        ),
    ] = None,
    parquet: ParquetOption = None,
    form: FormOption = "",
    reward: RewardOption = "",
    license_name: LicenseOption = "",
    exclude: ExcludeOption = None,
    with_benchmarks: WithBenchmarksOption = False,
) -> None:
    """Write a run as one small file, hand its winner to a benchmark, or make training data."""
    from adaexplore.core.errors import BadInputError
    from adaexplore.store.directory import require_run

    run = runs[0]
    if not run.exists():
        require_run(run)
    targets = {
        "-o": output,
        "--flashinfer": flashinfer,
        "--sol": sol,
        "--kernelbench": kernelbench,
        "--predictions": predictions,
        "--parquet": parquet,
    }
    if sum(map(bool, targets.values())) != 1:
        raise BadInputError(f"give one of {', '.join(targets)}")
    beside: dict[str, dict[str, object]] = {
        "-o": {"--without-problem": without_problem},
        "--predictions": {"--for": name, "--data": data},
        "--parquet": {
            "--form": form,
            "--reward": reward,
            "--license": license_name,
            "--exclude": exclude,
            "--with-benchmarks": with_benchmarks,
        },
    }
    for target, options in beside.items():
        for option, given in options.items():
            if given and not targets[target]:
                raise BadInputError(f"{option} goes with {target}")
    if len(runs) > 1 and not parquet:
        raise BadInputError(f"{len(runs)} runs: only --parquet takes more than one")
    if parquet:
        chosen = (form, reward or "log", license_name, exclude or [])
        export_training_data(runs, parquet, *chosen, with_benchmarks=with_benchmarks)
    elif output:
        _export_file(run, output, problem=not without_problem)
    elif kernelbench:
        _export_kernelbench(run, kernelbench)
    elif predictions:
        _export_predictions(run, predictions, name, data)
    else:
        hand_over(_delivery(run, dataset, flashinfer or sol), flashinfer, sol)


def _delivery(run: Path, dataset: Path | None, folder: Path | None) -> Delivery:
    from adaexplore.run.outcome.deliver import delivery_of_run

    assert folder
    return delivery_of_run(run, dataset or folder)


def _export_kernelbench(run: Path, folder: Path) -> None:
    from adaexplore.run.outcome.kernelbench_results import export_kernelbench

    done = export_kernelbench(run, folder)
    for path in done.written:
        print(path)
    print(f"{done.samples} results")
    for name, why in done.left_out:
        print(f"  left out: {name}: {why}")


def _export_predictions(run: Path, output: Path, name: str, data: Path | None) -> None:
    from adaexplore.core.errors import BadInputError
    from adaexplore.run.outcome.predictions import (
        predictions_of,
        write_predictions,
        write_to_prompts,
    )

    if bool(name) != bool(data):
        raise BadInputError("--for NAME and --data DIR go together")
    found = predictions_of(run)
    count = len(found.kernels)
    if data:
        count = write_to_prompts(found.kernels, output, name, data)
    else:
        write_predictions(found.kernels, output)
    print(f"{output}: {count} kernels")
    for name, why in found.left_out:
        print(f"  left out: {name}: {why}")


def _export_file(run: Path, output: Path, *, problem: bool) -> None:
    from adaexplore.core.errors import BadInputError
    from adaexplore.store import export_run, read_run
    from adaexplore.store.directory import require_run
    from adaexplore.store.exported import SUFFIX

    if not output.name.endswith(SUFFIX):
        raise BadInputError(f"--output {output}: its name has to end in {SUFFIX}")
    require_run(run)
    with read_run(run) as directory:
        export_run(directory.store, output, problem=problem)
    print(output)


@app.command()
def settings() -> None:
    """List every setting (options of the command line, and keys of --set) and every preset.

    Between them stand the parameters of single policies, for --set policy=NAME:KEY=VALUE,...
    """
    from rich.table import Table

    from adaexplore.cli.terminal.printing import show_table
    from adaexplore.core.settings.config import Config
    from adaexplore.core.settings.configure import group_of, is_option, option_name
    from adaexplore.core.settings.policies import PARAMETERS
    from adaexplore.core.settings.presets import PRESETS

    table = Table("setting", "default", "given by", "group", "meaning", box=None)
    for name, field in Config.model_fields.items():
        default = "" if field.default in (None, ()) else str(field.default)
        given_by = option_name(name) if is_option(name) else "--set"
        table.add_row(name, default, given_by, group_of(name), field.description)
    show_table(table)
    parameters = Table("parameter of a policy", "default", "meaning", box=None)
    for policy, own in PARAMETERS.items():
        for name, each in own.items():
            parameters.add_row(f"policy={policy}:{name}", f"{each.default:g}", each.meaning)
    show_table(parameters)
    presets = Table("preset", "meaning", "settings", box=None)
    for name, preset in PRESETS.items():
        values = ", ".join(f"{key}={value}" for key, value in preset.values.items())
        presets.add_row(name, preset.meaning, values)
    show_table(presets)
