"""A definition of FlashInfer-Bench or SOL-ExecBench as its files have it, to be written again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.problems.flashinfer.dataset import DatasetEntry, entry_named
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

    Raises `BadProblemError` where there is none, and for files that cannot be read.
    """
    entry = entry_named(dataset, name)
    names = [workload.name for workload in entry.workloads()]
    file = entry.workloads_file
    lines = file.read_text(encoding="utf-8").splitlines() if names else []
    plain = [json.loads(line) for line in lines if line.strip()]
    workloads = [each.get("workload", each) for each in plain]
    return Specification(entry, entry.definition(), dict(zip(names, workloads, strict=True)))
