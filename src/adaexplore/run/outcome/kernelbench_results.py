"""A campaign, or a folder of judged answers, in KernelBench's own layout of results."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation import NOT_COMPILED
from adaexplore.problems.solutions.kernelbench import (
    ProblemPlace,
    Sample,
    sample_of,
    write_results,
)
from adaexplore.run.api import read_source
from adaexplore.run.campaign.file import CampaignEntry, CampaignPlan
from adaexplore.run.outcome.results import summary_of
from adaexplore.store import is_run, read_run
from adaexplore.store.bench import is_bench, read_bench, read_verdicts
from adaexplore.store.campaign import is_campaign, read_manifest

_SAMPLE = re.compile(r".*_sample_(\d+)_kernel\.py")


@dataclass(frozen=True, slots=True)
class KernelBenchResults:
    """Written results: folders and files, and what was left out, each with the reason."""

    written: tuple[Path, ...]
    samples: int
    left_out: tuple[tuple[str, str], ...]


def export_kernelbench(path: Path, folder: Path) -> KernelBenchResults:
    """Write the results of a campaign or of judged answers into a folder.

    Raises `BadInputError` for a folder of something else, or without a problem of KernelBench.
    """
    left_out: list[tuple[str, str]] = []
    if is_campaign(path):
        samples = _of_campaign(path, left_out)
    elif is_bench(path):
        samples = _of_bench(path, left_out)
    else:
        raise BadInputError(f"{path}: --kernelbench takes a campaign, or a folder of `bench`")
    if not samples:
        why = f": {left_out[0][0]}: {left_out[0][1]}" if left_out else ""
        raise BadInputError(f"{path}: no result of a problem of KernelBench{why}")
    return KernelBenchResults(tuple(write_results(samples, folder)), len(samples), tuple(left_out))


def _of_campaign(path: Path, left_out: list[tuple[str, str]]) -> list[Sample]:
    """Return a sample for each problem that was searched: its winner, or that there is none."""
    order = CampaignPlan.from_json(read_manifest(path)["order"])
    samples, numbers = [], Counter[ProblemPlace]()
    for entry in order.entries:
        place = ProblemPlace.of(entry.path)
        if place is None:
            left_out.append((entry.name, "no problem of KernelBench: no level in its path"))
        elif not is_run(path / entry.name):
            left_out.append((entry.name, "not searched"))
        elif _problem(path / entry.name).checks.backward:
            left_out.append((entry.name, "its times are those of training steps"))
        else:
            samples.append(_winner(path, entry, place, numbers[place]))
            numbers[place] += 1
    return samples


def _problem(path: Path) -> Problem:
    with read_run(path) as run:
        return run.store.run().problem


def _winner(path: Path, entry: CampaignEntry, place: ProblemPlace, number: int) -> Sample:
    with read_run(path / entry.name) as run:
        summary, environment = summary_of(run.store, run.path), run.store.run().environment
        claimed, nodes = summary.headline.claimed, run.store.nodes()
        best = run.best_path
    name, hardware = path.resolve().name, environment.gpu or environment.cpu or "CPU"
    if claimed and best.is_file():
        return sample_of(name, place, number, read_source(best), claimed, on=hardware)
    compiled = any(node.evaluation.status not in NOT_COMPILED for node in nodes)
    return Sample(
        name,
        place,
        number,
        "",
        None,
        compiled,
        hardware,
        f"no correct kernel in {len(nodes)} steps",
    )


def _of_bench(path: Path, left_out: list[tuple[str, str]]) -> list[Sample]:
    """Return a sample for each judged answer; those of a problem are numbered by their places."""
    manifest = read_bench(path)
    if manifest.config.get("with_backward"):
        left_out.append(("every answer", "its times are those of training steps"))
        return []
    verdicts = read_verdicts(path, manifest.entries)
    samples: list[Sample] = []
    numbers = Counter[tuple[str, ProblemPlace]]()
    for one in sorted(verdicts, key=lambda verdict: verdict.entry.place):
        place = ProblemPlace.of(one.entry.problem)
        if place is None:
            left_out.append((one.entry.place, "no problem of KernelBench: no level in its path"))
            continue
        if one.evaluation is None or not one.is_final:
            left_out.append((one.entry.place, one.unjudged or "the machinery failed"))
            continue
        own = _SAMPLE.fullmatch(one.entry.place)
        key = (one.entry.collection, place)
        number = int(own[1]) if own else numbers[key]
        numbers[key] += 1
        source = read_source(path / one.entry.answer)
        found = sample_of(
            one.entry.collection, place, number, source, one.evaluation, on=one.device
        )
        samples.append(found)
    return samples
