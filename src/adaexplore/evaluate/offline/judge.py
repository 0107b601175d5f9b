"""The trusted process where there is no GPU: holds the small references, decides on candidates."""

from __future__ import annotations

import time
import traceback
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadProblemError, InfrastructureError
from adaexplore.core.evaluation import (
    Cost,
    Estimate,
    Evaluation,
    Failed,
    Fault,
    Passed,
    evaluation_to_json,
)
from adaexplore.core.facts import OutputForm, ReferenceFacts
from adaexplore.core.problem import PRECISIONS, Problem
from adaexplore.evaluate.judge.conversation import Conversation
from adaexplore.evaluate.judge.verdict import decided
from adaexplore.evaluate.kernels.targets import TARGETS
from adaexplore.evaluate.offline import full_size, shrink
from adaexplore.evaluate.offline.compiled import Compiled, UncapturedError, compile_candidate
from adaexplore.evaluate.offline.estimate import Work, estimate, least
from adaexplore.evaluate.offline.memory import OutOfBoundsError
from adaexplore.evaluate.offline.shrink import Variant
from adaexplore.evaluate.offline.specialised import made_for_sizes
from adaexplore.evaluate.offline.verify import WORKER, Limit, SmallBench
from adaexplore.languages import DIALECTS
from adaexplore.sandbox.channel import Channel
from adaexplore.sandbox.jobs import run_job
from adaexplore.sandbox.limits import candidate_limits
from adaexplore.sandbox.process import ForkServer, WorkerDiedError

_JOB_S = 300.0
_MOST_ELEMENTS = 1 << 24  # what a second look may take: some ten seconds
_MOST_FLOPS = 1 << 34
_MOST_PARAMETERS = 1 << 27
SPECIALISED = "specialised-to-its-sizes"
SMALLER_BATCH = "verified-with-a-smaller-batch"
NO_KERNEL = "no-custom-kernel"
_OF_ITS_OWN = ("wrong_output", "runtime_error", "compile_error")
"""How a candidate fails at sizes it is not for; the last one in its constructor, since its kernels
compile."""
_LIKE_ITS_OWN = ("batch-only", "own")
_NOT_SEEN = "at its own sizes it was not judged, which takes the interpreter too long"
_NO_ESTIMATE = Estimate(0.0, "overhead", "")  # of what is not going to pass


def main(channel: Channel, control: Channel | None) -> None:
    """Worker entry: one "prepare", then any number of "evaluate" requests."""
    assert control is not None
    server = ForkServer(control, Path.cwd())
    bench: OfflineBench | None = None
    while True:
        request = channel.receive()
        try:
            if request["op"] == "prepare":
                problem = Problem.from_json(request["problem"])
                bench = OfflineBench(problem, server, Path.cwd(), request["memory_bytes"])
                reply: dict[str, Any] = {"facts": bench.facts().to_json()}
            else:
                assert bench is not None
                candidate = Candidate(request["source"], request["language"])
                reply = {
                    "evaluation": evaluation_to_json(
                        bench.evaluate(candidate, request["timeout_s"])
                    )
                }
        except BadProblemError as error:
            reply = {"bad_problem": str(error)}
        except InfrastructureError as error:
            reply = {"broken": str(error)}
        except Exception as error:  # noqa: BLE001 - reported as infrastructure trouble
            reply = {"broken": f"{type(error).__name__}: {error}", "log": traceback.format_exc()}
        channel.send(reply)


