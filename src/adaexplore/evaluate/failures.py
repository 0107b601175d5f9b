"""Exceptions and deaths of a candidate, as verdicts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from adaexplore.evaluation import Failed, FailureStatus
from adaexplore.sandbox.process import WorkerDiedError

_COMPILE = frozenset(
    {
        "SyntaxError",
        "CompilationError",  # Triton's front end, and its subclasses
        "CompileTimeAssertionFailure",
        "UnsupportedLanguageConstruct",
        "PTXASError",
        "OutOfResources",  # shared memory or registers beyond the device
        "MLIRCompilationError",
        "CppCompileError",
        "InvalidCxxCompiler",
    }
)
_MEMORY = frozenset({"OutOfMemoryError", "MemoryError"})
_MEMORY_TEXTS = (
    "can't allocate memory",
    "out of memory",
    "std::bad_alloc",
    "Cannot allocate",
    "CUDACachingAllocator",  # its own report of a full device can fail after a fork
)
_COMPILE_TEXTS = ("Error building extension", "PassManager::run failed", "C++ compile error")
_DETAIL_CHARS = 12_000


def raised(error: Mapping[str, Any], stage: str) -> Failed:
    """The verdict for an exception that the candidate's process reported."""
    status = _status(set(error["types"]), error["message"])
    if status == "runtime_error" and stage == "importing and constructing":
        status = "compile_error"
    line = _headline(error["message"])
    reason = f"{error['type']}: {line}" if line else error["type"]
    return Failed(status, f"{reason} (while {stage})", error["traceback"][-_DETAIL_CHARS:])


def died(error: WorkerDiedError, stage: str) -> Failed:
    """The verdict for a candidate's process that ended by itself or by a signal."""
    log = error.log[-_DETAIL_CHARS:]
    status: FailureStatus = "runtime_error"
    reason = f"its process ended while {stage}: {error}"
    if error.status == -9:  # nobody here killed it: the kernel's out-of-memory killer did
        status, reason = "out_of_memory", f"its process was killed while {stage}"
    elif _any_in(_MEMORY_TEXTS, log):
        status = "out_of_memory"
    return Failed(status, reason, log)


def _status(types: set[str], message: str) -> FailureStatus:
    if types & _MEMORY or _any_in(_MEMORY_TEXTS, message):
        return "out_of_memory"
    if types & _COMPILE or _any_in(_COMPILE_TEXTS, message):
        return "compile_error"
    return "runtime_error"


def _any_in(texts: tuple[str, ...], message: str) -> bool:
    return any(text in message for text in texts)


def _headline(message: str) -> str:
    """The line of a message that says most.

    A C++ compiler's first "error:"; the last line of Triton's, which begin with a bare position;
    else the first line.
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if not lines:
        return ""
    errors = [line for line in lines if "error:" in line]
    triton = [f"{lines[0]} {lines[-1]}"] if re.fullmatch(r"at \d+:\d+:", lines[0]) else []
    return (errors or triton or lines)[0][:300]
