"""The judge's end of the talk with a candidate's process, which may say anything."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import time
from collections.abc import Sequence
from typing import Any

import torch

from adaexplore.core.evaluation import Failed
from adaexplore.evaluate.judge.failures import raised
from adaexplore.evaluate.wire.tensors import SharedTensor
from adaexplore.sandbox.family import family
from adaexplore.sandbox.process import Worker


class Stop(Exception):  # noqa: N818 - not an error: it carries a verdict out of nested calls
    """Ends an evaluation with its verdict."""

    def __init__(self, verdict: Failed) -> None:
        self.verdict = verdict
        super().__init__(verdict.reason)


class Conversation:
    """Requests to one candidate's process, until `deadline` (by `time.monotonic`).

    `source` is the candidate's, in which exceptions are placed. `stage` says in words what it is
    doing, for whoever reads the verdict.
    """

    def __init__(self, worker: Worker, deadline: float, source: str = "") -> None:
        self._worker = worker
        self._source = source
        self.deadline = deadline
        self.stage = "loading"

    @property
    def pid(self) -> int:
        """Of the candidate's process."""
        return self._worker.pid

    def freeze(self) -> None:
        """Stops every thread of the candidate's process and its descendants until `thaw`.

        While nobody attends to it none of them can be born (see `sandbox.watchdog`).
        """
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets the candidate's process go on."""
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """Ends the candidate's process and all its descendants."""
        self._worker.kill()

    def _signal(self, number: int) -> None:
        for pid in family(self.pid):
            with contextlib.suppress(ProcessLookupError):  # it has ended; the next request says so
                os.kill(pid, number)

    def ask(
        self, message: dict[str, Any], tensors: Sequence[SharedTensor] | None = None
    ) -> dict[str, Any]:
        """One request, with `tensors` to open; an exception in the candidate's process is `Stop`.

        Raises `TimeoutError` at the deadline and `WorkerDiedError` where the process ends.
        """
        if tensors is not None:
            message["handles"] = [s.handle for s in tensors]
        fds = [fd for s in tensors or () for fd in s.fds]
        reply = self._worker.call(message, max(self.deadline - time.monotonic(), 0.1), fds)
        if not _is_answer(reply, message):
            raise Stop(
                Failed("rejected", f"its process sent what is no answer, while {self.stage}")
            )
        if "raised" in reply:
            log = self._worker.log_tail()
            raise Stop(raised(reply["raised"], self.stage, self._source, log))
        return reply


def check_form(described: list[dict[str, Any]], wanted: list[tuple[str, torch.Tensor]]) -> None:
    """`Stop` unless number, class, shape, dtype and device are those of the reference's outputs."""
    if len(described) != len(wanted):
        reason = f"{len(described)} output tensors; the reference returns {len(wanted)}"
        raise Stop(Failed("wrong_output", reason))
    for out, (path, reference) in zip(described, wanted, strict=True):
        for what, got, want in (
            ("shape", tuple(out["shape"]), tuple(reference.shape)),
            ("dtype", out["dtype"], str(reference.dtype).partition(".")[2]),
            ("device", out["device"], reference.device.type),
        ):
            if got != want:
                reason = f"{path} has {what} {got}; the reference's has {want}"
                raise Stop(Failed("wrong_output", reason))
        if out["class"] not in ("Tensor", "Parameter"):
            reason = f"{path} is of the tensor class {out['class']}; return a plain tensor"
            raise Stop(Failed("rejected", reason))


def _is_answer(reply: dict[str, Any], request: dict[str, Any]) -> bool:
    """Whether a reply has the form of one; the candidate's code may have written it itself."""
    match reply:
        case {"raised": {"types": [*types], "type": str(), "message": str(), "traceback": str()}}:
            return _all(types, str)
        case {"raised": _}:
            return False
    match request["op"], reply:
        case "run", {"outputs": [*outputs], **others}:
            return not others and all(_is_description(out) for out in outputs)
        case "time", {"times_us": [*times], **others}:
            believable = _all(times, float) and all(0.0 < t < math.inf for t in times)
            return not others and believable and len(times) == request["count"]
        case "load", {"changed_flags": [*names], **others}:
            return not others and _all(names, str)
        case "inspect", {"replaced": [*replaced], "meddled": [*meddled], **others}:
            return not others and _all(replaced, str) and _all(meddled, str)
        case "profile", {"calls": int(), "kernels": [*_], "triton": [*_], **others}:
            return not others  # what is in them, `read_profile` looks at
        case "launched", {"kernels": [*_], **others}:
            return not others  # what is in them, `describe` looks at
        case "run_unlaunched", {"suppressed": int(), **others}:
            return not others
        case "capture", {"works": [*_], "launched": [*_], **others}:
            return not others  # what is in these two, `offline.compiled` looks at
        case "compile", {"resources": {}, "has_allocator": bool(), **others}:
            return not others
        case "kernels", {"kernels": [*names], **others}:
            return not others and _all(names, str)
        case op, _:
            replying = ("run", "time", "load", "inspect", "profile", "launched", "run_unlaunched")
            return op not in (*replying, "capture", "compile", "kernels") and not reply


def _all(values: list[Any], kind: type) -> bool:
    return all(isinstance(value, kind) for value in values)


def _is_description(output: Any) -> bool:
    match output:
        case {
            "path": str(),
            "class": str(),
            "shape": [*_],
            "strides": [*strides],
            "dtype": str(),
            "device": str(),
        }:
            return _all(strides, int)
        case _:
            return False
