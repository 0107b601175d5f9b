"""The trusted process without a GPU: it holds small references and judges candidates."""

from __future__ import annotations

import time
import traceback
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from adaexplore.core import codec
from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadProblemError, InfrastructureError
from adaexplore.core.problem import PRECISIONS, Problem
from adaexplore.core.verdict.evaluation import (
    LAUNCHES_NONE,
    Cost,
    Estimate,
    Evaluation,
    Failed,
    Fault,
    Passed,
)
from adaexplore.core.verdict.evaluation_json import evaluation_to_json
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.evaluate.judge.conversation import Conversation
from adaexplore.evaluate.judge.diagnosis.waiting import waiting_labels
from adaexplore.evaluate.judge.verdict import decided
from adaexplore.evaluate.kernels.profile import DECOY_SHARE
from adaexplore.evaluate.kernels.targets import TARGETS
from adaexplore.evaluate.offline import full_size, shrink
from adaexplore.evaluate.offline.compiled import Compiled, UncapturedError, compile_candidate
from adaexplore.evaluate.offline.estimate import combined, estimate
from adaexplore.evaluate.offline.memory import OutOfBoundsError
from adaexplore.evaluate.offline.reference_sizes import SizeVariant
from adaexplore.evaluate.offline.specialised import made_for_sizes
from adaexplore.evaluate.offline.verify import WORKER, Estimates, Limit, SmallBench
from adaexplore.evaluate.wire.judge_messages import (
    BadProblem,
    Broken,
    Evaluate,
    Evaluated,
    Prepare,
    ReferencePrepared,
)
from adaexplore.evaluate.wire.messages import decode
from adaexplore.languages import DIALECTS
from adaexplore.sandbox.channel import Channel
from adaexplore.sandbox.jobs import run_job
from adaexplore.sandbox.process import ForkServer, WorkerDiedError
from adaexplore.sandbox.walls.limits import candidate_limits

_JOB_S = 300.0
_MAX_ELEMENTS = 1 << 24  # limits of a second verification: some ten seconds
_MAX_FLOPS = 1 << 34
_MAX_PARAMETERS = 1 << 27
SPECIALISED = "specialised-to-its-sizes"
SMALLER_BATCH = "verified-with-a-smaller-batch"
NO_KERNEL = "no-custom-kernel"
NEGLIGIBLE = "own-kernels-negligible"
_NOT_OWN_WORK = {
    "decoy": "its result is the same without its own kernels",
    NO_KERNEL: LAUNCHES_NONE,
    NEGLIGIBLE: "its own kernels do hardly any of the work",
}
"""Labels that refuse a candidate where own kernels are required, with the reasons."""
_FAILURES_BY_SIZE = ("wrong_output", "runtime_error", "compile_error")
"""Failures of a candidate at sizes that it is not made for.

A compile error comes from its constructor, since its kernels compile."""
_NEAREST_VARIANTS = ("batch-only", "own")
_NOT_JUDGED = "at its own sizes it was not judged, which takes the interpreter too long"
_NO_ESTIMATE = Estimate(0.0, "overhead", "")  # for a candidate that cannot pass


def main(channel: Channel, control: Channel | None) -> None:
    """Answer one `Prepare`, then any number of `Evaluate` requests; a worker's entry."""
    assert control is not None
    server = ForkServer(control, Path.cwd())
    bench: OfflineBench | None = None
    while True:
        request = decode(channel.receive())
        try:
            if isinstance(request, Prepare):
                problem = Problem.from_json(request.problem)
                bench = OfflineBench(problem, server, Path.cwd(), request.memory_bytes)
                reply: object = ReferencePrepared(bench.facts().to_json())
            else:
                assert isinstance(request, Evaluate)
                assert bench is not None
                candidate = Candidate(request.source, request.language)
                reply = Evaluated(evaluation_to_json(bench.evaluate(candidate, request.timeout_s)))
        except BadProblemError as error:
            reply = BadProblem(str(error))
        except InfrastructureError as error:
            reply = Broken(str(error))
        except Exception as error:  # noqa: BLE001 - reported as infrastructure trouble
            reply = Broken(f"{type(error).__name__}: {error}", traceback.format_exc())
        channel.send(codec.write(reply))


