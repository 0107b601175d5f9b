"""The runs of the kernel, and the refusals of the guards, which are said once in the log."""

from __future__ import annotations

import logging
import threading
from collections import Counter

import torch

from adaexplore.runtime.loaded import SPEC

log = logging.getLogger(SPEC.name)
_counts: Counter[str] = Counter()
_runs: Counter[str] = Counter()
_said: set[tuple[str, str]] = set()
_lock = threading.Lock()


def runs() -> int:
    """Return how often the kernel has run; a CUDA graph that is replayed counts nothing."""
    return _runs.total()


def count_run() -> None:
    """Count a run of the kernel."""
    with _lock:
        _runs["run"] += 1


def refusals() -> dict[str, int]:
    """Return how many calls ran the original, by reason.

    A compiled graph decides once, when it is made: such a decision counts as a call.
    """
    with _lock:
        return dict(_counts)


def reset_refusals() -> None:
    """Set all counts to zero; what was said is said again."""
    with _lock:
        _counts.clear()
        _said.clear()


def note(name: str, reason: str) -> None:
    """Count a refusal of a module, and log the first of its kind."""
    with _lock:
        _counts[reason] += 1
        is_new = (name, reason) not in _said
        _said.add((name, reason))
    if is_new:
        log.warning("%s: runs the original: %s", name or SPEC.class_name, reason)


torch.compiler.assume_constant_result(note)  # type: ignore[no-untyped-call]
