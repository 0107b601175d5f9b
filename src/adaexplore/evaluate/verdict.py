"""One candidate's evaluation: load it in its own process, verify, measure, decide."""

from __future__ import annotations

import base64
import math
import pickle
import random
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from adaexplore.candidate import Candidate
from adaexplore.evaluate.compare import Truth, deviation, explain
from adaexplore.evaluate.failures import died, raised
from adaexplore.evaluate.measure import CANDIDATE, measure
from adaexplore.evaluate.precision import up_to
from adaexplore.evaluate.reference import Reference
from adaexplore.evaluate.tensors import SharedTensor, share
from adaexplore.evaluate.truth import CheckedSet
from adaexplore.evaluate.worker import Slot
from adaexplore.evaluation import Cost, Evaluation, Failed, Passed, Timing
from adaexplore.problem import PRECISIONS, Precision
from adaexplore.sandbox.channel import MAX_FDS
from adaexplore.sandbox.device_lock import device_lock
from adaexplore.sandbox.instance import map_tensors
from adaexplore.sandbox.limits import Limits
from adaexplore.sandbox.process import ForkServer, Worker, WorkerDiedError

WORKER = "adaexplore.evaluate.worker:main"
_FILE_BYTES = 1 << 30


class Stop(Exception):  # noqa: N818 - not an error: it carries a verdict out of nested calls
    """Ends an evaluation with its verdict."""

    def __init__(self, verdict: Failed) -> None:
        self.verdict = verdict
        super().__init__(verdict.reason)


class Bench:
    """Evaluates candidates of one reference, one at a time."""

    def __init__(self, reference: Reference, server: ForkServer, memory_bytes: int) -> None:
        self._reference = reference
        self._server = server
        on_cpu = reference.problem.device == "cpu"
        self._limits = Limits(memory_bytes=memory_bytes if on_cpu else None, file_bytes=_FILE_BYTES)
        self._buffers = [share(t.contiguous()) for _, t in reference.outputs]

    def evaluate(self, candidate: Candidate, timeout_s: float) -> Evaluation:
        """The verdict on one candidate, within `timeout_s` seconds of wall time."""
        started = time.monotonic()
        run = _Run(self._reference, self._buffers, candidate, started + timeout_s)
        worker = self._server.spawn(WORKER, name="candidate", limits=self._limits)
        try:
            verdict: Evaluation = run.verdict(worker)
        except Stop as stop:
            verdict = stop.verdict
        except TimeoutError:
            verdict = Failed("timeout", f"not done after {timeout_s:g} s, while {run.stage}")
        except WorkerDiedError as error:
            verdict = died(error, run.stage)
        finally:
            worker.kill()
            shutil.rmtree(worker.folder, ignore_errors=True)
        if self._reference.mend_inputs() and verdict.status in ("passed", "wrong_output"):
            verdict = Failed("wrong_output", "forward() changes its inputs in place")
        cost = Cost(wall_s=time.monotonic() - started, device_s=run.device_s)
        return replace(verdict, cost=cost)


