"""The recorded runs of a study: their steps with gains, similarities and rules."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from adaexplore.core.node import START, Node
from adaexplore.core.rule import Rule
from adaexplore.core.verdict.evaluation import Passed, rank
from adaexplore.memory.lint import lint
from adaexplore.report.campaign.summary import CampaignSummary, Result
from adaexplore.report.study.runs import StudyArmInfo, StudyRun, StudyStep
from adaexplore.report.study.summary import StudySummary, summarize_study
from adaexplore.run.campaign.file import CampaignEntry, CampaignPlan
from adaexplore.run.outcome.comparison import chooser, trace_of
from adaexplore.run.proposers import Plan
from adaexplore.search import SourceTraits, distance
from adaexplore.store import RunRecord, Store, read_run
from adaexplore.store.campaign import read_manifest
from adaexplore.store.directory import is_run

_NOT_SHOWN = ("seed", "inputs_seed", "steps", "device")
"""Settings in which the runs of an arm differ, or all are alike."""


def study_summary(path: Path, campaign: CampaignSummary) -> StudySummary:
    """Return the summary of the study in a folder; `campaign` is that of its runs."""
    order = CampaignPlan.from_json(read_manifest(path)["order"])
    results = {result.name: result for result in campaign.results}
    runs = [_run(path, entry, results[entry.name]) for entry in order.entries]
    return summarize_study(runs, _arms(order), campaign, chooser)


def _arms(order: CampaignPlan) -> list[StudyArmInfo]:
    """Return the arms with their settings on the first problem.

    Of the first arm those that another changes, of the others what they change.
    """
    first, *others = (
        entry.config.model_dump(mode="json", exclude=set(_NOT_SHOWN))
        for entry in order.entries[: len(order.arms)]
    )
    changed = [{k: v for k, v in other.items() if v != first[k]} for other in others]
    own = {k: v for k, v in first.items() if any(k in other for other in changed)}
    return [StudyArmInfo(*arm) for arm in zip(order.arms, [own, *changed], strict=True)]


def _run(folder: Path, entry: CampaignEntry, result: Result) -> StudyRun:
    seed, path = entry.config.seed, folder / entry.name
    problem = path.name.removesuffix(f"-seed{seed}")
    if not is_run(path):
        return StudyRun(entry.arm, problem, seed, result)
    with read_run(path) as directory:
        store, record = directory.store, directory.store.run()
        rules = Plan.of(record).rules
        steps = tuple(_steps(store, record, rules))
    return StudyRun(
        arm=entry.arm,
        problem=problem,
        seed=seed,
        result=result,
        trace=trace_of(path, entry.arm),
        steps=steps,
        memory=Path(record.config.memory or "none").name,
        rules=len(rules),
    )


def _steps(store: Store, run: RunRecord, rules: Sequence[Rule]) -> Iterator[StudyStep]:
    nodes, told = store.nodes(), _told(store)
    by_id = {node.id: node for node in nodes}
    best: Node | None = None
    for node in nodes:
        base = by_id.get(node.parent_id, best)
        prompts = told.get(node.ask_id or 0, "")
        leads = isinstance(node.evaluation, Passed) and (
            best is None or rank(node.evaluation) > rank(best.evaluation)
        )
        if node.proposal.origin == START:
            best = node if leads else best
            continue
        yield StudyStep(
            kind=node.step_kind,
            correct=isinstance(node.evaluation, Passed),
            gain=_gain(node, base),
            similarity=_similarity(node, base),
            improved=leads,
            prompted=bool(prompts),
            shown=tuple(rule.name for rule in rules if rule.statement in prompts),
            broken=_broken(node, run, rules),
            rule_tokens=_rule_tokens(node),
        )
        best = node if leads else best


def _told(store: Store) -> Mapping[int, str]:
    """Return the text of all prompts of each ask."""
    told: dict[int, str] = {}
    for call in store.calls():
        text = "\n".join(message.text for message in call.prompt.messages)
        told[call.ask_id] = f"{told.get(call.ask_id, '')}{text}\n"
    return told


def _gain(node: Node, base: Node | None) -> float | None:
    speeds = [_speedup(one) for one in (node, base) if one]
    if len(speeds) < 2 or None in speeds:
        return None
    own, before = (speed for speed in speeds if speed)
    return math.log(own / before)


def _speedup(node: Node) -> float | None:
    evaluation = node.evaluation
    if not isinstance(evaluation, Passed) or evaluation.measured is None:
        return None
    return evaluation.measured.speedup


def _similarity(node: Node, base: Node | None) -> float | None:
    """Return the cosine of the angle between the token counts of two sources."""
    if base is None or not (node.candidate.source and base.candidate.source):
        return None
    apart = distance(SourceTraits(node.candidate), SourceTraits(base.candidate))
    return max(1 - apart**2 / 2, 0.0)


def _broken(node: Node, run: RunRecord, rules: Sequence[Rule]) -> tuple[str, ...]:
    rules = [rule for rule in rules if rule.language == node.candidate.language]
    if not rules:
        return ()
    triton, capability = run.environment.triton, run.environment.compute_capability
    target = run.problem.target or f"sm_{capability}".replace(".", "")
    return tuple(hit.rule.name for hit in lint(node.candidate.source, rules, triton, target))


def _rule_tokens(node: Node) -> int:
    costs = node.proposal.settings.get("prompt_tokens", {})
    return int(costs.get("rules", 0)) if isinstance(costs, Mapping) else 0
