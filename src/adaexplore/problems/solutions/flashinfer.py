"""A kernel as a Solution and Traces of FlashInfer-Bench.

Its releases (0.1.2) and its main branch read every file below `solutions` and `traces`, so the
layout of the latter, with the author's name, serves both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.languages import DIALECTS
from adaexplore.problems.flashinfer.dataset import DEFINITIONS, WORKLOADS
from adaexplore.problems.solutions.delivery import AUTHOR, Delivered, Delivery
from adaexplore.problems.solutions.entry import solution_of
from adaexplore.problems.solutions.files import copy_files, write_json, write_traces
from adaexplore.problems.solutions.traces import FLASHINFER, traces_of

_FORMAT = "flashinfer"
_BUILT_BY_A_CALL = ("python",)  # "cuda" is for sources that are built for it


def deliver_to_flashinfer(delivery: Delivery, folder: Path) -> Delivered:
    """Write the kernel and the verdict on it into the folder of a dataset.

    A folder without the definition gets that and its workloads too. Raises `BadInputError` for a
    definition without an op type, and for a folder that cannot be written.
    """
    specification = delivery.specification
    op_type, name = specification.definition.op_type, specification.name
    if not op_type:
        raise BadInputError(f"{name} has no op_type, so it is a task of SOL-ExecBench: use --sol")
    place = Path(AUTHOR, op_type)
    file = folder / "solutions" / place / name / f"{delivery.name}.json"
    written = [write_json(file, _solution(delivery))]
    traces = traces_of(delivery, FLASHINFER)
    if traces.entries:
        file = folder / "traces" / place / f"{name}.jsonl"
        written.append(write_traces(file, delivery.name, traces.entries))
    if not any((folder / DEFINITIONS).rglob(f"{name}.json")):
        definition = folder / DEFINITIONS / op_type / f"{name}.json"
        workloads = folder / WORKLOADS / op_type / f"{name}.jsonl"
        written += copy_files(specification.entry, definition, workloads)
    return Delivered(
        tuple(written), len(traces.entries), traces.left_out, specification.data_missing(folder)
    )


def _solution(delivery: Delivery) -> dict[str, Any]:
    hardware = delivery.environment.gpu or "cuda"
    [language] = DIALECTS[delivery.language].formats.get(_FORMAT, _BUILT_BY_A_CALL)
    return solution_of(
        delivery,
        {"language": language, "target_hardware": [hardware]},
        in_package=True,
    )
