"""Files of JSON in the folder of a benchmark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.problems.flashinfer.dataset import DatasetEntry


def copy_files(entry: DatasetEntry, definition: Path, workloads: Path) -> list[Path]:
    """Copy the files of a definition to these places; return those that there are."""
    pairs = {entry.file: definition, entry.workloads_file: workloads}
    return [
        _write(target, file.read_text(encoding="utf-8"))
        for file, target in pairs.items()
        if file.is_file()
    ]


def write_json(file: Path, data: Mapping[str, Any]) -> Path:
    """Write one object, indented; raise `BadInputError` where the file cannot be written."""
    return _write(file, json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_traces(file: Path, solution: str, traces: Sequence[Mapping[str, Any]]) -> Path:
    """Write the traces of a solution among those of others: they replace its own earlier ones."""
    kept = [line for line in _lines(file) if json.loads(line).get("solution") != solution]
    lines = [json.dumps(trace, ensure_ascii=False, allow_nan=False) for trace in traces]
    return _write(file, "".join(f"{line}\n" for line in (*kept, *lines)))


def _write(file: Path, text: str) -> Path:
    """Write a file that is complete at every moment; raise `BadInputError` where it cannot be."""
    draft = file.with_name(f".{file.name}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        raise BadInputError(f"{file}: cannot be written: {error.strerror}") from None
    return file


def _lines(file: Path) -> list[str]:
    if not file.exists():
        return []
    return [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
