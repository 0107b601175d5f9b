"""The verdicts of the published judge beside this package's, in one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from adaexplore.core.node import Node
from adaexplore.core.text.units import speedup
from adaexplore.core.verdict.evaluation import Passed


def published_sentence(nodes: Iterable[Node]) -> str:
    """Return how many steps each judge finds correct, and where they differ.

    Empty where one of the two judged nothing.
    """
    judged = [(n, n.evaluation.published) for n in nodes if n.evaluation.published]
    if not judged or any(node.evaluation.status == "reported" for node, _ in judged):
        return ""
    right = {node.id for node, verdict in judged if not verdict.why}
    ours = {node.id for node, _ in judged if isinstance(node.evaluation, Passed)}
    counts = f"{len(right)} of {len(judged)} steps correct by the published judge"
    parts = [f"{counts}, {len(ours)} by this one"]
    speedups = [(found, node.id) for node, verdict in judged if (found := verdict.speedup)]
    if speedups:
        best, step = max(speedups, key=lambda each: each[0])
        parts.append(f"its best {speedup(best)} over eager (step {step})")
    if right - ours:
        parts.append(f"correct there alone: {_steps(sorted(right - ours))}")
    if ours - right:
        parts.append(f"correct here alone: {_steps(sorted(ours - right))}")
    return "; ".join(parts)


def _steps(ids: Sequence[int]) -> str:
    return f"step{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"
