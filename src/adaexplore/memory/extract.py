"""From failed candidates to cases: a small witness for each cause."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from adaexplore.core.node import Node
from adaexplore.core.problem import Language, Problem
from adaexplore.core.rule import Rule, Signature
from adaexplore.core.verdict.evaluation import Failed, Fault
from adaexplore.core.verdict.evaluation_json import evaluation_from_json, evaluation_to_json
from adaexplore.languages import DIALECTS
from adaexplore.memory.check import Checker
from adaexplore.memory.reduce import ProgramSize, Reduced, recurs, reduced
from adaexplore.memory.signature import alike, signature_of

_TEACHES_NOTHING = frozenset({"infra_error", "rejected", "timeout", "reported", "not_run"})
"""Failures of the machinery, of what a run allows, those that a busy machine has too, and none."""

_GUARDS = ("raise ", "assert ")


@dataclass(frozen=True, slots=True)
class Failure:
    """A candidate that failed, for the problem of a task, in one of the steps of its run."""

    task: str
    reference: str
    source: str
    failed: Failed
    step: int = 0
    language: Language = "triton"

    @property
    def signature(self) -> Signature:
        """Signature of the failure."""
        return signature_of(self.failed)


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failures of one cause; the exemplar is the shortest of them."""

    exemplar: Failure
    support: int
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """Failures of one cause, ready to make a rule of.

    `witness` is the exemplar of a group, reduced from `before` to `after`, and fails as `failed`
    says, and `signature` in short. `id` tells cases apart, and is the same in every session.
    """

    id: str
    reference: str
    witness: str
    failed: Failed
    signature: Signature
    support: int
    tasks: tuple[str, ...]
    before: ProgramSize
    after: ProgramSize
    evaluations: int
    language: Language = "triton"

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        return asdict(self) | {"failed": evaluation_to_json(self.failed), "tasks": list(self.tasks)}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Case:
        """Inverse of `to_json`."""
        failed = evaluation_from_json(data["failed"])
        assert isinstance(failed, Failed)
        more: dict[str, Any] = {
            "failed": failed,
            "signature": Signature(**data["signature"]),
            "tasks": tuple(data["tasks"]),
            "before": ProgramSize(**data["before"]),
            "after": ProgramSize(**data["after"]),
        }
        return Case(**data | more)


def failures_of(problem: Problem, nodes: Iterable[Node]) -> list[Failure]:
    """Return the candidates of a run that failed by their own fault, each once.

    None for a language that Triton does not compile: rules are about those that it compiles.
    """
    found: dict[str, Failure] = {}
    if not DIALECTS[problem.language].by_triton:
        return []
    for node in nodes:
        evaluation = node.evaluation
        if (
            isinstance(evaluation, Failed)
            and evaluation.status not in _TEACHES_NOTHING
            and not _is_refusal(evaluation)
            and not node.proposal.failure
        ):
            failure = Failure(
                problem.name,
                problem.source,
                node.candidate.source,
                evaluation,
                node.id,
                problem.language,
            )
            found.setdefault(node.candidate.digest, failure)
    return list(found.values())


def grouped(failures: Iterable[Failure]) -> list[FailureGroup]:
    """Group failures by cause; the cause that most tasks met comes first."""
    groups: list[list[Failure]] = []
    for failure in failures:
        known = next((g for g in groups if _alike(failure, g[0])), None)
        if known is None:
            groups.append([failure])
        else:
            known.append(failure)
    found = [
        FailureGroup(
            exemplar=min(group, key=lambda f: (len(f.source), f.source)),
            support=len(group),
            tasks=tuple(sorted({f.task for f in group})),
        )
        for group in groups
    ]
    return sorted(found, key=lambda g: (-len(g.tasks), -g.support, g.exemplar.source))


def _alike(a: Failure, b: Failure) -> bool:
    return a.language == b.language and same_cause(a.signature, b.signature)


