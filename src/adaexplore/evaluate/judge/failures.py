"""Exceptions and deaths of a candidate, as verdicts."""

from __future__ import annotations

from adaexplore.core.verdict.evaluation import Failed, FailureStatus, Fault
from adaexplore.evaluate.judge.reasons import OUT_OF_ROOM
from adaexplore.evaluate.truth.device_memory.room import FreeMemory, asked_in
from adaexplore.evaluate.wire.faults import BUILD_FAILED, fault_of
from adaexplore.evaluate.wire.messages import Raised
from adaexplore.sandbox.process import WorkerDiedError
from adaexplore.sandbox.walls.limits import GPU_MEMORY_SHARE
from adaexplore.sandbox.watchdog import LimitExceededError

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
        "DSLUserCodeError",  # CuTe DSL
        "_FixedMessage",  # what Helion says about a kernel, and its subclasses
    }
)
_MEMORY = frozenset({"OutOfMemoryError", "MemoryError"})
_WITHOUT_GPU: dict[str, FailureStatus] = {
    "NeedsGpuError": "rejected",
    "SlowInterpretationError": "timeout",
}
"""Exceptions of `evaluate.offline` that are no fault of the candidate's."""
_MEMORY_TEXTS = (
    "can't allocate memory",
    "out of memory",
    "std::bad_alloc",
    "Cannot allocate",
    "CUDACachingAllocator",  # its own report of a full device can fail after a fork
)
COMPILING, LOADING = "compiling ahead", "importing and constructing"
"""Stages before a candidate runs: an exception in them is a compile error."""

_COMPILE_TEXTS = (BUILD_FAILED, "PassManager::run failed", "C++ compile error")
_DETAIL_CHARS = 12_000


def out_of_room(verdict: Failed, room: FreeMemory) -> Failed:
    """Return the verdict on a candidate that found too little memory, with `room` left after it.

    It is the candidate's failure only where other processes leave it what a candidate may have, or
    where it asked for more than that at once.
    """
    asked = max(asked_in(verdict.reason), asked_in(verdict.detail))
    share = GPU_MEMORY_SHARE * room.total
    if asked > share or room.others <= room.total - share:
        return verdict
    gib = [f"{each / 2**30:.1f} GiB" for each in (room.others, room.total)]
    reason = f"{OUT_OF_ROOM} {gib[0]} of {gib[1]}"
    return Failed("infra_error", reason, verdict.detail or verdict.reason)


def raised(error: Raised, stage: str, source: str = "", log: str = "") -> Failed:
    """Return the verdict for an exception that the candidate's process reported.

    `source` is the candidate's and `log` the end of what its process printed.
    """
    status = _status(set(error.types), error.message)
    if status == "runtime_error" and stage in (COMPILING, LOADING):
        status = "compile_error"
    fault = fault_of(error, source, log)
    what = f"{fault.type}: {fault.message}" if fault.message else fault.type
    detail = error.traceback[-_DETAIL_CHARS:]
    reason = f"{what} ({_place(fault)}while {stage})"
    loaded = stage not in (COMPILING, LOADING)
    return Failed(status, reason, detail, feedback=fault, loaded=loaded)


def died(error: WorkerDiedError, stage: str) -> Failed:
    """Return the verdict for a candidate's process that ended by itself or by a signal."""
    log = error.log[-_DETAIL_CHARS:]
    status: FailureStatus = "runtime_error"
    reason = f"its process ended while {stage}: {error}"
    if error.status == -9:  # not killed by the judge: by the kernel's out-of-memory killer
        status, reason = "out_of_memory", f"its process was killed while {stage}"
    elif _any_in(_MEMORY_TEXTS, log):
        status = "out_of_memory"
    return Failed(status, reason, log)


def overran(error: LimitExceededError, stage: str) -> Failed:
    """Return the verdict for a candidate that was ended because it exceeded a limit."""
    status: FailureStatus = "out_of_memory" if error.resource == "memory" else "rejected"
    return Failed(status, f"{error}, while {stage}")


def _status(types: set[str], message: str) -> FailureStatus:
    if types & _MEMORY or _any_in(_MEMORY_TEXTS, message):
        return "out_of_memory"
    if types & _COMPILE or _any_in(_COMPILE_TEXTS, message):
        return "compile_error"
    return next((_WITHOUT_GPU[t] for t in types if t in _WITHOUT_GPU), "runtime_error")


def _any_in(texts: tuple[str, ...], message: str) -> bool:
    return any(text in message for text in texts)


def _place(fault: Fault) -> str:
    """Return a place such as "line 12 in k, "; empty where it is unknown."""
    line = f"line {fault.line}" if fault.line else ""
    place = " in ".join(filter(None, [line, fault.frame]))
    return f"{place}, " if place else ""
