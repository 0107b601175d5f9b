"""Kernels of a search as a prompt shows them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from adaexplore.core.evaluation import Estimate, Evaluation, Passed, rank
from adaexplore.core.feedback import render, verdict
from adaexplore.core.node import Node
from adaexplore.core.proposer import Context

_CONTEXT_LINES = 2
_MOST_TRIED = 8  # lines of a prompt
_COMPACT = 0.5  # changes longer than this share of a source are no shorter way to tell it


@dataclass(frozen=True, slots=True)
class Shown:
    """A kernel and what was found out about it.

    `note` is its proposer's line. `verdict` is one line, `result` all that the evaluator says.
    `source` is its module, empty where `changes` tell the same: the differences (in unified form)
    of a kernel to the one shown before it.
    """

    step: int
    origin: str
    note: str
    passed: bool
    verdict: str
    result: str
    source: str
    changes: str = ""


def shown(node: Node) -> Shown:
    """A kernel with its whole source."""
    return Shown(
        step=node.id,
        origin=node.proposal.origin,
        note=node.proposal.note,
        passed=node.evaluation.status == "passed",
        verdict=verdict(node.evaluation),
        result=_result(node.evaluation),
        source=node.candidate.source,
    )


def tried_beside(context: Context) -> list[Node]:
    """What became of steps like this one, best first, beside the kernels that it is shown anyway.

    For a small step they are changes to the same kernel, for a large one other new modules.
    """
    told = {node.id for node in (*context.pool, *context.window)}
    if context.step_kind == "small":
        current = context.window[-1].id
        alike = [node for node in context.history if node.parent_id == current]
    else:
        alike = [node for node in context.history if node.step_kind == "large"]
    others = [node for node in alike if node.id not in told and node.candidate.source]
    return sorted(others, key=lambda node: rank(node.evaluation), reverse=True)[:_MOST_TRIED]


def path_of(window: Sequence[Node]) -> list[Shown]:
    """Kernels that were made one from another, oldest first, told without repetition.

    The last has its whole source. Of an earlier one only the changes that its successor made are
    told, from which it can be read, unless they are most of it.
    """
    kernels = [shown(node) for node in window]
    for i in range(len(kernels) - 1, 0, -1):
        older, newer = kernels[i - 1], kernels[i]
        changes = _changes(window[i - 1].candidate.source, window[i].candidate.source)
        if older.source and len(changes) <= _COMPACT * len(older.source):
            kernels[i - 1] = replace(older, source="")
            kernels[i] = replace(newer, changes=changes)
    return kernels


def _result(evaluation: Evaluation) -> str:
    """An estimate is blind to what the compiler says of each kernel, so that is told beside it."""
    text = render(evaluation)
    if isinstance(evaluation, Passed) and isinstance(evaluation.timing, Estimate):
        return f"{text}\n{evaluation.detail}".rstrip()
    return text


def _changes(older: str, newer: str) -> str:
    pair = older.splitlines(), newer.splitlines()
    lines = list(difflib.unified_diff(*pair, n=_CONTEXT_LINES, lineterm=""))
    return "\n".join(lines[2:])  # without the names of two files that do not exist
