"""Recorded runs, as what can be learnt from them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.ask import Exchange
from adaexplore.core.errors import BadInputError
from adaexplore.core.leader import is_claimable, leader_of
from adaexplore.core.node import ROOT_ID, Node
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation import Evaluation, Passed, Timing
from adaexplore.run.campaign.file import CampaignPlan
from adaexplore.run.outcome.winner import confirmed_of
from adaexplore.search.named_rewards import is_decoy
from adaexplore.store import read_run
from adaexplore.store.campaign import is_campaign, read_manifest
from adaexplore.store.directory import holds_run

_SPDX = re.compile(r"SPDX-License-Identifier:\s*([A-Za-z0-9.+ ()-]*[A-Za-z0-9.+)])")
UNKNOWN = "unknown"
"""The licence of a problem that names none."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run: its steps in order, the confirmations that count by step, and its exchanges by ask.

    `license` is that of the problem's source.
    """

    name: str
    problem: Problem
    nodes: Sequence[Node]
    confirmed: Mapping[int, Evaluation]
    exchanges: Mapping[int, Exchange]
    license: str

    def evaluation(self, node: Node) -> Evaluation:
        """Return the evaluation of a step that counts."""
        return self.confirmed.get(node.id, node.evaluation)

    def timing(self, node: Node) -> Timing | None:
        """Return the measurement of a step whose kernel may be an example, None for any other.

        It is correct, may be claimed, does the work itself, and the run had not tried it before.
        """
        found = self.evaluation(node)
        if node.reused or not isinstance(found, Passed):
            return None
        return found.measured if is_claimable(found) and not is_decoy(found) else None

    def path(self, node: Node) -> list[Node]:
        """Return the steps from the first to `node` itself, each with a kernel."""
        found = []
        while True:
            if node.candidate.source:
                found.append(node)
            if node.parent_id == ROOT_ID:
                return found[::-1]
            node = self.nodes[node.parent_id - 1]

    @property
    def winner(self) -> Node | None:
        """The leading step of those whose kernels may be examples."""
        examples = {node.id: node.evaluation for node in self.nodes if self.timing(node)}
        leader = leader_of(examples, self.confirmed)
        return self.nodes[leader.node_id - 1] if leader else None


def recorded_runs(paths: Sequence[Path], license_name: str = "") -> Iterator[RecordedRun]:
    """Read runs, exported runs, and the runs of campaigns.

    `license_name` is the licence of problems whose source names none (SPDX-License-Identifier).
    Raises `BadInputError` for a path that is none of these.
    """
    for path in paths:
        if not is_campaign(path):
            yield _read(path, license_name)
            continue
        for entry in CampaignPlan.from_json(read_manifest(path)["order"]).entries:
            run = path / entry.name
            if holds_run(run):
                yield _read(run, license_name)


def _read(path: Path, license_name: str) -> RecordedRun:
    if not path.exists():
        raise BadInputError(f"{path}: no such run")
    with read_run(path) as directory:
        store = directory.store
        nodes, problem = store.nodes(), store.run().problem
        exchanges = {exchange.ask_id: exchange for exchange in store.calls()}
        confirmed = confirmed_of(nodes, store)
    named = _SPDX.search(problem.source)
    name = path.name.removesuffix(".json.xz")
    licence = named[1] if named else license_name or UNKNOWN
    return RecordedRun(name, problem, nodes, confirmed, exchanges, licence)
