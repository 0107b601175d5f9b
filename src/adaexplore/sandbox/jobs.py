"""One-shot jobs: a function from JSON to JSON, run in its own worker."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from adaexplore.sandbox.channel import Channel
from adaexplore.sandbox.process import ForkServer
from adaexplore.sandbox.walls.limits import ResourceLimits


def run_job(
    server: ForkServer,
    entry: str,
    request: Mapping[str, Any],
    timeout_s: float,
    *,
    limits: ResourceLimits | None = None,
    environment: Mapping[str, str] | None = None,
    confined: Literal["cpu", "gpu"] | None = None,
    readable: Sequence[str] = (),
) -> dict[str, Any]:
    """Run `entry` ("module:function", JSON in and out) in a fresh worker and return its result.

    `environment` is added to the worker's own. A job that runs untrusted code is `confined`, and
    may then read the paths in `readable` (see `ForkServer.spawn`). Raises `TimeoutError` when the
    job takes longer than `timeout_s`, `LimitExceededError` when a confined job exceeds its limits,
    and `WorkerDiedError` when it crashes; an exception inside the job counts as a crash, with its
    traceback in the error's log.
    """
    worker = server.spawn(
        f"{__name__}:serve",
        name="job",
        limits=limits,
        environment=environment,
        confined=confined,
        readable=readable,
    )
    try:
        return worker.call({"entry": entry, "request": dict(request)}, timeout_s)
    finally:
        worker.end()


def serve(channel: Channel, control: Channel | None) -> None:  # noqa: ARG001 - worker signature
    """Run one job received over the channel; entry point of the worker."""
    message = channel.receive()
    module, _, function = message["entry"].partition(":")
    result = getattr(importlib.import_module(module), function)(message["request"])
    channel.send(result)