class _Run:
    """The evaluation of one candidate, step by step."""

    def __init__(
        self,
        reference: Reference,
        buffers: list[SharedTensor],
        candidate: Candidate,
        deadline: float,
    ) -> None:
        self._reference = reference
        self._buffers = buffers
        self._candidate = candidate
        self._deadline = deadline
        self._rng = random.Random()  # which timed output is checked must not be guessable
        self._taken: Precision = PRECISIONS[0]
        self._error = 0.0
        self.device_s = 0.0
        self.stage = "loading"

    def verdict(self, worker: Worker) -> Passed:
        """Passed, or `Stop`, `TimeoutError`, `WorkerDiedError`."""
        self._load(worker)
        with self._on_device(exclusive=False):
            for i, checked in enumerate(self._reference.sets):
                self._verify(worker, i, checked)
        with self._on_device(exclusive=True):
            timing = self._measure(worker)
        return Passed(self._taken, self._error, timing)

    def _load(self, worker: Worker) -> None:
        """Imports, constructs and compiles: everything up to the end of a first call."""
        reference, problem = self._reference, self._reference.problem
        self.stage = "importing and constructing"
        self._ask(
            worker,
            {
                "op": "load",
                "source": self._candidate.source,
                "device": problem.device,
                "seed": problem.seed,
                "mode": problem.mode,
                "precision": reference.precision,
                "init": _pickled(reference.instance.init),
            },
        )
        self.stage = "receiving parameters and inputs"
        names = list(reference.parameters)
        for some in (names[i : i + MAX_FDS] for i in range(0, len(names), MAX_FDS)):
            tensors = [reference.parameters[name] for name in some]
            self._ask(worker, {"op": "parameters", "names": some}, tensors)
        for checked in reference.sets:
            count = iter(range(len(checked.shared)))

            def to_slot(_: torch.Tensor, numbers: Any = count) -> Any:
                return Slot(next(numbers))

            form = _pickled(map_tensors(to_slot, checked.inputs))
            self._ask(worker, {"op": "inputs", "form": form}, checked.shared)
        self._ask(worker, {"op": "outputs"}, self._buffers)
        self.stage = "its first call"
        self._ask(worker, {"op": "run", "set": 0})

    def _verify(self, worker: Worker, index: int, checked: CheckedSet) -> None:
        self.stage = f"running on the inputs {checked.name!r}"
        self._poison()
        reply = self._ask(worker, {"op": "run", "set": index})
        self._check(reply, checked)

    def _measure(self, worker: Worker) -> Timing:
        self.stage = "being timed"
        reference = self._reference
        own = [i for i, s in enumerate(reference.sets) if s.own]

        def candidate_block(count: int) -> list[float]:
            keep = self._rng.randrange(count)
            self._poison()
            reply = self._ask(worker, {"op": "time", "count": count, "sets": own, "keep": keep})
            self._check(reply, reference.sets[own[keep % len(own)]])
            return [float(t) for t in reply["times_us"]]

        return measure({CANDIDATE: candidate_block} | reference.baselines.blocks())

    def _ask(
        self, worker: Worker, message: dict[str, Any], tensors: list[SharedTensor] | None = None
    ) -> dict[str, Any]:
        """One request to the candidate's process; an exception there ends the evaluation."""
        if tensors is not None:
            message["handles"] = [s.handle for s in tensors]
        fds = [fd for s in tensors or () for fd in s.fds]
        reply = worker.call(message, max(self._deadline - time.monotonic(), 0.1), fds)
        if not _is_answer(reply, message):
            raise Stop(
                Failed("rejected", f"its process sent what is no answer, while {self.stage}")
            )
        if "raised" in reply:
            raise Stop(raised(reply["raised"], self.stage))
        return reply

    def _poison(self) -> None:
        """Fills the output buffers with what no honest result holds."""
        for shared in self._buffers:
            t = shared.tensor
            if t.is_floating_point() or t.is_complex():
                t.fill_(float("nan"))
            elif t.dtype is torch.bool:
                t.logical_not_()
            else:
                t.fill_(torch.iinfo(t.dtype).min)
        if self._buffers[0].tensor.is_cuda:
            torch.cuda.synchronize()

    def _check(self, reply: dict[str, Any], checked: CheckedSet) -> None:
        """Compares what stands in the buffers with the truth; `Stop` if it is wrong."""
        _check_form(reply["outputs"], self._reference.outputs)
        for shared, truth in zip(self._buffers, checked.truths, strict=True):
            self._check_output(shared.tensor, truth, checked.name)

    def _check_output(self, out: torch.Tensor, truth: Truth, where: str) -> None:
        found = deviation(out, truth.value)
        self._error = max(self._error, found.norm)
        reached = truth.classify(found)
        if reached is None or reached not in up_to(self._reference.precision):
            detail = f"{truth.path} on the inputs {where!r}: {explain(out, truth.value)}"
            bound = truth.bounds[max(truth.bounds, key=PRECISIONS.index)]
            reason = (
                f"{truth.path} is off by {found.norm:.2g} (relative, against float64); "
                f"{self._reference.precision} allows {bound.norm:.2g}"
            )
            if found.norm <= bound.norm:
                reason = (
                    f"{truth.path} is right on average, but one element is off by "
                    f"{found.element:.2g} of the output's scale; "
                    f"{self._reference.precision} allows {bound.element:.2g}"
                )
            raise Stop(Failed("wrong_output", reason, detail, error=found.norm))
        if PRECISIONS.index(reached) > PRECISIONS.index(self._taken):
            self._taken = reached

    @contextmanager
    def _on_device(self, *, exclusive: bool) -> Iterator[None]:
        """Holds the device's lock and books the time it was held."""
        asked = time.monotonic()
        with device_lock(self._reference.problem.device, exclusive=exclusive):
            since = time.monotonic()
            self._deadline += since - asked  # the candidate is not to blame for the queue
            try:
                yield
            finally:
                self.device_s += time.monotonic() - since


def _is_answer(reply: dict[str, Any], request: dict[str, Any]) -> bool:
    """Whether a reply has the form of one; the candidate's code may have written it itself."""
    match reply:
        case {"raised": {"types": [*types], "type": str(), "message": str(), "traceback": str()}}:
            return all(isinstance(name, str) for name in types)
        case {"raised": _}:
            return False
        case {"outputs": [*outputs]}:
            described = all(_is_description(out) for out in outputs)
            times, count = reply.get("times_us", []), request.get("count", 0)
            return (
                described
                and isinstance(times, list)
                and len(times) == count
                and all(isinstance(t, float) and 0.0 < t < math.inf for t in times)
            )
        case _:
            return request["op"] not in ("run", "time")


def _is_description(output: Any) -> bool:
    match output:
        case {"path": str(), "shape": [*_], "dtype": str(), "device": str()}:
            return True
        case _:
            return False


def _check_form(described: list[dict[str, Any]], wanted: list[tuple[str, torch.Tensor]]) -> None:
    """Number, shape, dtype and device of the outputs must be the reference's."""
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


def _pickled(value: Any) -> str:
    return base64.b64encode(pickle.dumps(value)).decode()
