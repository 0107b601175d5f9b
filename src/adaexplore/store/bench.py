"""A judged benchmark on disk: its problems and answers, and a line for each verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from adaexplore.core import codec
from adaexplore.core.bench import BenchEntry, BenchVerdict, LeftOutAnswer
from adaexplore.core.errors import BadInputError
from adaexplore.store.directory import require_free, write_files

MANIFEST_NAME = "bench.json"
VERDICTS_NAME = "verdicts.jsonl"
BENCH_FORMAT = 1
"""Format number; rises with every change that an earlier release could not read."""


@dataclass(frozen=True, slots=True)
class BenchManifest:
    """The order of a judged benchmark; `config` is the configuration as plain data.

    `left_out` are the answers that were found and are not judged. `server` is the address of the
    service that judges, empty for this machine.
    """

    benchmark: str
    command: str
    config: Mapping[str, Any]
    or_looser: bool
    entries: tuple[BenchEntry, ...]
    left_out: tuple[LeftOutAnswer, ...] = ()
    server: str = ""


def is_bench(path: Path) -> bool:
    """Return true if the folder belongs to a judged benchmark."""
    return (path / MANIFEST_NAME).is_file()


def create_bench(path: Path, manifest: BenchManifest, files: Mapping[str, str]) -> None:
    """Create the folder with its manifest, and with `files`: the text of each by its name.

    Raises `BadInputError` if `path` exists and is not an empty directory, or cannot be written.
    """
    require_free(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        write_files(path, files)
        data = {"format": BENCH_FORMAT, **asdict(manifest)}
        (path / MANIFEST_NAME).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"cannot write {path}: {error.strerror}") from error


def read_bench(path: Path) -> BenchManifest:
    """Return the manifest; raise `BadInputError` if it is not there, damaged or too new."""
    file = path / MANIFEST_NAME
    try:
        data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        written = data.pop("format")
        manifest = codec.read(BenchManifest, data)
    except OSError as error:
        raise BadInputError(
            f"--resume {path}: cannot read {MANIFEST_NAME}: {error.strerror}; name the folder that "
            "`adaexplore bench --run` made"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise BadInputError(f"{file} is damaged; judge again in another folder") from None
    if written > BENCH_FORMAT:
        raise BadInputError(f"{file} is in format {written}; upgrade adaexplore")
    return manifest


def append_verdict(path: Path, verdict: BenchVerdict) -> None:
    """Add a line for a verdict."""
    with (path / VERDICTS_NAME).open("a", encoding="utf-8") as file:
        file.write(json.dumps(verdict.to_json()) + "\n")


def mend_verdicts(path: Path) -> None:
    """Cut off a last line that a kill left incomplete."""
    file = path / VERDICTS_NAME
    text = file.read_bytes() if file.exists() else b""
    if text and not text.endswith(b"\n"):
        file.write_bytes(text[: text.rfind(b"\n") + 1])


def read_verdicts(path: Path, entries: Sequence[BenchEntry]) -> list[BenchVerdict]:
    """Return the last verdict on each of these entries that has one, in their order."""
    file = path / VERDICTS_NAME
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    whole = text[: text.rfind("\n") + 1]  # another process may be writing the rest
    read = (BenchVerdict.from_json(json.loads(line)) for line in whole.splitlines())
    last = {verdict.entry.id: verdict for verdict in read}
    return [last[entry.id] for entry in entries if entry.id in last]
