"""Winners and judged answers as lines `{"predict", "file"}`, for benchmarks of functions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.bench import BenchVerdict
from adaexplore.core.errors import BadInputError
from adaexplore.core.files import write_whole
from adaexplore.core.leader import is_claimable
from adaexplore.core.verdict.evaluation import Evaluation, Passed
from adaexplore.problems.benchmarks.scripted.answer import own_part
from adaexplore.problems.benchmarks.tritonbench.benchmark import channel_named
from adaexplore.problems.benchmarks.tritonbench.predictions import lines_of
from adaexplore.problems.benchmarks.tritonbench.tasks import Checkout
from adaexplore.problems.solutions.functions import NotAFunctionError, as_function
from adaexplore.run.api import read_source
from adaexplore.run.campaign.file import CampaignPlan
from adaexplore.run.outcome.deliver import claimed_winner
from adaexplore.store import is_run, read_run
from adaexplore.store.bench import is_bench, read_bench, read_verdicts
from adaexplore.store.campaign import is_campaign, read_manifest


@dataclass(frozen=True, slots=True)
class Prediction:
    """A kernel as the text of a function; `file` names its task, such as "Math/abs.py"."""

    file: str
    predict: str


@dataclass(frozen=True, slots=True)
class Predictions:
    """The kernels of a run, and what was left out, each with the reason."""

    kernels: tuple[Prediction, ...]
    left_out: tuple[tuple[str, str], ...]


def predictions_of(path: Path) -> Predictions:
    """Return the winners of a run or a campaign, or the fastest right answers of a judged folder.

    A winner, which is a module, becomes the function of its task; an answer stays as it was given.
    There is one kernel for a task.
    """
    left_out: list[tuple[str, str]] = []
    if is_bench(path):
        found = _answers(path, left_out)
    elif is_campaign(path):
        found = _winners(path, left_out)
    else:
        found = iter([_winner(path, "")])
    return Predictions(tuple(found), tuple(left_out))


def write_predictions(kernels: Iterable[Prediction], output: Path) -> None:
    """Write a line of JSON for each kernel."""
    lines = [json.dumps({"predict": one.predict, "file": one.file}) + "\n" for one in kernels]
    write_whole(output, "".join(lines))


def write_to_prompts(kernels: Iterable[Prediction], output: Path, name: str, data: Path) -> int:
    """Write a line for each prompt of TritonBench's channel `name`, in its checkout `data`.

    Returns the number of kernels that answer one of them.
    """
    channel = channel_named(name)
    checkout = Checkout(data, channel)
    by_key = {Path(one.file).stem: one.predict for one in kernels}
    write_whole(output, lines_of(checkout, by_key))
    return len(by_key.keys() & checkout.described.keys())


def _winner(path: Path, category: str) -> Prediction:
    """Return the winner of a run as the function of its problem."""
    with read_run(path) as directory:
        winner = claimed_winner(directory.store, path)
        problem = directory.store.run().problem
    try:
        source = as_function(winner.source, problem.source, problem.name)
    except NotAFunctionError as error:
        raise BadInputError(f"{path}: {problem.name} cannot be a function: {error}") from None
    return Prediction(f"{category}/{problem.name}.py".lstrip("/"), source)


def _winners(path: Path, left_out: list[tuple[str, str]]) -> Iterator[Prediction]:
    for entry in CampaignPlan.from_json(read_manifest(path)["order"]).entries:
        run = path / entry.name
        if not is_run(run):
            left_out.append((entry.name, "not searched"))
            continue
        try:
            yield _winner(run, entry.category)
        except BadInputError as error:
            left_out.append((entry.name, str(error)))


def _answers(path: Path, left_out: list[tuple[str, str]]) -> Iterator[Prediction]:
    best: dict[str, BenchVerdict] = {}
    for one in read_verdicts(path, read_bench(path).entries):
        if not isinstance(one.evaluation, Passed) or not is_claimable(one.evaluation):
            left_out.append((one.entry.place, _why(one.evaluation, one.unjudged)))
            continue
        other = best.setdefault(one.entry.key, one)
        slower = max(one, other, key=_time_us)
        if one is not other:
            best[one.entry.key] = other if slower is one else one
            left_out.append((slower.entry.place, "another answer to its task is faster"))
    for key in sorted(best):
        source = read_source(path / best[key].entry.answer)
        yield Prediction(f"{key}.py", own_part(source))


def _time_us(one: BenchVerdict) -> float:
    timing = one.evaluation.measured if one.evaluation else None
    return timing.time_us if timing else float("inf")


def _why(evaluation: Evaluation | None, unjudged: str) -> str:
    if evaluation is None:
        return f"not judged: {unjudged}"
    return "it may wait for other blocks" if isinstance(evaluation, Passed) else evaluation.status