class OfflineBench:
    """The judge of candidates of one problem, one at a time.

    Raises `BadProblemError` for a reference that does not run on tensors without data, or whose
    outputs cannot verify a candidate.
    """

    def __init__(
        self, problem: Problem, server: ForkServer, folder: Path, memory_bytes: int
    ) -> None:
        self._problem = problem
        self._server = server
        self._folder = folder
        self._memory_bytes = memory_bytes
        request = {"problem": problem.to_json()}
        self._full = codec.read(full_size.FullSize, self._job(full_size, request))
        if self._full.why:
            raise BadProblemError(self._full.why)
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
            bounds=reference.first.bounds,
            input_sets=tuple(name for w in reference.workloads for name in w.set_names),
            parameters=self._full.parameters,
            outputs=self._full.workloads[0].outputs,
            inputs=self._full.workloads[0].forms,
            notes=tuple(reference.notes),
            target=self._problem.target,
            estimate=self._estimate(),
            variants={v.name: _sizes(v) for v in self._variants.values() if v.replaced},
        )

    def _estimate(self) -> Estimate:
        """Estimate the unchanged reference with the roofline that is used for candidates."""
        assert self._problem.target is not None
        target = TARGETS[self._problem.target]
        return combined([estimate(workload.works, target) for workload in self._full.timed])

    def evaluate(self, candidate: Candidate, timeout_s: float) -> Evaluation:
        """Return the verdict on one candidate, within `timeout_s` seconds of wall time."""
        started = time.monotonic()
        verdict = self._verdict(candidate, Limit.of(timeout_s))
        return replace(verdict, cost=Cost(wall_s=time.monotonic() - started))

    def _verdict(self, candidate: Candidate, limit: Limit) -> Evaluation:
        compiled = self.compiled(candidate, limit)
        if isinstance(compiled, Failed):
            return compiled
        if not DIALECTS[candidate.language].interpreted:
            return self._not_run(candidate, compiled)
        verdict = self._at_other_sizes(candidate, limit, compiled)
        if isinstance(verdict, Passed):
            labels = _own_work(compiled)
            idle = [name for name in (*verdict.labels, *labels) if name in _NOT_OWN_WORK]
            if idle and self._problem.checks.require_custom:
                return Failed("rejected", _NOT_OWN_WORK[idle[0]])
            notes = [_needs(compiled), verdict.detail]
            detail = "\n".join(filter(None, notes))
            labels = (*verdict.labels, *labels, *waiting_labels(self._problem, candidate))
            verdict = replace(verdict, detail=detail, labels=labels, descriptor=compiled.descriptor)
        return verdict

    def _not_run(self, candidate: Candidate, compiled: Compiled) -> Failed:
        """Return the verdict on a candidate that compiles and that only a GPU can run."""
        if self._problem.checks.require_custom and not compiled.resources:
            return Failed("rejected", _NOT_OWN_WORK[NO_KERNEL])
        title, count = DIALECTS[candidate.language].title, len(compiled.resources)
        compiles = f"{count} kernel{' compiles' if count == 1 else 's compile'}"
        found = f"{compiles} for {self._problem.target}" if count else _NOT_OWN_WORK[NO_KERNEL]
        reason = (
            f"{found}; not run here: {title} runs on a GPU only, so nothing is known of its results"
        )
        return Failed("not_run", reason, _needs(compiled), loaded=True)

    def _at_other_sizes(self, candidate: Candidate, limit: Limit, compiled: Compiled) -> Evaluation:
        """Verify at small sizes and at odd sizes, which blocks do not divide."""
        small = self._small.evaluate(candidate, limit, Estimates.of(compiled))
        if isinstance(small, Failed):
            return self._at_its_sizes(candidate, limit, compiled, small)
        if self._odd is None:
            return small
        odd = self._odd.evaluate(candidate, limit, Estimates.of(compiled))
        if isinstance(odd, Passed):
            loosest = max(small.precision, odd.precision, key=PRECISIONS.index)
            labels = tuple(dict.fromkeys((*small.labels, *odd.labels)))
            worse = small if small.error >= odd.error else odd
            return replace(
                small,
                precision=loosest,
                error=worse.error,
                absolute_error=worse.absolute_error,
                labels=labels,
            )
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
        """Compile at full size; return the failure if that is impossible."""
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
            compile_candidate, talk, candidate, self._problem, precision, self._full
        )
        try:
            return decided(compile_all, talk, limit.timeout_s)
        except UncapturedError as error:
            uncaptured = error.failure
        finally:
            worker.end()
        if not DIALECTS[candidate.language].interpreted:
            return uncaptured
        small = self._small.evaluate(candidate, limit, Estimates(_NO_ESTIMATE))
        if isinstance(small, Failed):  # its own fault, which tensors with data show better
            return small
        reason = f"it cannot be followed at full size without a GPU: {uncaptured.reason}"
        return replace(uncaptured, status="rejected", reason=reason)

    def _at_its_sizes(
        self, candidate: Candidate, limit: Limit, compiled: Compiled, failure: Failed
    ) -> Evaluation:
        """Judge a candidate again that fails at other sizes.

        Only the batch is reduced; without a batch, the problem's own sizes are used.
        """
        if failure.status not in _FAILURES_BY_SIZE:
            return failure
        is_specialised = made_for_sizes(candidate.source, self._small.variant.replaced)
        if failure.status == "wrong_output" and not is_specialised:
            return failure
        benches = map(self._bench_if_any, filter(self._affords, _NEAREST_VARIANTS))
        bench = next(filter(None, benches), None)
        if bench is not None:
            verdict = bench.evaluate(candidate, limit, Estimates.of(compiled))
            if isinstance(verdict, Passed):
                return _specialised(verdict, failure, bench.variant)
            if verdict.status in _FAILURES_BY_SIZE:
                return verdict
        if is_specialised:
            return replace(failure, reason=f"{failure.reason}; {_NOT_JUDGED}")
        return failure

    def _affords(self, name: str) -> bool:
        """Return True if the interpreter can run these sizes in time."""
        variant, parameters = self._variants.get(name), self._full.parameters
        return (
            variant is not None
            and variant.elements - parameters <= _MAX_ELEMENTS
            and variant.flops <= _MAX_FLOPS
            and parameters <= _MAX_PARAMETERS
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
    """Return True if host code raised, as a check of shapes does, and no access left its memory."""
    fault = odd.feedback
    return (
        odd.status in ("runtime_error", "compile_error")
        and isinstance(fault, Fault)
        and fault.type != OutOfBoundsError.__name__
    )


def _specialised(verdict: Passed, elsewhere: Failed, variant: SizeVariant) -> Passed:
    """Label the pass at a variant's sizes of a candidate that fails at other sizes."""
    labels = [SPECIALISED, SMALLER_BATCH] if variant.name == "batch-only" else [SPECIALISED]
    where = "the sizes of the problem"
    if variant.replaced:
        where = f"{where} with {_sizes(variant)}"
    note = f"right at {where}; elsewhere: {elsewhere.reason}"
    return replace(verdict, labels=(*verdict.labels, *labels), detail=note)


def _own_work(compiled: Compiled) -> tuple[str, ...]:
    """Label a candidate whose own kernels do none of the work, or hardly any."""
    if not compiled.resources:
        return (NO_KERNEL,)
    return (NEGLIGIBLE,) if compiled.custom_share < DECOY_SHARE else ()


def _needs(compiled: Compiled) -> str:
    """Return the kernels' resources, one line each."""
    return "\n".join(
        f"{r.kernel}: {r.num_warps} warps, {r.registers} registers, {r.spill_bytes} bytes spilled, "
        f"{r.shared_bytes} bytes of shared memory"
        for r in compiled.resources
    )


def _sizes(variant: SizeVariant) -> str:
    """Return the replaced sizes, such as "BATCH 4096 as 8", comma-separated."""
    return ", ".join(f"{r.name or 'size'} {r.old} as {r.new}" for r in variant.replaced)
