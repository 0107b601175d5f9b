"""Campaign on disk: a folder of runs, and a manifest that lists the runs to make."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadInputError, RunInUseError
from adaexplore.core.files import write_whole
from adaexplore.store.directory import hold_lock, require_free, write_files

MANIFEST_NAME = "campaign.json"
CAMPAIGN_FORMAT = 1
"""Format number; rises with every change that an earlier release could not read."""


def is_campaign(path: Path) -> bool:
    """Return true if the folder belongs to a campaign."""
    return (path / MANIFEST_NAME).is_file()


def hold_problem(path: Path, name: str) -> AbstractContextManager[None]:
    """Lock one problem of a campaign; raise `RunInUseError` if another process works on it."""
    claims = path / "claims"
    claims.mkdir(exist_ok=True)
    return hold_lock(claims, f"{name}.lock")


def is_held(path: Path, name: str) -> bool:
    """Return True while a process works on a problem of a campaign."""
    try:
        with hold_problem(path, name):
            return False
    except RunInUseError:
        return True


def create_campaign(
    path: Path, manifest: Mapping[str, Any], files: Mapping[str, str] | None = None
) -> None:
    """Create the folder with its manifest, plain data, and with `files`, texts by name.

    Raises `BadInputError` if `path` exists and is not an empty directory, or cannot be written.
    """
    require_free(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        write_files(path, files or {})
    except OSError as error:
        raise BadInputError(f"cannot create the campaign {path}: {error.strerror}") from error
    write_manifest(path, manifest)


def write_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    """Replace a campaign's manifest atomically."""
    text = json.dumps({"format": CAMPAIGN_FORMAT, **manifest}, indent=1)
    write_whole(path / MANIFEST_NAME, text + "\n")


def read_manifest(path: Path) -> dict[str, Any]:
    """Return a campaign's manifest; raise `BadInputError` if it is damaged or too new."""
    file = path / MANIFEST_NAME
    try:
        manifest: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        written = manifest.pop("format")
    except OSError as error:
        raise BadInputError(f"cannot read {file}: {error.strerror}") from error
    except (ValueError, KeyError, AttributeError, TypeError):
        raise BadInputError(
            f"{file} is damaged; start the campaign again in another folder"
        ) from None
    if written > CAMPAIGN_FORMAT:
        raise BadInputError(
            f"{file} is in campaign format {written}, this release reads {CAMPAIGN_FORMAT}; "
            "upgrade adaexplore"
        )
    return manifest
