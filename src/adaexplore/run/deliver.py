"""A finished run, or a kernel's file, handed to a benchmark."""

from __future__ import annotations

from pathlib import Path

from adaexplore.core.errors import BadInputError
from adaexplore.core.evaluation import Failed
from adaexplore.core.leader import is_claimable, is_refuted
from adaexplore.core.problem import Language
from adaexplore.problems.solutions.delivery import Delivery
from adaexplore.problems.solutions.specification import read_specification
from adaexplore.run.api import read_source
from adaexplore.run.results import summary_of
from adaexplore.run.uses import header
from adaexplore.store import Store, read_run


def delivery_of_run(path: Path, dataset: Path) -> Delivery:
    """Return the winner of a run, with the verdict that counts for it.

    `dataset` has the definition that is the run's problem. Raises `BadInputError` for a run that
    claims no kernel, and for a definition that `dataset` does not have.
    """
    with read_run(path) as directory:
        store = directory.store
        record, summary = store.run(), summary_of(store, path)
        at = _times(store)
    specification = read_specification(dataset, record.problem.name)
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
    return Delivery(
        specification=specification,
        source=header(uses) + node.candidate.source,
        language=node.candidate.language,
        mode=record.problem.mode,
        verdict=verdict,
        judged=record.problem.workloads,
        environment=record.environment,
        at=at.get(node.id, node.started_at),
        about=summary.headline.sentence,
    )


def delivery_of_kernel(
    dataset: Path, definition: str, kernel: Path, language: Language
) -> Delivery:
    """Return a kernel that nobody judged, for a definition of a dataset.

    Raises `BadInputError` for a definition that `dataset` does not have, and for a file that cannot
    be read.
    """
    return Delivery(read_specification(dataset, definition), read_source(kernel), language)


def _times(store: Store) -> dict[int, float]:
    """Return the time of the last confirmation of each step that has one."""
    return {each.node_id: each.at for each in store.confirmations()}
