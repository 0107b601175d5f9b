"""FlashInfer-Bench and SOL-ExecBench as benchmarks: their definitions as tasks, and solutions."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.errors import BadInputError, BadProblemError
from adaexplore.core.protocols.benchmark import (
    Answer,
    BenchmarkNeeds,
    BenchmarkTask,
    Exclusion,
)
from adaexplore.problems.flashinfer.dataset import DatasetEntry, dataset_entries, entry_named
from adaexplore.problems.flashinfer.loader import LoadedEntry, load_entry
from adaexplore.problems.flashinfer.schema import Definition

_KERNEL = "kernel.py"
_LANGUAGES = {"python", "triton", "pytorch"}
_MODULE = """{source}


# From here on: a module around {function}, written by `adaexplore bench`.

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, {names}):
{body}
"""


@dataclass(frozen=True, slots=True)
class DefinitionTasks:
    """The definitions of a dataset, keyed by name, each with the usual choice of its workloads."""

    name: str
    about: str
    needs: BenchmarkNeeds

    def tasks(self, data: Path) -> Sequence[BenchmarkTask]:
        """See `Benchmark.tasks`."""
        found = _loaded(data)
        return [_task(entry, made) for entry, made in found if isinstance(made, LoadedEntry)]

    def excluded(self, data: Path) -> Sequence[Exclusion]:
        """See `Benchmark.excluded`; a workload that is left out has the key `NAME/UUID`."""
        return [one for entry, made in _loaded(data) for one in _excluded(entry, made)]

    def answers(self, folder: Path, data: Path | None) -> Sequence[Answer]:
        """Return the solutions; those of one file of Python or Triton can be judged.

        Files that hold no solution are none. See `Benchmark.answers`.
        """
        if not folder.exists():
            raise BadInputError(f"--answers {folder}: no such folder")
        files = [folder] if folder.is_file() else sorted(folder.rglob("*.json"))
        found = (_answer(file, folder, data) for file in files)
        return sorted((one for one in found if one), key=lambda one: (one.key, one.place))


FLASHINFER = DefinitionTasks(
    "flashinfer",
    "156 definitions of 12 op types, of which 135 can be compared with a reference",
    BenchmarkNeeds(
        "flashinfer_trace",
        "git clone https://github.com/flashinfer-ai/flashinfer-bench && cd flashinfer-bench && "
        "git checkout 6569a4d6^ flashinfer_trace",
    ),
)
SOL_EXECBENCH = DefinitionTasks(
    "sol-execbench",
    "235 tasks in four parts, with tolerances of their own",
    BenchmarkNeeds(
        "SOL-ExecBench",
        "git clone https://github.com/NVIDIA/SOL-ExecBench && cd SOL-ExecBench && "
        "scripts/download_data.sh",
    ),
)


def _loaded(data: Path) -> Iterator[tuple[DatasetEntry, LoadedEntry | str]]:
    """Yield every definition as the text of a problem's file, or the reason why it is none."""
    try:
        every = dataset_entries(data)
    except BadProblemError as error:
        raise BadInputError(f"--data {error}") from None
    for entry in every:
        try:
            yield entry, load_entry(entry)
        except BadProblemError as error:
            yield entry, str(error)


def _task(entry: DatasetEntry, made: LoadedEntry) -> BenchmarkTask:
    return BenchmarkTask(entry.name, entry.category, f"{made.name}.py", made.text)


def _excluded(entry: DatasetEntry, made: LoadedEntry | str) -> Iterator[Exclusion]:
    if isinstance(made, str):
        yield Exclusion(entry.name, entry.category, made.removeprefix(f"{entry.name}: "))
        return
    for workload, why in made.left_out:
        yield Exclusion(f"{entry.name}/{workload.partition(' ')[0]}", entry.category, why)


def _answer(file: Path, folder: Path, data: Path | None) -> Answer | None:
    """Return the answer in a file; None for a file that holds no solution."""
    try:
        solution = json.loads(file.read_text(encoding="utf-8"))
        name, spec, sources = solution["definition"], solution["spec"], solution["sources"]
        texts = {source["path"]: source["content"] for source in sources}
        path, _, function = spec["entry_point"].partition("::")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    place = file.relative_to(folder).as_posix() if folder.is_dir() else file.name
    kernel = texts.get(_KERNEL, "")
    if "class ModelNew" in kernel:
        return Answer(name, place, kernel)
    languages = {str(one) for one in spec.get("languages", [spec.get("language")])}
    definition = _definition(data, name)
    if not languages <= _LANGUAGES:
        return Answer(name, place, "", unreadable=f"it is written in {', '.join(languages)}")
    if len(texts) > 1 or path not in texts:
        return Answer(name, place, "", unreadable="it has several files")
    if definition is None:
        return Answer(name, place, "", unreadable="its definition is not in the data")
    passes = spec.get("destination_passing_style", True)
    body = _destination_passed(definition, function) if passes else _returned(definition, function)
    if body is None:
        reason = "it writes to its outputs, whose sizes do not follow from its inputs"
        return Answer(name, place, "", unreadable=reason)
    source = _MODULE.format(
        source=texts[path],
        function=function,
        names=", ".join(definition.inputs),
        body=textwrap.indent(body, "        "),
    )
    return Answer(name, place, source, adapted=True)


def _returned(definition: Definition, function: str) -> str:
    """Return the lines of a call of a function that returns its outputs."""
    return f"return {function}({_keywords(definition.inputs)})"


def _destination_passed(definition: Definition, function: str) -> str | None:
    """Return the lines of a call of a function that writes to outputs which it is given.

    None where the size of an output's axis does not follow from the inputs.
    """
    axes: dict[str, str] = {}
    for name, spec in definition.inputs.items():
        for i, axis in enumerate(spec.shape or ()):
            axes.setdefault(axis, f"{name}.shape[{i}]")
    axes.update((axis, str(size)) for axis, size in definition.const_axes.items())
    first = next((name for name, spec in definition.inputs.items() if spec.shape is not None), "")
    lines = []
    for name, spec in definition.outputs.items():
        sizes = [size if size.isdecimal() else axes.get(size, "") for size in spec.shape or ()]
        if not first or "" in sizes:
            return None
        shape = "".join(f"{size}, " for size in sizes).rstrip()
        dtype = f"dtype=torch.{spec.dtype}"
        lines.append(f"{name} = torch.empty(({shape}), {dtype}, device={first}.device)")
    lines.append(f"{function}({_keywords([*definition.inputs, *definition.outputs])})")
    return "\n".join([*lines, f"return {', '.join(definition.outputs)}"])


def _keywords(names: Iterable[str]) -> str:
    return ", ".join(f"{name}={name}" for name in names)


def _definition(data: Path | None, name: str) -> Definition | None:
    try:
        return entry_named(data, name).definition() if data else None
    except BadProblemError:
        return None
