"""A kernel as a Solution and Traces of SOL-ExecBench, in the folder of its task.

Its driver imports the entry as a module of the folder, not of a package, and forbids extensions
that are compiled by a call: CUDA has to come as sources for its own build.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.languages import DIALECTS
from adaexplore.problems.flashinfer.dataset import TASK, TASK_WORKLOADS
from adaexplore.problems.solutions.delivery import Delivered, Delivery
from adaexplore.problems.solutions.entry import solution_of
from adaexplore.problems.solutions.files import copy_files, write_json, write_traces
from adaexplore.problems.solutions.traces import SOL, traces_of

_FORMAT = "sol-execbench"


def deliver_to_sol(delivery: Delivery, folder: Path) -> Delivered:
    """Write the kernel and the verdict on it into the folder of its task, made where it is missing.

    That is `folder` itself if it holds the task, and otherwise a folder in it. Raises
    `BadInputError` for a language that the benchmark cannot build, and for a folder that cannot be
    written.
    """
    specification = delivery.specification
    if _FORMAT not in DIALECTS[delivery.language].formats:
        taken = [name for name, dialect in DIALECTS.items() if _FORMAT in dialect.formats]
        raise BadInputError(
            "SOL-ExecBench forbids extensions that a module compiles itself, as kernels in "
            f"{delivery.language} do here; it takes {', '.join(taken)}"
        )
    task = folder if (folder / TASK).exists() else folder / specification.name
    written = [write_json(task / "solution.json", _solution(delivery))]
    traces = traces_of(delivery, SOL)
    if traces.entries:
        written.append(write_traces(task / "traces.jsonl", delivery.name, traces.entries))
    if not (task / TASK).exists():
        written += copy_files(specification.entry, task / TASK, task / TASK_WORKLOADS)
    return Delivered(
        tuple(written), len(traces.entries), traces.left_out, specification.data_missing(task)
    )


def _solution(delivery: Delivery) -> dict[str, Any]:
    return solution_of(
        delivery,
        {
            "languages": list(DIALECTS[delivery.language].formats[_FORMAT]),
            "target_hardware": ["LOCAL"],
        },
        in_package=False,
    )