class OfflineBench:
    """Judges candidates of one problem, one at a time.

    Raises `BadProblemError` for a reference that does not run on tensors without data, or that
    cannot be verified against.
    """

    def __init__(
        self, problem: Problem, server: ForkServer, folder: Path, memory_bytes: int
    ) -> None:
        self._problem = problem
        self._server = server
        self._folder = folder
        self._memory_bytes = memory_bytes
        self._full = self._job(full_size, {"problem": problem.to_json()})
        if self._full["why"]:
            raise BadProblemError(self._full["why"])
        request = {
            "source": problem.source,
            "mode": problem.mode,
            "access": problem.access.to_json(),
        }
        self._variants = {v.name: v for v in shrink.from_job(self._job(shrink, request))}
        self._benches: dict[str, SmallBench | None] = {}
        self._small = self._bench("small", thorough=True)
        self._odd = self._bench_if_any("odd")

    def facts(self) -> ReferenceFacts:
        """Return the facts about the reference: an estimate in place of times."""
        reference = self._small.reference
        return ReferenceFacts(
            precision=reference.precision,
            errors=reference.errors,
            input_sets=tuple(s.name for s in reference.sets),
            parameters=self._full["parameters"],
            outputs=tuple(
                OutputForm(out["path"], tuple(out["shape"]), out["dtype"])
                for out in self._full["outputs"]
            ),
            notes=tuple(reference.notes),
            target=self._problem.target,
            estimate=self._estimate(),
            variants={v.name: _sizes(v) for v in self._variants.values() if v.replaced},
        )

    def _estimate(self) -> Estimate:
        """Of the reference as it is, by the roofline that candidates are estimated with."""
        assert self._problem.target is not None
        works = [Work(**work) for work in self._full["works"]]
        return estimate(works, TARGETS[self._problem.target])

    def _floor(self) -> Estimate:
        """The least time that the problem takes."""
        assert self._problem.target is not None
        precision, target = self._small.reference.precision, TARGETS[self._problem.target]
        return least(**self._full["least"], precision=precision, target=target)

    def evaluate(self, candidate: Candidate, timeout_s: float) -> Evaluation:
        """The verdict on one candidate, within `timeout_s` seconds of wall time."""
        started = time.monotonic()
        verdict = self._verdict(candidate, Limit.of(timeout_s))
        return replace(verdict, cost=Cost(wall_s=time.monotonic() - started))

    def _verdict(self, candidate: Candidate, limit: Limit) -> Evaluation:
        compiled = self.compiled(candidate, limit)
        if isinstance(compiled, Failed):
            return compiled
        verdict = self._at_other_sizes(candidate, limit, compiled)
        if isinstance(verdict, Passed):
            notes = [_needs(compiled), verdict.detail]
            detail = "\n".join(filter(None, notes))
            verdict = replace(verdict, detail=detail, descriptor=compiled.descriptor)
            if not compiled.resources:
                verdict = replace(verdict, labels=(*verdict.labels, NO_KERNEL))
        return verdict

    def _at_other_sizes(self, candidate: Candidate, limit: Limit, compiled: Compiled) -> Evaluation:
        """On small sizes, and on odd ones that show what hides where blocks divide sizes."""
        small = self._small.evaluate(candidate, limit, compiled.estimate)
        if isinstance(small, Failed):
            return self._at_its_sizes(candidate, limit, compiled, small)
        if self._odd is None:
            return small
        odd = self._odd.evaluate(candidate, limit, compiled.estimate)
        if isinstance(odd, Passed):
            loosest = max(small.precision, odd.precision, key=PRECISIONS.index)
            labels = tuple(dict.fromkeys((*small.labels, *odd.labels)))
            error = max(small.error, odd.error)
            return replace(small, precision=loosest, error=error, labels=labels)
        if _refuses(odd):
            return _specialised(small, odd, self._small.variant)
        hint = "right at even sizes, not at odd ones (see masks and bounds)"
        odd = replace(odd, reason=f"{hint}: {odd.reason}")
        if not made_for_sizes(candidate.source, self._odd.variant.replaced):
            return odd
        if not self._small.variant.replaced:  # the problem is small enough as it is
            return _specialised(small, odd, self._small.variant)
        return self._at_its_sizes(candidate, limit, compiled, odd)

    def compiled(self, candidate: Candidate, limit: Limit) -> Compiled | Failed:
        """What its kernels need at full size, or why that is not known."""
        limits = candidate_limits(self._memory_bytes, gpu=False)
        worker = self._server.spawn(
            WORKER,
            name="candidate",
            limits=limits,
            environment=DIALECTS[candidate.language].environment,
            confined="cpu",
            readable=self._problem.access.readable,
        )
        talk = Conversation(worker, limit.deadline, candidate.source)
        precision = self._small.reference.precision
        compile_all = partial(
            compile_candidate, talk, candidate, self._problem, precision, self._full, self._floor()
        )
        try:
            return decided(compile_all, talk, limit.timeout_s)
        except UncapturedError as error:
            uncaptured = error.failure
        finally:
            worker.end()
        small = self._small.evaluate(candidate, limit, _NO_ESTIMATE)
        if isinstance(small, Failed):  # a fault of its own, and tensors with data show it better
            return small
        reason = f"it cannot be followed at full size without a GPU: {uncaptured.reason}"
        return replace(uncaptured, status="rejected", reason=reason)

    def _at_its_sizes(
        self, candidate: Candidate, limit: Limit, compiled: Compiled, failure: Failed
    ) -> Evaluation:
        """Another look at a candidate that fails at other sizes: with its batch alone reduced, or
        where it has none, at the sizes of the problem themselves."""
        if failure.status not in _OF_ITS_OWN:
            return failure
        made = made_for_sizes(candidate.source, self._small.variant.replaced)
        if failure.status == "wrong_output" and not made:
            return failure
        benches = map(self._bench_if_any, filter(self._affords, _LIKE_ITS_OWN))
        bench = next(filter(None, benches), None)
        if bench is not None:
            verdict = bench.evaluate(candidate, limit, compiled.estimate)
            if isinstance(verdict, Passed):
                return _specialised(verdict, failure, bench.variant)
            if verdict.status in _OF_ITS_OWN:
                return verdict
        return replace(failure, reason=f"{failure.reason}; {_NOT_SEEN}") if made else failure

    def _affords(self, name: str) -> bool:
        """Whether the interpreter is done with these sizes in good time."""
        variant, parameters = self._variants.get(name), self._full["parameters"]
        return (
            variant is not None
            and variant.elements - parameters <= _MOST_ELEMENTS
            and variant.flops <= _MOST_FLOPS
            and parameters <= _MOST_PARAMETERS
        )

    def _bench(self, name: str, *, thorough: bool = False) -> SmallBench:
        if name not in self._variants:
            raise BadProblemError(
                f"{self._problem.name}.py: its sizes cannot be reduced to what can be interpreted; "
                "judge it on a GPU"
            )
        return SmallBench(
            self._problem,
            self._variants[name],
            self._server,
            self._folder,
            self._memory_bytes,
            thorough=thorough,
        )

    def _bench_if_any(self, name: str) -> SmallBench | None:
        if name not in self._benches:
            try:
                self._benches[name] = self._bench(name)
            except BadProblemError:
                self._benches[name] = None
        return self._benches[name]

    def _job(self, module: ModuleType, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return run_job(self._server, f"{module.__name__}:job", request, _JOB_S)
        except (TimeoutError, WorkerDiedError) as error:
            raise InfrastructureError(
                f"the judge is gone: the reference ended its process, or does not end: {error}"
            ) from error


def _refuses(odd: Failed) -> bool:
    """Whether host code raised, as a check of shapes does, and no kernel went astray."""
    fault = odd.feedback
    return (
        odd.status in ("runtime_error", "compile_error")
        and isinstance(fault, Fault)
        and fault.type != OutOfBoundsError.__name__
    )


def _specialised(verdict: Passed, elsewhere: Failed, seen: Variant) -> Passed:
    """A pass at the sizes of a variant by a candidate that fails at others."""
    labels = [SPECIALISED, SMALLER_BATCH] if seen.name == "batch-only" else [SPECIALISED]
    where = "the sizes of the problem"
    if seen.replaced:
        where = f"{where} with {_sizes(seen)}"
    note = f"right at {where}; elsewhere: {elsewhere.reason}"
    return replace(verdict, labels=(*verdict.labels, *labels), detail=note)


def _needs(compiled: Compiled) -> str:
    """The kernels' resources, one line each."""
    return "\n".join(
        f"{r.kernel}: {r.num_warps} warps, {r.registers} registers, {r.spill_bytes} bytes spilled, "
        f"{r.shared_bytes} bytes of shared memory"
        for r in compiled.resources
    )


def _sizes(variant: Variant) -> str:
    """Sizes such as "BATCH 4096 as 8", comma-separated."""
    return ", ".join(f"{r.name or 'size'} {r.old} as {r.new}" for r in variant.replaced)
