"""Failure of the storage under a run, as every kind of database explains it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["create", "write", "read"]


@dataclass(frozen=True, slots=True)
class StorageFailure:
    """Storage failure: its cause, its remedy, and whether stored data is intact."""

    problem: str
    remedy: str
    intact: bool = True
