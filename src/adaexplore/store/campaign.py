"""A campaign on disk: a folder of runs, and one file that says what is to be run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.store.directory import hold_lock, require_free

MANIFEST_NAME = "campaign.json"
CAMPAIGN_FORMAT = 1
"""Rises with every change that an earlier release could not read."""


def is_campaign(path: Path) -> bool:
    """Whether a folder is a campaign's."""
    return (path / MANIFEST_NAME).is_file()


@contextmanager
def hold_campaign(path: Path) -> Iterator[None]:
    """Keeps a campaign to one writer; `BadInputError` if another process has it."""
    with ExitStack() as resources:
        hold_lock(path, resources)
        yield


def create_campaign(path: Path, manifest: Mapping[str, Any]) -> None:
    """Makes the folder with its manifest, plain data.

    Raises `BadInputError` if `path` exists and is not an empty directory, or cannot be written.
    """
    require_free(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"cannot create the campaign {path}: {error.strerror}") from error
    write_manifest(path, manifest)


def write_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    """Replaces a campaign's manifest in one move."""
    file = path / MANIFEST_NAME
    draft = file.with_suffix(".json.new")
    try:
        text = json.dumps({"format": CAMPAIGN_FORMAT, **manifest}, indent=1)
        draft.write_text(text + "\n", encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        raise BadInputError(f"cannot write {file}: {error.strerror}") from error


def read_manifest(path: Path) -> dict[str, Any]:
    """A campaign's manifest; `BadInputError` for one that is damaged or of a newer release."""
    file = path / MANIFEST_NAME
    try:
        manifest: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        written = manifest.pop("format")
    except OSError as error:
        raise BadInputError(f"cannot read {file}: {error.strerror}") from error
    except (ValueError, KeyError, AttributeError, TypeError):
        raise BadInputError(
            f"{file} is damaged; begin the campaign anew in another folder"
        ) from None
    if written > CAMPAIGN_FORMAT:
        raise BadInputError(
            f"{file} is in campaign format {written}, this release reads {CAMPAIGN_FORMAT}; "
            "upgrade adaexplore"
        )
    return manifest
