"""Runs on disk. Every step is recorded before the next one begins.

    with create_run(Path("runs/softmax"), RunRecord(...)) as run:
        run.store.record(node)

`open_run` continues a run, `read_run` reads one, also while another process writes it.
"""

from __future__ import annotations

from adaexplore.core.protocols.store import FORMAT_VERSION, Confirmation, RunRecord, Store
from adaexplore.store.directory import (
    RunDirectory,
    create_run,
    is_run,
    make_run,
    open_run,
    read_run,
    require_free,
)
from adaexplore.store.exported import export_run, memory_store

__all__ = [
    "FORMAT_VERSION",
    "Confirmation",
    "RunDirectory",
    "RunRecord",
    "Store",
    "create_run",
    "export_run",
    "is_run",
    "make_run",
    "memory_store",
    "open_run",
    "read_run",
    "require_free",
]
