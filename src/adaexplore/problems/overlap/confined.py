"""Jobs on code that nobody trusts yet: confined, limited, and one line where they fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adaexplore.sandbox import (
    ForkServer,
    LimitExceededError,
    WorkerDiedError,
    candidate_limits,
    run_job,
)

TIMEOUT_S = 60.0
MEMORY_BYTES = 4 << 30

STRUCTURE_PRELOAD = ("torch", "adaexplore.problems.overlap.graph:warm_tracing")
"""What the server of these jobs should have imported."""

TRACE = "adaexplore.problems.overlap.graph:job"


def run_confined(
    server: ForkServer, entry: str, request: Mapping[str, Any], timeout_s: float = TIMEOUT_S
) -> dict[str, Any]:
    """Return the result of a job, or `{"why": ...}` if it exceeds a limit or dies."""
    limits = candidate_limits(MEMORY_BYTES, gpu=False)
    try:
        return run_job(server, entry, request, timeout_s, limits=limits, confined="cpu")
    except TimeoutError:
        return {"why": f"it takes longer than {timeout_s:g} s"}
    except LimitExceededError as error:
        return {"why": str(error)}
    except WorkerDiedError as error:
        last = (error.log.strip().splitlines() or [""])[-1]
        return {"why": f"its process died: {error}: {last}".rstrip(": ")}


def structure_of(server: ForkServer, name: str, source: str) -> dict[str, Any]:
    """The structure of a module (see `graph.job`), or `{"why": ...}`."""
    return run_confined(server, TRACE, {"name": name, "source": source})
