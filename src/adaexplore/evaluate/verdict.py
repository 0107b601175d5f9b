"""One candidate's evaluation: load it in its own process, verify, measure, decide."""

from __future__ import annotations

import base64
import pickle
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from adaexplore.candidate import Candidate
from adaexplore.evaluate.compare import Truth, deviation, explain
from adaexplore.evaluate.conversation import Conversation, Stop, check_form
from adaexplore.evaluate.failures import died
from adaexplore.evaluate.fresh import poison
from adaexplore.evaluate.measure import CANDIDATE, measure
from adaexplore.evaluate.precision import up_to
from adaexplore.evaluate.reference import Reference
from adaexplore.evaluate.tensors import share
from adaexplore.evaluate.timed import TimedCandidate
from adaexplore.evaluate.truth import CheckedSet
from adaexplore.evaluate.worker import Slot
from adaexplore.evaluation import Cost, Evaluation, Failed, Passed, Timing
from adaexplore.problem import PRECISIONS, Precision
from adaexplore.sandbox.channel import MAX_FDS
from adaexplore.sandbox.device_lock import device_lock
from adaexplore.sandbox.instance import Inputs, map_tensors
from adaexplore.sandbox.limits import Limits
from adaexplore.sandbox.process import ForkServer, WorkerDiedError

WORKER = "adaexplore.evaluate.worker:main"
_FILE_BYTES = 1 << 30


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
        worker = self._server.spawn(WORKER, name="candidate", limits=self._limits)
        talk = Conversation(worker, started + timeout_s)
        run = _Run(self._reference, self._buffers, candidate, talk)
        try:
            verdict: Evaluation = run.verdict()
        except Stop as stop:
            verdict = stop.verdict
        except TimeoutError:
            verdict = Failed("timeout", f"not done after {timeout_s:g} s, while {talk.stage}")
        except WorkerDiedError as error:
            verdict = died(error, talk.stage)
        finally:
            worker.kill()
            shutil.rmtree(worker.folder, ignore_errors=True)
        if isinstance(verdict, Passed) and verdict.measured:
            verdict = self._without_brake(verdict, verdict.measured)
        if self._reference.mend_inputs() and verdict.status in ("passed", "wrong_output"):
            verdict = Failed("wrong_output", "forward() changes its inputs in place")
        cost = Cost(wall_s=time.monotonic() - started, device_s=run.device_s)
        return replace(verdict, cost=cost)

    def _without_brake(self, verdict: Passed, timing: Timing) -> Evaluation:
        """Refuses a candidate beside which the baselines were slow, if they are fast without it."""
        with device_lock(self._reference.problem.device, exclusive=True):
            if not self._reference.baselines_slowed(timing.baselines_us):
                return verdict
        return Failed("rejected", "the baselines ran much slower beside it than without it")


class _Run:
    """The evaluation of one candidate, step by step."""

    def __init__(
        self,
        reference: Reference,
        buffers: list[Any],
        candidate: Candidate,
        talk: Conversation,
    ) -> None:
        self._reference = reference
        self._buffers = buffers
        self._candidate = candidate
        self._talk = talk
        self._taken: Precision = PRECISIONS[0]
        self._error = 0.0
        self._labels: list[str] = []
        self.device_s = 0.0

    def verdict(self) -> Passed:
        """Passed, or `Stop`, `TimeoutError`, `WorkerDiedError`."""
        self._load()
        with self._on_device(exclusive=False):
            self._verify()
        with self._on_device(exclusive=True):
            timing = self._measure()
        self._inspect()
        return Passed(self._taken, self._error, timing, labels=tuple(self._labels))

    def _load(self) -> None:
        """Imports, constructs and compiles: everything up to the end of a first call."""
        reference, problem, talk = self._reference, self._reference.problem, self._talk
        talk.stage = "importing and constructing"
        reply = talk.ask(
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
        if reply["changed_flags"]:  # the process puts them back before any call
            self._labels.append("sets-global-flags")
        talk.stage = "receiving parameters and inputs"
        names = list(reference.parameters)
        for some in (names[i : i + MAX_FDS] for i in range(0, len(names), MAX_FDS)):
            tensors = [reference.parameters[name] for name in some]
            talk.ask({"op": "parameters", "names": some}, tensors)
        for checked in reference.sets:
            talk.ask({"op": "inputs", "form": _form(checked.inputs)}, checked.shared)
        talk.ask({"op": "outputs"}, self._buffers)
        fresh = reference.fresh
        rings = [ring.memory for ring in (*fresh.rings, *fresh.out_rings)]
        slots = {"op": "slots", "count": fresh.count, "inputs": len(fresh.rings)}
        talk.ask(slots | {"form": _form(fresh.slots[0])}, rings)
        self._inspect()
        talk.stage = "its first call"
        talk.ask({"op": "run", "set": 0})

    def _verify(self) -> None:
        """Every output is compared after the call that follows it."""
        sets = self._reference.sets
        for i, checked in enumerate(sets):
            self._talk.stage = f"running on the inputs {checked.name!r}"
            for shared in self._buffers:
                poison(shared.tensor)
            self._synchronize()
            reply = self._talk.ask({"op": "run", "set": (i + 1) % len(sets)})
            self._check(reply, checked)

    def _measure(self) -> Timing:
        reference = self._reference
        self._talk.stage = "being timed"
        objection = None
        for _ in range(2):  # the machine's mood does not come twice, a cheat does
            timed = TimedCandidate(self._talk, reference, self._check_output)
            parties = {CANDIDATE: timed.block} | reference.baselines.blocks(reference.fresh)
            timing = measure(parties, most_calls=reference.fresh.count)
            objection = timed.objection()
            if objection is None:
                return timing
        raise Stop(Failed("rejected", objection or ""))

    def _inspect(self) -> None:
        """Asks what the candidate's code has changed in its process."""
        found = self._talk.ask({"op": "inspect"})
        if found["replaced"]:
            reason = f"it replaces {', '.join(found['replaced'][:3])}; leave PyTorch and Python be"
            raise Stop(Failed("rejected", reason))
        if found["meddled"]:
            reason = f"forward() changes {', '.join(found['meddled'][:3])} for the whole process"
            raise Stop(Failed("rejected", reason))

    def _synchronize(self) -> None:
        if self._buffers[0].tensor.is_cuda:
            torch.cuda.synchronize()

    def _check(self, reply: dict[str, Any], checked: CheckedSet) -> None:
        """Compares what stands in the buffers with the truth; `Stop` if it is wrong."""
        check_form(reply["outputs"], self._reference.outputs)
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
            self._talk.deadline += since - asked  # the candidate is not to blame for the queue
            try:
                yield
            finally:
                self.device_s += time.monotonic() - since


def _form(inputs: Inputs) -> str:
    """Arguments with every tensor replaced by its number, as text."""
    count = 0

    def to_slot(_: torch.Tensor) -> Any:
        nonlocal count
        count += 1
        return Slot(count - 1)

    return _pickled(map_tensors(to_slot, inputs))


def _pickled(value: Any) -> str:
    return base64.b64encode(pickle.dumps(value)).decode()
