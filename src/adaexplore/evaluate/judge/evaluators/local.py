"""The evaluator on this machine: a judge process behind the `Evaluator` Protocol."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from adaexplore.core import codec
from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadProblemError, InfrastructureError
from adaexplore.core.problem import Problem
from adaexplore.core.verdict.evaluation import Evaluation, Failed
from adaexplore.core.verdict.evaluation_json import evaluation_from_json
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.core.verdict.uses import Use
from adaexplore.evaluate.judge.reasons import with_language
from adaexplore.evaluate.kernels.build.extensions import BUILD_S
from adaexplore.evaluate.wire.judge_messages import (
    BadProblem,
    Broken,
    Evaluate,
    Prepare,
    TryUses,
)
from adaexplore.evaluate.wire.messages import Request, encode, read_reply
from adaexplore.languages import DIALECTS
from adaexplore.sandbox.gpus import alone
from adaexplore.sandbox.process import ForkServer, Worker, WorkerDiedError
from adaexplore.sandbox.user.hang import hung_at

_Reply = TypeVar("_Reply")

JUDGE = "adaexplore.evaluate.judge.judge:main"
_PREPARE_TIMES = 15  # the limit of a candidate: a reference runs often, and is compiled often
_GRACE_S = 300.0  # for the judge to wait for the device and to clean up
_TRIALS_S = 1200.0  # on a GPU: for the trials of all baselines, or to build them again
_MOST_BUILDS = 2  # the judge may try a candidate twice
_ASSERTION = "device-side assert"  # of a kernel of the reference, after which a GPU process is lost
_CLOSED = "the evaluator was closed while it was at work"


EXAMINE_JOB = "adaexplore.evaluate.judge.examine:job"
"""Job of a confined worker that judges a reference without timing it (see `examine.job`)."""


class LocalEvaluator:
    """Judges in processes of this machine, one candidate at a time; see `core.evaluator`.

    `timeout_s` bounds one candidate's wall time, `memory_bytes` its private memory on the CPU. A
    `brief` evaluator gives verdicts with eager as the only baseline, and rough times where a
    candidate has no parent to be timed beside. An evaluator `beside` others of the same problem
    cannot be prepared where a GPU has little memory left for them all. A lost judge (a driver
    fault, the out-of-memory killer) is replaced once per candidate.
    """

    judge_entry = JUDGE

    def __init__(
        self,
        server: ForkServer,
        problem: Problem,
        *,
        timeout_s: float,
        memory_bytes: int,
        brief: bool = False,
        beside: int = 0,
    ) -> None:
        self._server = server
        device, self._environment = alone(problem.device)
        self._problem = replace(problem, device=device)
        self._timeout_s = timeout_s
        self._memory_bytes = memory_bytes
        self._brief = brief
        self._beside = beside
        builds = DIALECTS[problem.language].built_ahead
        self._trials_s = 0.0 if device == "cpu" or brief else _TRIALS_S
        self._grace_s = _GRACE_S + (_MOST_BUILDS * BUILD_S if builds else 0.0)
        self._judge: Worker | None = None
        self._own_only = False
        self._facts = ReferenceFacts()

    @property
    def longest_s(self) -> float:
        """The longest that a call may take, where it loses one judge and needs another."""
        preparing_s = _PREPARE_TIMES * self._timeout_s + self._grace_s + self._trials_s
        return 2 * (preparing_s + self._timeout_s + self._grace_s + self._trials_s)

    def prepare(self) -> ReferenceFacts:
        """See `Evaluator.prepare`."""
        if self._judge is None:
            try:
                self._facts = self._prepared()
            except InfrastructureError as error:
                if self._own_only or _ASSERTION not in str(error):
                    raise
                self._own_only = True
                self._facts = self._prepared()
        return self._facts

    def _prepared(self) -> ReferenceFacts:
        """Start a judge, and return the facts about the reference that it prepares."""
        judge = self._server.spawn(
            self.judge_entry, name="judge", environment=self._environment, may_spawn=True
        )
        self._judge = judge
        request = Prepare(
            self._problem.to_json(),
            self._memory_bytes,
            self._brief,
            self._timeout_s,
            self._beside,
            self._own_only,
        )
        limit_s = _PREPARE_TIMES * self._timeout_s + self._grace_s + self._trials_s
        try:
            return ReferenceFacts.from_json(self._ask(judge, request, limit_s).facts)
        except BaseException:  # Ctrl-C too: this judge has no reference to judge by
            self.close()
            raise

    def evaluate(
        self, candidate: Candidate, parent: Candidate | None = None, *, again: bool = False
    ) -> Evaluation:
        """See `Evaluator.evaluate`."""
        request = Evaluate(
            source=candidate.source,
            language=candidate.language,
            timeout_s=self._timeout_s,
            parent=parent.source if parent else None,
            again=again,
        )
        limit_s = self._timeout_s + self._grace_s + (self._trials_s if again else 0.0)
        for last_try in (False, True):
            self.prepare()
            judge = self._judge
            if judge is None:
                raise InfrastructureError(_CLOSED)
            try:
                reply = self._ask(judge, request, limit_s)
            except InfrastructureError as error:
                if self._judge is not judge:
                    raise InfrastructureError(_CLOSED) from error
                self.close()
                if last_try:
                    return Failed("infra_error", str(error))
            else:
                return with_language(evaluation_from_json(reply.evaluation), candidate)
        raise AssertionError("unreachable")

    def try_uses(self, candidate: Candidate) -> tuple[Use, ...]:
        """See `TriesUses.try_uses`; none where the trials take the judge down."""
        self.prepare()
        judge = self._judge
        if judge is None:
            raise InfrastructureError(_CLOSED)
        request = TryUses(candidate.source, candidate.language, self._timeout_s)
        try:
            return self._ask(judge, request, 2 * self._timeout_s + self._grace_s).uses
        except InfrastructureError as error:
            if self._judge is not judge:
                raise InfrastructureError(_CLOSED) from error
            self.close()
            return ()

    def close(self) -> None:
        """See `Evaluator.close`; a call that another thread is waiting for ends with an error."""
        judge, self._judge = self._judge, None
        if judge is not None:
            judge.kill()

    def _ask(self, judge: Worker, request: Request[_Reply], timeout_s: float) -> _Reply:
        try:
            reply = judge.call(encode(request), timeout_s)
        except TimeoutError as error:
            raise InfrastructureError(f"the judge did not answer in {timeout_s:g} s") from error
        except WorkerDiedError as error:
            place = hung_at(error.log)
            if place is not None:
                where = f"{self._problem.name}.py" + (f", {place}" if place else "")
                raise BadProblemError(
                    f"{where}: a call of the reference did not end within {self._timeout_s:g} s; "
                    "reduce its sizes, or raise the limit with --set timeout_s"
                ) from error
            lines = error.log.strip().splitlines()
            raise InfrastructureError(f"the judge is gone: {error}; {lines[-1:]}") from error
        if "bad_problem" in reply:
            raise BadProblemError(codec.read(BadProblem, reply).bad_problem)
        if "broken" in reply:
            raise InfrastructureError(codec.read(Broken, reply).broken)
        return read_reply(request, reply)
