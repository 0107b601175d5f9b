"""The loader of definitions of FlashInfer-Bench datasets, and of tasks of SOL-ExecBench."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Access, Problem, Tolerance, Workload
from adaexplore.core.protocols.loader import LoadOptions
from adaexplore.core.verdict.labels import SYNTHESIZED
from adaexplore.problems.access import digest_of
from adaexplore.problems.declared import Declared, declared_in, with_declared
from adaexplore.problems.flashinfer.choice import DEFAULT_TIMED, DEFAULT_WORKLOADS, chosen
from adaexplore.problems.flashinfer.dataset import (
    DatasetEntry,
    entry_named,
    entry_of,
    is_dataset,
)
from adaexplore.problems.flashinfer.made import made_workloads
from adaexplore.problems.flashinfer.safetensors import DataMissingError, find_tensor
from adaexplore.problems.flashinfer.schema import (
    RANDOM,
    SAFETENSORS,
    BenchWorkload,
    Definition,
    InputSource,
    WorkloadTolerance,
)
from adaexplore.problems.flashinfer.source import check, problem_file

_SOL = "SOL-ExecBench"


class FlashInfer:
    """A dataset with `--definition`, the JSON file of a definition, or a task's folder."""

    name = "FlashInfer-Bench"

    def can_load(self, path: Path) -> bool:
        """Return whether the path is a dataset, a definition in one, or a task."""
        return entry_of(path) is not None or is_dataset(path)

    def load(self, path: Path, options: LoadOptions) -> Problem:
        """Return the problem of a definition, named after it, with the workloads asked for."""
        entry = entry_of(path) or entry_named(path, options.definition)
        made = load_entry(entry, options.workloads, options.timed)
        declared = declared_in(ast.parse(made.text), entry.file)
        return declared.over(
            Problem(
                name=made.name,
                source=made.text,
                language=options.language,
                device=options.device,
                checks=options.checks,
                seed=options.seed,
                mode=options.mode,
                target=options.target,
                access=_access(made.reads),
            )
        )


@dataclass(frozen=True, slots=True)
class LoadedEntry:
    """A definition as the text of a problem's file.

    `workloads` are those it was written for. `left_out` are workloads that could not be among
    them, by name, each with the reason.
    """

    name: str
    text: str
    workloads: tuple[BenchWorkload, ...]
    reads: tuple[Path, ...]
    left_out: tuple[tuple[str, str], ...] = ()


def load_entry(entry: DatasetEntry, workloads: str = "", timed: str = "") -> LoadedEntry:
    """Write the file of a definition for the workloads that are asked for (see `choice`).

    Raises `BadProblemError`, in one line, for a definition that cannot be a problem.
    """
    definition = entry.definition()
    check(definition)
    every = entry.workloads() or made_workloads(definition)
    usable, left_out, missing = _usable(definition, every, entry.root)
    if len(usable) < len(left_out):
        usable += made_workloads(definition)
    picked = chosen(usable, workloads or DEFAULT_WORKLOADS, "--workloads")
    clocked = {one.uuid for one in chosen(picked, timed or DEFAULT_TIMED, "--timed")}
    file = problem_file(definition, picked, entry.root)
    declared = Declared(
        workloads=tuple(
            Workload(one.name, draw, timed=one.uuid in clocked)
            for one, draw in zip(picked, file.draws, strict=True)
        ),
        tolerances=_tolerances(picked) if entry.is_task else (),
        labels=_labels(picked, missing),
    )
    return LoadedEntry(
        name=definition.name,
        text=with_declared(file.text, declared),
        workloads=tuple(picked),
        reads=file.reads,
        left_out=tuple(left_out),
    )


def _access(reads: Sequence[Path]) -> Access:
    """Return the access to files of stored tensors, with a digest of their content."""
    if not reads:
        return Access()
    return Access(reads=tuple(map(str, reads)), digest=digest_of(reads))


def _usable(
    definition: Definition, workloads: Sequence[BenchWorkload], root: Path
) -> tuple[list[BenchWorkload], list[tuple[str, str]], dict[str, str]]:
    """Return the workloads that can be drawn, those that cannot, and the data that is missing.

    Inputs of which the data is missing are drawn by rule: by UUID, `missing` has the reason.
    """
    usable, left_out, missing = [], [], {}
    for workload in workloads:
        try:
            definition.sizes(workload.axes)
            _find_all(workload, root)
            usable.append(workload)
        except DataMissingError as error:
            if why := _cannot_draw(definition, workload):
                left_out.append((workload.name, why))
                continue
            missing[workload.uuid] = str(error)
            usable.append(_without_files(workload))
        except BadProblemError as error:
            left_out.append((workload.name, str(error)))
    return usable, left_out, missing


def _find_all(workload: BenchWorkload, root: Path) -> None:
    for source in workload.inputs.values():
        if source.kind == SAFETENSORS:
            find_tensor(root, source.path, source.key)


def _without_files(workload: BenchWorkload) -> BenchWorkload:
    drawn = InputSource(RANDOM)
    inputs = {n: drawn if s.kind == SAFETENSORS else s for n, s in workload.inputs.items()}
    return replace(workload, inputs=inputs)


def _cannot_draw(definition: Definition, workload: BenchWorkload) -> str:
    """Return why offsets for a workload cannot be drawn, empty where they can."""
    if not {"qo_indptr", "kv_indptr"} <= definition.inputs.keys():
        return ""
    sizes = definition.sizes(workload.axes)
    keys = sizes.get("total_kv", sizes.get("num_kv_indices", 0) * sizes.get("page_size", 1))
    if sizes.get("total_q", 0) <= keys:
        return ""
    return "has more queries than keys, and the file of its offsets is missing or a Git LFS pointer"


def _labels(
    picked: Sequence[BenchWorkload], missing: dict[str, str]
) -> tuple[tuple[str, str], ...]:
    drawn = [missing[one.uuid] for one in picked if one.uuid in missing]
    made = [one.name for one in picked if one.made]
    why = []
    if drawn:
        why.append(
            f"indices of {len(drawn)} of {len(picked)} workloads are drawn by rule: {drawn[0]}"
        )
    if made:
        why.append(f"the dataset has no workloads to be used as {' and '.join(made)}")
    return ((SYNTHESIZED, "; ".join(why)),) if why else ()


def _tolerances(picked: Sequence[BenchWorkload]) -> tuple[Tolerance, ...]:
    """Return the tolerances; one for all workloads where they agree."""
    own = {one.name: one.tolerance or WorkloadTolerance() for one in picked}
    if len(set(own.values())) == 1:
        own = {"": next(iter(own.values()))}
    return tuple(each for name, given in own.items() for each in _bounds(given, name))


def _bounds(given: WorkloadTolerance, workload: str) -> list[Tolerance]:
    usual = Tolerance(given.rtol, given.atol, _SOL, given.matched, workload)
    if given.error_cap is None:
        return [usual]
    return [usual, Tolerance(0.0, given.error_cap, f"{_SOL} (error cap)", 1.0, workload)]
