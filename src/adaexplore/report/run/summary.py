"""The summary of a run, computed once; renderers only draw it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adaexplore.core.environment import Environment
from adaexplore.core.leader import Leader, leader_of
from adaexplore.core.node import ROOT_ID, START, Node
from adaexplore.core.problem import Problem
from adaexplore.core.text.units import plural
from adaexplore.core.verdict.evaluation import Cost, Evaluation, Passed, Status, Timing, rank
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.report.run.costs import Costs
from adaexplore.report.run.diversity import DiversityPoint, sentence
from adaexplore.report.run.exchanges import Exchanges
from adaexplore.report.run.headline import Headline, make_headline
from adaexplore.report.run.published import published_sentence


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Facts about a run beside its problem and nodes.

    `created_at` is seconds since the epoch. `reproduce` is the command line that repeats the run.
    `confirmations` are the evaluations of repeated measurements, each in a fresh process, by node
    id.
    """

    name: str
    directory: str
    seed: int
    proposer: str
    planned_steps: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)
    reproduce: str = ""
    created_at: float = 0.0
    reference: ReferenceFacts = field(default_factory=ReferenceFacts)
    confirmations: Mapping[int, Evaluation] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """One step and its place in the tree.

    `depth` counts edges from the root: a first step has depth 1. `parent` is None for a child of
    the root. `family` is the proposer's name for the kind of rewrite or the form of step, from its
    settings, empty without one. `exchanges` are the exchanges with models for the step. `improved`
    is true if the step set a new best; `on_best_path` marks the best and its ancestors. `structure`
    numbers the structures of correct kernels.
    """

    node: Node
    parent: Node | None
    depth: int
    family: str
    improved: bool
    best: bool
    on_best_path: bool
    exchanges: Exchanges = ()
    structure: int | None = None

    @property
    def passed(self) -> Passed | None:
        """The evaluation if the candidate is correct, else None."""
        return self.node.evaluation if isinstance(self.node.evaluation, Passed) else None

    @property
    def timing(self) -> Timing | None:
        """The measured times, None for a candidate that failed or was only estimated."""
        return self.passed.measured if self.passed else None

    @property
    def reason(self) -> str:
        """The evaluator's reason for a failure; empty for a correct candidate."""
        return "" if isinstance(self.node.evaluation, Passed) else self.node.evaluation.reason


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The best after step `step`; None without a correct candidate, or without a measured one."""

    step: int
    best_id: int | None
    best_speedup: float | None


@dataclass(frozen=True, slots=True)
class FamilyStats:
    """Steps of one origin and family: their number, the correct ones, and the best speedup."""

    origin: str
    family: str
    steps: int
    passed: int
    best_id: int | None
    best_speedup: float | None


@dataclass(frozen=True, slots=True)
class Totals:
    """Seconds over all steps; a reused evaluation counts once.

    Proposals and evaluations may overlap: these are sums of work, not elapsed time.
    """

    propose_s: float
    evaluating: Cost

    @property
    def evaluate_s(self) -> float:
        """The wall time of the evaluations."""
        return self.evaluating.wall_s

    @property
    def device_s(self) -> float:
        """The time for which the evaluations held the device."""
        return self.evaluating.device_s

    @property
    def wall_s(self) -> float:
        """Proposing and evaluating together."""
        return self.propose_s + self.evaluate_s


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a run; rows are ordered by step. `costs` are those of its models.

    `leader` is the leading step, None without a correct one. `diversity` has a point for every row,
    or none.
    """

    problem: Problem
    info: RunInfo
    leader: Leader | None
    headline: Headline
    rows: tuple[Row, ...]
    curve: tuple[CurvePoint, ...]
    status_counts: Mapping[Status, int]
    groups: tuple[FamilyStats, ...]
    totals: Totals
    costs: Costs
    diversity: tuple[DiversityPoint, ...] = ()

    @property
    def progress(self) -> str:
        """The number of steps made and planned, and that of the kernels that it started from."""
        starts = sum(row.node.proposal.origin == START for row in self.rows)
        made = f"{len(self.rows) - starts} of {self.info.planned_steps} steps"
        if not starts:
            return made
        return f"{made} after {plural(starts, 'starting kernel')}"

    @property
    def estimated(self) -> bool:
        """True if any correct candidate was estimated instead of measured."""
        return any(row.passed and not row.timing for row in self.rows)

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels of the problem, each with the reason why its speedups are worth less."""
        return self.info.reference.labels

    @property
    def diversity_sentence(self) -> str:
        """The diversity of the kernels in one line; empty if unknown."""
        return sentence(self.diversity, sum(bool(r.passed) and r.node.reused for r in self.rows))

    @property
    def published_sentence(self) -> str:
        """The verdicts of the published judge in one line; empty where it was not asked."""
        return published_sentence(row.node for row in self.rows)

    @property
    def best(self) -> Row | None:
        """The row of the leading step, None without one."""
        return next((row for row in self.rows if row.best), None)


def summarize(
    problem: Problem,
    nodes: Sequence[Node],
    info: RunInfo,
    exchanges: Mapping[int, Exchanges] | None = None,
    costs: Costs | None = None,
    diversity: Sequence[DiversityPoint] = (),
) -> Summary:
    """Return the summary of a run; `nodes` may come in any order and be empty.

    `exchanges` are those with models, by the step's id, and `costs` their costs; both may be
    omitted if no model was asked. `diversity` has a point after every step, or none.
    """
    ordered = sorted(nodes, key=lambda node: node.id)
    by_id = {node.id: node for node in ordered}
    curve = _curve(ordered)
    leader = leader_of({node.id: node.evaluation for node in ordered}, info.confirmations)
    best = by_id[leader.node_id] if leader else None
    return Summary(
        problem=problem,
        info=info,
        leader=leader,
        headline=make_headline(
            ordered, leader, info.confirmations, labels=list(info.reference.labels)
        ),
        rows=_rows(ordered, by_id, curve, best, exchanges or {}, diversity),
        curve=curve,
        status_counts=dict(Counter(node.evaluation.status for node in ordered).most_common()),
        groups=_families(ordered),
        totals=_totals(ordered),
        costs=costs or Costs(),
        diversity=tuple(diversity),
    )


def _curve(nodes: Sequence[Node]) -> tuple[CurvePoint, ...]:
    points: list[CurvePoint] = []
    best: Node | None = None
    for node in nodes:
        best = _better(best, node)
        timing = best.evaluation.measured if best and isinstance(best.evaluation, Passed) else None
        points.append(
            CurvePoint(
                step=node.id,
                best_id=best.id if best else None,
                best_speedup=timing.claim if timing else None,
            )
        )
    return tuple(points)


def _better(best: Node | None, node: Node) -> Node | None:
    """Return the better node; the earlier wins a tie, and None means no correct node."""
    if not isinstance(node.evaluation, Passed):
        return best
    if best is None or rank(node.evaluation) > rank(best.evaluation):
        return node
    return best


def _rows(
    nodes: Sequence[Node],
    by_id: Mapping[int, Node],
    curve: Sequence[CurvePoint],
    best: Node | None,
    exchanges: Mapping[int, Exchanges],
    diversity: Sequence[DiversityPoint],
) -> tuple[Row, ...]:
    depths: dict[int, int] = {ROOT_ID: 0}
    best_path = _path(best, by_id)
    rows: list[Row] = []
    structures = [point.structure for point in diversity] or [None] * len(nodes)
    for node, point, structure in zip(nodes, curve, structures, strict=True):
        depths[node.id] = depths.get(node.parent_id, 0) + 1
        rows.append(
            Row(
                node=node,
                parent=by_id.get(node.parent_id),
                depth=depths[node.id],
                family=_family(node),
                improved=point.best_id == node.id,
                best=best is not None and node.id == best.id,
                on_best_path=node.id in best_path,
                exchanges=exchanges.get(node.id, ()),
                structure=structure,
            )
        )
    return tuple(rows)


def _path(node: Node | None, by_id: Mapping[int, Node]) -> set[int]:
    """Return the ids from `node` up to the root's child."""
    path: set[int] = set()
    while node is not None and node.id not in path:
        path.add(node.id)
        node = by_id.get(node.parent_id)
    return path


def _family(node: Node) -> str:
    settings = node.proposal.settings
    family = settings.get("family", settings.get("form", ""))
    return family if isinstance(family, str) else ""


def _families(nodes: Sequence[Node]) -> tuple[FamilyStats, ...]:
    members: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        members.setdefault((node.proposal.origin, _family(node)), []).append(node)
    groups: list[FamilyStats] = []
    for (origin, family), group in members.items():
        last = _curve(group)[-1]
        groups.append(
            FamilyStats(
                origin=origin,
                family=family,
                steps=len(group),
                passed=sum(isinstance(node.evaluation, Passed) for node in group),
                best_id=last.best_id,
                best_speedup=last.best_speedup,
            )
        )
    return tuple(sorted(groups, key=lambda group: -(group.best_speedup or 0.0)))


def _totals(nodes: Sequence[Node]) -> Totals:
    costs, seen = [], set()
    for node in nodes:  # one that only compiled to the same code was evaluated itself
        if not node.reused or node.candidate not in seen:
            costs.append(node.evaluation.cost)
        seen.add(node.candidate)
    return Totals(sum(node.propose_s for node in nodes), Cost.total(costs))
