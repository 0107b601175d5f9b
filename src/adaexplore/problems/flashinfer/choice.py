"""The choice of workloads: all of them, a number spread over their sizes, or some by UUID."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from adaexplore.core.errors import BadProblemError
from adaexplore.problems.flashinfer.schema import BenchWorkload

ALL = "all"
DEFAULT_WORKLOADS, DEFAULT_TIMED = "8", "3"
_NUMBER = re.compile(r"[1-9]\d{0,3}")  # more digits are those of a UUID


def chosen(workloads: Sequence[BenchWorkload], wanted: str, option: str) -> list[BenchWorkload]:
    """Return the workloads that `wanted` names, in their order.

    It is `all`, a number, or UUIDs (their first characters will do) by commas. A number of them is
    spread from the smallest to the largest. Raises `BadProblemError`, which names the option, for
    a UUID that none or several have.
    """
    if wanted == ALL:
        return list(workloads)
    if _NUMBER.fullmatch(wanted):
        return _spread(workloads, int(wanted))
    names = [_named(workloads, part.strip(), option) for part in wanted.split(",")]
    return [workload for workload in workloads if workload.uuid in names]


def _spread(workloads: Sequence[BenchWorkload], count: int) -> list[BenchWorkload]:
    by_size = sorted(workloads, key=_size)
    last, count = len(by_size) - 1, min(count, len(by_size))
    places = {round(i * last / max(count - 1, 1)) for i in range(count)}
    uuids = {by_size[place].uuid for place in places}
    return [workload for workload in workloads if workload.uuid in uuids]


def _size(workload: BenchWorkload) -> int:
    return math.prod(max(size, 1) for size in workload.axes.values())


def _named(workloads: Sequence[BenchWorkload], start: str, option: str) -> str:
    found = [workload.uuid for workload in workloads if start and workload.uuid.startswith(start)]
    if len(found) == 1:
        return found[0]
    say = "several workloads" if found else "no workload"
    near = ", ".join((found or [workload.uuid for workload in workloads])[:3])
    raise BadProblemError(
        f"{option} {start}: {say} with this UUID; write all, a number, or UUIDs such as {near}"
    )