def same_cause(a: Signature, b: Signature) -> bool:
    """Return True for two failures of one cause, on one version of Triton.

    Where no symbol is named the messages decide. Wrong outputs have every cause, and the cause of
    an unchecked rule is not known: never.
    """
    if {"wrong_output", "unchecked"} & {a.status, b.status}:
        return False
    return alike(a, b) and (bool(a.symbol) or a.message == b.message)


def counted(rules: Iterable[Rule], group: FailureGroup) -> Rule | None:
    """Return the known rule that explains a group, with it counted; None if there is none."""
    failure = group.exemplar
    rule = explaining(rules, failure.signature, failure.language)
    return counting(rule, group.tasks, group.support) if rule else None


def explaining(rules: Iterable[Rule], signature: Signature, language: Language) -> Rule | None:
    """Return the rule about a language that explains a signature; None if there is none."""
    for rule in rules:
        if rule.language == language and same_cause(rule.signature, signature):
            return rule
    return None


def counting(rule: Rule, tasks: Sequence[str], support: int) -> Rule:
    """The rule with further failures behind it: so many in all, in these tasks."""
    everywhere = tuple(dict.fromkeys((*rule.tasks, *tasks)))
    return replace(rule, tasks=everywhere, support=max(rule.support, support, len(everywhere)))


def case_id(group: FailureGroup) -> str:
    """Return the name of a group's case: by its cause, or by its exemplar for a wrong output."""
    signature = group.exemplar.signature
    told: Sequence[str] = (signature.status, signature.type, signature.symbol, signature.message)
    if signature.status == "wrong_output":
        told = (group.exemplar.reference, group.exemplar.source)
    if group.exemplar.language != "triton":
        told = (*told, group.exemplar.language)
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:8]


def case_of(group: FailureGroup, checker: Checker, *, most_evaluations: int = 200) -> Case:
    """The case of a group, its exemplar reduced; raises `ValueError` if that does not fail so here.

    A wrong output loses whole statements only, and only such as change none of its numbers: what
    else is cut from it may be wrong for another reason.
    """
    exemplar, name = group.exemplar, case_id(group)
    rule = rule_of(name, exemplar.reference, exemplar.source, exemplar.language)
    failed = checker.verdict(rule, exemplar.source)
    if not isinstance(failed, Failed):
        raise ValueError("it passes here")
    if failed.status in _TEACHES_NOTHING:
        raise ValueError(f"it cannot be judged here: {failed.reason}")
    if _is_refusal(failed) or not alike(exemplar.signature, signature_of(failed)):
        raise ValueError(f"it fails for another reason here: {failed.reason}")
    was = failed

    def fails(source: str) -> bool:
        return recurs(was, checker.verdict(rule, source))

    result: Reduced = reduced(
        exemplar.source,
        fails,
        whole_statements=not isinstance(failed.feedback, Fault),
        most_evaluations=most_evaluations,
    )
    last = checker.verdict(rule, result.source)
    failed = last if isinstance(last, Failed) else failed
    return Case(
        id=name,
        reference=exemplar.reference,
        witness=result.source,
        failed=failed,
        signature=signature_of(failed),
        support=group.support,
        tasks=group.tasks,
        before=result.before,
        after=result.after,
        evaluations=result.evaluations,
        language=exemplar.language,
    )


def _is_refusal(failed: Failed) -> bool:
    """Return True for an error that a candidate raises of itself, as for sizes it is not made for.

    It says what the candidate was written for, and nothing about the language.
    """
    fault = failed.feedback
    return isinstance(fault, Fault) and fault.source_line.lstrip().startswith(_GUARDS)


def rule_of(name: str, reference: str, witness: str, language: Language = "triton") -> Rule:
    """A rule of which only the programs are known that it is about."""
    return Rule(
        name=name,
        kind="compile",
        statement="",
        reference=reference,
        witness=witness,
        remedy=witness,
        signature=Signature("runtime_error"),
        source="failure",
        language=language,
    )
