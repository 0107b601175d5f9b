"""A definition of FlashInfer-Bench or SOL-ExecBench as its files have it, to be written again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.problems.flashinfer.dataset import (
    DatasetEntry,
    dataset_entries,
    entry_named,
    entry_of,
    is_dataset,
)
from adaexplore.problems.flashinfer.schema import RANDOM, SAFETENSORS, Definition


@dataclass(frozen=True, slots=True)
class Specification:
    """A definition and its workloads.

    `workloads` has the JSON of each workload by the name that problems give it. `entry` is the
    place of the files.
    """

    entry: DatasetEntry
    definition: Definition
    workloads: Mapping[str, Mapping[str, Any]]

    @property
    def name(self) -> str:
        """The name of the definition."""
        return self.definition.name

    def data_missing(self, folder: Path) -> tuple[str, ...]:
        """Return the paths of files of tensors that workloads name and `folder` does not have."""
        inputs = [one for each in self.workloads.values() for one in each["inputs"].values()]
        paths = [one["path"] for one in inputs if one.get("type", RANDOM) == SAFETENSORS]
        return tuple(path for path in dict.fromkeys(paths) if not (folder / path).is_file())


def read_specification(dataset: Path, name: str) -> Specification:
    """Read the definition `name` of a dataset, and its workloads.

    `dataset` may also be the file of the definition, or the folder of a task. Raises
    `BadProblemError` where there is none, and for files that cannot be read.
    """
    entry = _entry(dataset, name)
    names = [workload.name for workload in entry.workloads()]
    file = entry.workloads_file
    lines = file.read_text(encoding="utf-8").splitlines() if names else []
    plain = [json.loads(line) for line in lines if line.strip()]
    workloads = [each.get("workload", each) for each in plain]
    return Specification(entry, entry.definition(), dict(zip(names, workloads, strict=True)))


def holds_definitions(path: Path) -> bool:
    """Return whether `read_specification` can read definitions there."""
    return entry_of(path) is not None or is_dataset(path)


def _entry(dataset: Path, name: str) -> DatasetEntry:
    """Return the entry with a name; the folder of a task may have another than its definition."""
    own = entry_of(dataset)
    known = [own] if own else dataset_entries(dataset)
    tasks = (each for each in known if each.is_task)
    found = next((each for each in tasks if each.definition().name == name), own)
    return found or entry_named(dataset, name)
