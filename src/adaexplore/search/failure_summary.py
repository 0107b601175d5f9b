"""The summarizer of POLCA (arXiv 2603.14769): what all steps so far teach the next.

There a model reads the history and recommends; `Summarizer` is what such a one would answer to.
`failure_statistics` needs no model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from adaexplore.core.evaluation import Failed
from adaexplore.core.node import Node

Summarizer = Callable[[Sequence[Node]], Sequence[str]]
"""Lines for the next prompt, from every step recorded so far."""

_LINES = 5
_CHARS = 160
_REPEATED = 2


def failure_statistics(nodes: Sequence[Node]) -> list[str]:
    """The failures that came more than once, most frequent first: how often, how and why.

    Failures are the same if status and reason are, numbers aside.
    """
    failures = [n.evaluation for n in nodes if isinstance(n.evaluation, Failed)]
    judged = [failure for failure in failures if failure.status != "infra_error"]
    counts = Counter((failure.status, _shape(failure.reason)) for failure in judged)
    latest = {(failure.status, _shape(failure.reason)): failure.reason for failure in judged}
    return [
        f"{count} of the {len(nodes)} kernels so far: {key[0]}: {latest[key][:_CHARS]}"
        for key, count in counts.most_common(_LINES)
        if count >= _REPEATED
    ]


def _shape(reason: str) -> str:
    """A reason without its digits."""
    return "".join("0" if character.isdigit() else character for character in reason)
