"""The published judge beside this package's own: a second verdict on every candidate."""

from __future__ import annotations

from dataclasses import replace

from adaexplore.core.candidate import Candidate
from adaexplore.core.evaluation import Evaluation, PublishedVerdict
from adaexplore.core.facts import ReferenceFacts
from adaexplore.core.problem import Problem, Workload
from adaexplore.core.protocols.evaluator import Evaluator, TriesUses
from adaexplore.core.uses import Use
from adaexplore.sandbox.gpus import alone
from adaexplore.sandbox.jobs import run_job
from adaexplore.sandbox.lock import device_lock
from adaexplore.sandbox.process import ForkServer, WorkerDiedError
from adaexplore.sandbox.watchdog import LimitExceededError

_JUDGE = "adaexplore.evaluate.published:judge"


def published_judge_fits(problem: Problem) -> bool:
    """Return True for a problem in KernelBench's form that is measured on this machine."""
    return problem.target is None and problem.workloads == (Workload(),)


class WithPublishedJudge:
    """An `Evaluator` whose evaluations also have the verdict of the published judge.

    That verdict decides nothing. It is asked for once: a repeated measurement has the first.
    """

    def __init__(
        self, evaluator: Evaluator, server: ForkServer, problem: Problem, timeout_s: float
    ) -> None:
        self._evaluator = evaluator
        self._server = server
        self._problem = problem
        self._timeout_s = timeout_s
        self._verdicts: dict[str, PublishedVerdict | None] = {}

    def prepare(self) -> ReferenceFacts:
        """See `Evaluator.prepare`."""
        return self._evaluator.prepare()

    def evaluate(
        self, candidate: Candidate, parent: Candidate | None = None, *, again: bool = False
    ) -> Evaluation:
        """See `Evaluator.evaluate`."""
        evaluation = self._evaluator.evaluate(candidate, parent, again=again)
        if not again and evaluation.status != "infra_error":
            self._verdicts[candidate.digest] = self._verdict(candidate)
        return replace(evaluation, published=self._verdicts.get(candidate.digest))

    def try_uses(self, candidate: Candidate) -> tuple[Use, ...]:
        """See `TriesUses.try_uses`."""
        inner = self._evaluator
        return inner.try_uses(candidate) if isinstance(inner, TriesUses) else ()

    def close(self) -> None:
        """See `Evaluator.close`."""
        self._evaluator.close()

    def _verdict(self, candidate: Candidate) -> PublishedVerdict | None:
        problem = self._problem
        device, environment = alone(problem.device)
        request = {
            "reference": problem.source,
            "candidate": candidate.source,
            "device": device,
        }
        try:
            with device_lock(problem.device, exclusive=True):
                found = run_job(
                    self._server,
                    _JUDGE,
                    request,
                    self._timeout_s,
                    environment=environment,
                    confined="cpu" if device == "cpu" else "gpu",
                    readable=problem.access.readable,
                )
        except TimeoutError:
            return PublishedVerdict(f"not judged after {self._timeout_s:g} s")
        except (WorkerDiedError, LimitExceededError) as error:
            return PublishedVerdict(f"its process ended: {error}")
        return PublishedVerdict(**found) if found else None
