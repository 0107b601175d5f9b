"""Kernels of a search as prompts show them."""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from adaexplore.core.node import Node
from adaexplore.core.protocols.proposer import Context
from adaexplore.core.settings.config import Feedback
from adaexplore.core.text.feedback import render, verdict, without_autotunings
from adaexplore.core.verdict.evaluation import Estimate, Evaluation, Passed, rank

_CONTEXT_LINES = 2
_MAX_TRIED = 8  # lines of a prompt
_COMPACT = 0.5  # show changes instead of a source if they are at most this share of its length


@dataclass(frozen=True, slots=True)
class KernelView:
    """A kernel and its evaluation, as templates read them.

    `parent` is the step that it was made from, 0 for none. `note` is the proposer's line. `verdict`
    is one line, `result` the evaluator's text, which has the configurations that autotuners tried
    for the kernel to change alone. `source` is the module; it is empty where the next kernel's
    `changes` replace it. `changes` is the unified diff from the kernel before.
    """

    step: int
    parent: int
    origin: str
    note: str
    passed: bool
    verdict: str
    result: str
    source: str
    changes: str = ""


def kernel_view(node: Node, feedback: Feedback = "full", *, to_change: bool = False) -> KernelView:
    """Return a kernel with its whole source, and as much of its evaluation as `feedback` allows.

    One `to_change` has the configurations that its autotuners tried.
    """
    view = KernelView(
        step=node.id,
        parent=node.parent_id,
        origin=node.proposal.origin,
        note=node.proposal.note,
        passed=node.evaluation.status == "passed",
        verdict=verdict(node.evaluation),
        result=_result(node.evaluation, to_change),
        source=node.candidate.source,
    )
    if feedback == "full":
        return view
    word = "passed" if view.passed else "failed"
    note = "" if node.proposal.failure else view.note  # the note of a failed proposal says why
    return replace(view, note=note, verdict=word, result=word)


def tried_before(context: Context, feedback: Feedback = "full") -> list[Node]:
    """Return steps like this one, best first, without those in the context's pool and window.

    For a small step these are changes to the same kernel, for a large step other new modules. Where
    `feedback` is the verdict alone, the latest come first: the order would tell their speeds.
    """
    shown = {node.id for node in (*context.pool, *context.window)}
    if context.step_kind == "small":
        current = context.window[-1].id
        alike = [node for node in context.history if node.parent_id == current]
    else:
        alike = [node for node in context.history if node.step_kind == "large"]
    others = [node for node in alike if node.id not in shown and node.candidate.source]
    if feedback == "verdict":
        return others[::-1][:_MAX_TRIED]
    return sorted(others, key=lambda node: rank(node.evaluation), reverse=True)[:_MAX_TRIED]


def to_contrast(context: Context, most: int, rng: random.Random) -> list[Node]:
    """Return correct kernels to compare, fastest first: the pool's, the best, and a draw of others.

    At most `most`; none if there are fewer than two. The kernel that a small step changes is not
    among them: it is shown anyway.
    """
    shown = {node.id for node in (*context.pool, *context.window[-1:])}
    chosen = [node for node in context.pool if isinstance(node.evaluation, Passed)][:most]
    others = [
        node for node in _fastest_first(context.history) if node.id not in shown and not node.reused
    ]
    if len(chosen) < most:
        chosen += others[:1]
        chosen += rng.sample(others[1:], min(most - len(chosen), len(others[1:])))
    return _fastest_first(chosen) if len(chosen) > 1 else []


def _fastest_first(nodes: Iterable[Node]) -> list[Node]:
    """Return the correct ones of these kernels."""
    correct = [node for node in nodes if isinstance(node.evaluation, Passed)]
    return sorted(correct, key=lambda node: rank(node.evaluation), reverse=True)


def judged_before(context: Context) -> list[Node]:
    """Return the steps so far that were judged, oldest first."""
    return [node for node in context.history if node.evaluation.status != "infra_error"]


def window_views(window: Sequence[Node], feedback: Feedback = "full") -> list[KernelView]:
    """Return kernels that were made one from another, oldest first; the last is to change."""
    return [kernel_view(node, feedback, to_change=node is window[-1]) for node in window]


def path_views(window: Sequence[Node], feedback: Feedback = "full") -> list[KernelView]:
    """Return kernels that were made one from another, oldest first, without repetition.

    The last has its whole source. An earlier kernel is replaced by the changes that its successor
    made, unless these are longer than half of its source.
    """
    kernels = window_views(window, feedback)
    for i in range(len(kernels) - 1, 0, -1):
        older, newer = kernels[i - 1], kernels[i]
        changes = _changes(window[i - 1].candidate.source, window[i].candidate.source)
        if older.source and len(changes) <= _COMPACT * len(older.source):
            kernels[i - 1] = replace(older, source="")
            kernels[i] = replace(newer, changes=changes)
    return kernels


def _result(evaluation: Evaluation, to_change: bool) -> str:
    """Return the result, for an estimate with the compiler's report, which the estimate ignores."""
    text = render(evaluation) if to_change else without_autotunings(evaluation)
    if isinstance(evaluation, Passed) and isinstance(evaluation.timing, Estimate):
        return f"{text}\n{evaluation.detail}".rstrip()
    return text


def _changes(older: str, newer: str) -> str:
    pair = older.splitlines(), newer.splitlines()
    lines = list(difflib.unified_diff(*pair, n=_CONTEXT_LINES, lineterm=""))
    return "\n".join(lines[2:])  # without the two lines of file names
