"""The summary of a run, and its report."""

from __future__ import annotations

from pathlib import Path

from adaexplore.core.files import write_whole
from adaexplore.core.text.units import estimated_tokens
from adaexplore.report import RunInfo, Summary, summarize
from adaexplore.report.run.costs import summarize_costs
from adaexplore.report.run.diversity import DiversityPoint
from adaexplore.report.run.exchanges import exchanges_by_step
from adaexplore.report.run.html import render
from adaexplore.run.outcome.winner import confirmed_of
from adaexplore.search.diversity import diversity
from adaexplore.search.ensemble import gains
from adaexplore.store import RunDirectory, Store


def summary_of(store: Store, path: Path) -> Summary:
    """Summarize a run from its store."""
    run, nodes, calls = store.run(), store.nodes(), store.calls()
    info = RunInfo(
        name=path.resolve().name,
        directory=str(path),
        seed=run.seed,
        proposer=", ".join(run.proposers),
        planned_steps=run.steps,
        settings=run.config.model_dump(),
        environment=run.environment,
        reproduce=run.command,
        created_at=run.created_at,
        reference=run.reference,
        confirmations=confirmed_of(nodes, store),
    )
    exchanges = exchanges_by_step(nodes, calls)
    costs = summarize_costs(nodes, calls, exchanges, gains(nodes), estimated_tokens)
    spread = [DiversityPoint(*each) for each in diversity(nodes)]
    return summarize(run.problem, nodes, info, exchanges, costs, spread)


def write_report(summary: Summary, target: Path) -> None:
    """Write the HTML report.

    Raises `BadInputError` for a file that cannot be written.
    """
    write_whole(target, render(summary))


def write_report_of(directory: RunDirectory) -> Summary:
    """Write the report of an open run into its folder, and return the summary."""
    summary = summary_of(directory.store, directory.path)
    write_report(summary, directory.report_path)
    return summary
