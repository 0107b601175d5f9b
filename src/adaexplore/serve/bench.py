"""Judging answers to a benchmark at a service: a job for each problem, on the client's side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from adaexplore.core.bench import BenchEntry, BenchVerdict
from adaexplore.core.errors import AdaExploreError, BadInputError
from adaexplore.core.problem import Precision
from adaexplore.core.settings.config import Config
from adaexplore.core.settings.configure import option_name
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.core.verdict.evaluation_json import evaluation_from_json
from adaexplore.run.api import read_source
from adaexplore.run.bench.judge import AnswerGroup, Verdicts, verdict_on
from adaexplore.serve.client import Client, ServiceError, problem_of
from adaexplore.serve.messages import JobEvent, JobInfo
from adaexplore.serve.options import OPEN

_OURS = {"run", "budget", "parallel"}
"""Fields of `Config` that are for this side alone."""
_MOST_ANSWERS = 50
"""Answers in one job: the service's limit is for their text together too."""
_TOO_MANY = 429
_PAUSE_S = 60.0
"""Time after which a request beyond a quota or a rate is sent again, in seconds."""
_PATIENCE_S = 600.0
"""Time for which a service may be away in the middle, in seconds."""
_STOP_S = 5.0
Connect = Callable[[float], AbstractContextManager[Client]]
"""Opens a client that waits for the service as many seconds."""
_PREPARED = ("device", "problem_digest", "labels")


class ServiceGroupJudge:
    """Has a service judge the answers in the folder `path`; it chooses the devices.

    A request beyond a quota or a rate of the user is sent again after a minute, which `say` is
    told. Raises as `Client` does, and `BadInputError` for an option that no service takes.
    """

    def __init__(
        self, path: Path, config: Config, connect: Connect, say: Callable[[str], None]
    ) -> None:
        require_open(config)
        self._path = path
        self._options = config.model_dump(mode="json", include=config.model_fields_set - _OURS)
        self._connect = connect
        self._say = say
        self._stopped = threading.Event()
        self._at_work: set[str] = set()
        with connect(_STOP_S) as client:
            self._device = client.health().device
        self.has_gpu = self._device != "cpu"

    @contextmanager
    def device(self) -> Iterator[str]:
        """See `GroupJudge`."""
        yield self._device

    def judge(self, group: AnswerGroup, precision: Precision, device: str) -> Verdicts:
        """See `GroupJudge`."""
        blank = BenchVerdict(group.entries[0], precision, group.language, device, None)
        with self._connect(_PATIENCE_S) as client:
            for first in range(0, len(group.entries), _MOST_ANSWERS):
                some = group.entries[first : first + _MOST_ANSWERS]
                yield from self._judge_some(client, replace(group, entries=some), blank)

    def stop(self) -> None:
        """See `GroupJudge`."""
        self._stopped.set()
        with suppress(AdaExploreError), self._connect(_STOP_S) as client:
            for job_id in tuple(self._at_work):
                client.cancel(job_id)

    def _judge_some(self, client: Client, group: AnswerGroup, blank: BenchVerdict) -> Verdicts:
        """Yield the verdicts of one job; fewer once `stop` was called."""
        left = list(group.entries)
        job = self._submit(client, group, blank)
        if job is None:
            return
        for event in self._events(client, job):
            if event.type == "prepared":
                blank = replace(blank, **{name: event.data[name] for name in _PREPARED})
            elif event.type == "verdict" and event.data["index"] == len(group.entries) - len(left):
                found = evaluation_from_json(event.data["evaluation"])
                yield verdict_on(blank, left.pop(0), found)
        if left and not self._stopped.is_set():
            yield from self._unjudged(client, job, blank, left)

    def _submit(self, client: Client, group: AnswerGroup, blank: BenchVerdict) -> JobInfo | None:
        """Submit the job of a group; return None once `stop` was called."""
        file = self._path / group.problem
        problem = problem_of(file.stem, read_source(file, "problem"))
        sources = [read_source(self._path / entry.answer) or "\n" for entry in group.entries]
        options = self._options | {"language": blank.language, "precision": blank.precision}
        while not self._stopped.is_set():
            try:
                return client.submit_evaluation(problem, sources, options)
            except ServiceError as error:
                self._pause(error)
        return None

    def _events(self, client: Client, job: JobInfo) -> Iterator[JobEvent]:
        self._at_work.add(job.id)
        if self._stopped.is_set():
            client.cancel(job.id)
        last, ended = 0, False
        while not ended:
            try:
                for event in client.events(job.id, last):
                    last = event.number
                    yield event
                ended = True
            except ServiceError as error:
                self._pause(error)
                ended = self._stopped.is_set()
        self._at_work.discard(job.id)

    def _pause(self, refusal: ServiceError) -> None:
        """Wait before a request beyond a quota or a rate; raise every other refusal."""
        if refusal.status != _TOO_MANY:
            raise refusal
        self._say(f"{refusal}; again in {_PAUSE_S:.0f} s")
        self._stopped.wait(_PAUSE_S)

    def _unjudged(
        self, client: Client, job: JobInfo, blank: BenchVerdict, left: Sequence[BenchEntry]
    ) -> Verdicts:
        """Yield why a job has no verdict on these answers.

        Raises `BadInputError` where its options cannot be used at the service.
        """
        ended = client.job(job.id)
        why = ended.error or f"job {job.id} is {ended.state}"
        result = client.result(job.id)
        if result.bad_input and not result.bad_problem:
            raise BadInputError(why)
        for entry in left:
            if result.bad_problem:
                yield replace(blank, entry=entry, unjudged=why)
            else:
                yield replace(blank, entry=entry, evaluation=Failed("infra_error", why))


def require_open(config: Config) -> None:
    """Raise `BadInputError` for an option that no service takes."""
    closed = sorted(config.model_fields_set - OPEN - _OURS)
    if closed:
        raise BadInputError(
            f"{option_name(closed[0])}: the service chooses that for its jobs; leave it out, or "
            "judge without --server"
        )
