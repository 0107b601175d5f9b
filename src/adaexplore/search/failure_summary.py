"""Summary of a search's failures for the next prompt, after POLCA (arXiv 2603.14769).

POLCA's summarizer is a model that reads the history and recommends. This one counts, and needs no
model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from adaexplore.core.evaluation import Failed
from adaexplore.core.node import Node

_MAX_LINES = 5
_MAX_CHARS = 160
_MIN_COUNT = 2


def failure_statistics(nodes: Sequence[Node]) -> list[str]:
    """Return a line for each repeated failure, most frequent first: its count, status and reason.

    Two failures are the same if their statuses agree, and their reasons apart from digits.
    Infrastructure errors are left out.
    """
    failures = [n.evaluation for n in nodes if isinstance(n.evaluation, Failed)]
    judged = [failure for failure in failures if failure.status != "infra_error"]
    counts = Counter((failure.status, _without_digits(failure.reason)) for failure in judged)
    latest = {(f.status, _without_digits(f.reason)): f.reason for f in judged}
    return [
        f"{count} of the {len(nodes)} kernels so far: {key[0]}: {latest[key][:_MAX_CHARS]}"
        for key, count in counts.most_common(_MAX_LINES)
        if count >= _MIN_COUNT
    ]


def _without_digits(reason: str) -> str:
    return "".join("0" if character.isdigit() else character for character in reason)
