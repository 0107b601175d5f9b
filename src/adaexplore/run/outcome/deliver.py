"""The winner of a run, or a kernel that was judged, as a delivery to a benchmark."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.errors import BadInputError
from adaexplore.core.leader import is_claimable, is_refuted
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation import Evaluation, Failed
from adaexplore.problems.solutions.delivery import Delivery
from adaexplore.problems.solutions.specification import (
    Specification,
    holds_definitions,
    read_specification,
)
from adaexplore.run.api import Judged
from adaexplore.run.outcome.results import summary_of
from adaexplore.run.outcome.uses import to_use
from adaexplore.store import Store, read_run


def delivery_of_run(path: Path, dataset: Path) -> Delivery:
    """Return the winner of a run, with the verdict that counts for it.

    `dataset` has the definition that is the run's problem. Raises `BadInputError` for a run that
    claims no kernel, and for a definition that `dataset` does not have.
    """
    with read_run(path) as directory:
        if not holds_definitions(dataset):
            raise BadInputError(f"{dataset} holds no definitions; name the dataset with --dataset")
        store = directory.store
        record, at = store.run(), _times(store)
        specification = _specification(record.problem, dataset)
        winner = claimed_winner(store, path)
    return Delivery(
        specification=specification,
        source=winner.source,
        language=winner.node.candidate.language,
        mode=record.problem.mode,
        verdict=winner.verdict,
        judged=record.problem.workloads,
        environment=record.environment,
        at=at.get(winner.node.id, winner.node.started_at),
        about=winner.about,
        labels=winner.labels,
    )


@dataclass(frozen=True, slots=True)
class ClaimedKernel:
    """The kernel that a run claims: its node, its source with a header, and its verdict.

    `about` is the sentence that the run's report begins with, and `labels` are the problem's.
    """

    node: Node
    source: str
    verdict: Evaluation
    about: str
    labels: Mapping[str, str]


def claimed_winner(store: Store, path: Path) -> ClaimedKernel:
    """Return the winner of a run; raise `BadInputError` for a run that claims no kernel."""
    summary = summary_of(store, path)
    if summary.best is None or summary.leader is None:
        raise BadInputError(f"{path} has no correct kernel yet")
    node, verdict = summary.best.node, summary.leader.evaluation
    found = summary.info.confirmations.get(node.id)
    if isinstance(found, Failed) and is_refuted(found):
        raise BadInputError(
            f"{path} claims no kernel: step {node.id} failed its confirmation: {found.reason}"
        )
    if not is_claimable(verdict):
        raise BadInputError(f"{path} claims no kernel: step {node.id} may wait for other blocks")
    uses = [] if isinstance(verdict, Failed) else verdict.uses
    source = to_use(node.candidate.source, uses)
    return ClaimedKernel(node, source, verdict, summary.headline.sentence, summary.labels)


def delivery_of_judged(judged: Judged, dataset: Path) -> Delivery:
    """Return a kernel that was judged now, for a definition of a dataset.

    Raises `BadInputError` for a problem that is none of the definitions of `dataset`.
    """
    problem, candidate = judged.problem, judged.candidate
    return Delivery(
        specification=_specification(problem, dataset),
        source=candidate.source,
        language=candidate.language,
        mode=problem.mode,
        verdict=judged.verdict,
        judged=problem.workloads,
        environment=judged.environment,
        at=time.time(),
        labels=judged.labels,
    )


def _specification(problem: Problem, dataset: Path) -> Specification:
    """Return the definition that is a problem; benchmarks have none of training steps."""
    if problem.checks.backward:
        raise BadInputError(
            f"{problem.name}: its verdict is of training steps (--with-backward), and a dataset "
            "takes times of the definition alone; judge it without"
        )
    return read_specification(dataset, problem.name)


def _times(store: Store) -> dict[int, float]:
    """Return the time of the last confirmation of each step that has one."""
    return {each.node_id: each.at for each in store.confirmations()}
