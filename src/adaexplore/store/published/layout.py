"""Where the published search leaves its steps, its released kernels and their measurements."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.core.node import StepKind

_LOG = re.compile(r"step_(\d+)_log\.json")
_LOOP = re.compile(r"(proposal|tune)_(\d+)(?:_(\d+))?\.py")
_RUN_NAME = re.compile(r"[^_]+_.+")
_ROOTS = ("dummy_root", "root")


@dataclass(frozen=True, slots=True)
class PublishedStep:
    """One step as the published search recorded it; `parent_id` is None below the root.

    `metrics` is a file or the data themselves, None where there are none.
    """

    id: int
    parent_id: int | None
    step_kind: StepKind
    source: str
    prompt: str = ""
    metrics: Path | Mapping[str, Any] | None = None


def is_published(path: Path) -> bool:
    """Return True for a run's folder, or for a released kernel with its measurements beside it."""
    if path.is_dir():
        return any(_LOG.fullmatch(one.name) or _LOOP.fullmatch(one.name) for one in path.iterdir())
    return _measurements(path) is not None


def published_runs(folder: Path) -> list[Path]:
    """Return the runs (`2_18`) and released kernels (`18.py`) in a folder, in order of number."""
    if not folder.is_dir() or is_published(folder):
        return []
    below = [path for path in folder.iterdir() if path.is_dir() or path.suffix == ".py"]
    found = [
        path
        for path in below
        if (path.is_file() or _RUN_NAME.fullmatch(path.name)) and is_published(path)
    ]
    for level in sorted(folder.glob("level*")):
        found += published_runs(level)
    return sorted(found, key=_natural)


def steps_in(path: Path) -> list[PublishedStep]:
    """Return the steps of a run or of a released kernel, in order.

    Raises `BadInputError` for a file that cannot be read.
    """
    if path.is_file():
        return [PublishedStep(1, None, "large", _text(path), metrics=_measurements(path))]
    logs = sorted((int(m[1]), path / m[0]) for m in _matches(_LOG, path))
    return list(_logged(path, logs) if logs else _looped(path))


def reference_of(path: Path) -> str:
    """Return the source of the reference; empty where it is not there."""
    if path.is_dir():
        file = path / "reference_src.py"
        return _text(file) if file.is_file() else ""
    level = path.parent.name
    for folder in path.resolve().parents:  # a checkout has the problems too
        for file in sorted((folder / "datasets" / "KernelBench" / level).glob(f"{path.stem}_*.py")):
            return _text(file)
    return ""


def name_of(path: Path) -> str:
    """Return the name of a run: level and number, as `2_18`."""
    if path.is_dir():
        return path.resolve().name
    return f"{path.parent.name.removeprefix('level')}_{path.stem}"


def read_json(file: Path) -> Any:
    """Return the data of a JSON file; raise `BadInputError` where it is none."""
    try:
        return json.loads(_text(file))
    except ValueError as error:
        raise BadInputError(f"{file} is not JSON: {error}") from None


def _logged(path: Path, logs: list[tuple[int, Path]]) -> Iterator[PublishedStep]:
    """Yield the steps of a tree search without its empty root, each node once."""
    seen: set[int] = set()
    for number, file in logs:
        log, source = read_json(file), _text(path / f"step_{number}.py")
        if not isinstance(log, dict) or not isinstance(log.get("node_id"), int):
            raise BadInputError(f"{file} has no node_id: it is no log of a step")
        kind = log.get("created_by")
        if log["node_id"] in seen or (kind in _ROOTS and not source.strip()):
            continue
        seen.add(log["node_id"])
        parent = log.get("parent_node_id")
        parent = parent if isinstance(parent, int) and parent in seen else None
        yield PublishedStep(
            id=log["node_id"],
            parent_id=parent,
            step_kind="small" if kind == "small_step" and parent is not None else "large",
            source=source,
            prompt=_text(path / f"step_{number}_prompt.txt"),
            metrics=_metrics(path, f"step_{number}"),
        )


def _looped(path: Path) -> Iterator[PublishedStep]:
    """Yield the steps of the baselines: proposals, each with a chain of refinements."""
    found = sorted((int(m[2]), int(m[3] or 0), m[1], m[0]) for m in _matches(_LOOP, path))
    last: dict[int, int] = {}
    for number, (loop, _, kind, name) in enumerate(found, 1):
        stem = name.removesuffix(".py")
        tuned = kind == "tune" and loop in last
        yield PublishedStep(
            id=number,
            parent_id=last[loop] if tuned else None,
            step_kind="small" if tuned else "large",
            source=_text(path / name),
            prompt=_text(path / f"{stem}_prompt.txt") or _text(path / f"{stem}.txt"),
            metrics=_metrics(path, stem),
        )
        last[loop] = number


def _matches(pattern: re.Pattern[str], path: Path) -> Iterator[re.Match[str]]:
    return (match for file in path.iterdir() if (match := pattern.fullmatch(file.name)))


def _metrics(path: Path, stem: str) -> Path | None:
    files = (path / f"{stem}_metrics{suffix}" for suffix in (".json", ".txt"))
    return next((file for file in files if file.is_file()), None)


def _measurements(kernel: Path) -> Mapping[str, Any] | None:
    """Return what was measured of a released kernel; None for any other file."""
    if kernel.suffix != ".py" or not kernel.stem.isdigit() or not kernel.is_file():
        return None
    name = f"metrics_{kernel.parent.name}.json"
    files = [kernel.parent.parent / name, kernel.parent / name]
    file = next((file for file in files if file.is_file()), None)
    data = read_json(file) if file else None
    problems = data.get("problems") if isinstance(data, dict) else None
    own = problems.get(kernel.stem) if isinstance(problems, dict) else None
    if not isinstance(own, dict):
        return None
    found = own.get("measured_baseline") or own.get("recorded_baseline")
    return found if isinstance(found, dict) else None


def _text(file: Path) -> str:
    """Return the text of a file, empty where there is none."""
    try:
        return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    except OSError as error:
        raise BadInputError(f"{file}: cannot be read: {error.strerror}") from None


def _natural(path: Path) -> tuple[str, list[int]]:
    return str(path.parent), [int(part) for part in re.findall(r"\d+", path.name)]
