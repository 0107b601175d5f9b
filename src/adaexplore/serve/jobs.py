"""Jobs in the service's database: submitted within quotas, run once, read by their user alone."""

from __future__ import annotations

import json
import secrets
import shutil
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, func, insert, select, update

from adaexplore.core.errors import BadInputError, InfrastructureError
from adaexplore.serve.accounts import Account
from adaexplore.serve.messages import (
    ENDED,
    RESUMABLE,
    JobEvent,
    JobInfo,
    JobResult,
    Kind,
    Scope,
    State,
)
from adaexplore.serve.prompts import WaitingPrompts
from adaexplore.serve.quotas import check_quota
from adaexplore.serve.rows import add_event_row, end_row, ends_with, first_row, info_of, job_rows
from adaexplore.serve.tables import events, jobs, prompts

_MOST_ATTEMPTS = 3
"""Times that a job begins without progress: one that takes its worker, or the server, down with it
must not do so for ever."""
POSTPONED = 75
"""Exit code of a worker whose job is to begin later: EX_TEMPFAIL of sysexits.h."""
ORDER_NAME, REPLIES_NAME, LOG_NAME = "order.json", "replies.json", "worker.log"


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to submit: `order` is what its worker reads, `candidates` how many it may judge."""

    kind: Kind
    scope: Scope
    asks_models: bool
    problem: str
    candidates: int
    order: Mapping[str, Any]


class Jobs:
    """All jobs of a service; thread-safe. Each has a folder below `folder`, named by its id.

    `prompts` are those of all jobs.
    """

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self.prompts = WaitingPrompts(engine)
        self.folder = folder
        self._last_verdicts: dict[str, int] = {}

    def submit(self, account: Account, new: NewJob, request_key: str | None = None) -> JobInfo:
        """Queue a job; with the `request_key` of an earlier one of the user, return that one.

        Raises `QuotaError` if the user has too many jobs, or judges too many candidates a day, and
        `InfrastructureError` where the order cannot be written.
        """
        job_id = secrets.token_hex(12)
        with self.engine.begin() as connection:
            known = None
            if request_key is not None:
                known = first_row(connection, account.user, jobs.c.request_key == request_key)
            if known:
                return info_of(known)
            check_quota(connection, account, new.candidates)
            self._write_order(job_id, new.order)
            connection.execute(
                insert(jobs).values(
                    id=job_id,
                    user=account.user,
                    request_key=request_key,
                    kind=new.kind,
                    state="queued",
                    problem=new.problem,
                    candidates=new.candidates,
                    created_at=time.time(),
                )
            )
            add_event_row(connection, job_id, "state", "queued")
            return info_of(first_row(connection, account.user, jobs.c.id == job_id))

    def _write_order(self, job_id: str, order: Mapping[str, Any]) -> None:
        folder = self.folder / job_id
        try:
            folder.mkdir(mode=0o700, parents=True)
            (folder / ORDER_NAME).write_text(json.dumps(order), encoding="utf-8")
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise InfrastructureError(
                f"the service cannot keep the order: {error.strerror}; it is taken once that is "
                "mended"
            ) from error

    def find(self, user: str, job_id: str) -> JobInfo | None:
        """Return a user's job; None for an id that is unknown or another user's."""
        with self.engine.begin() as connection:
            row = first_row(connection, user, jobs.c.id == job_id)
        return info_of(row) if row else None

    def find_by_key(self, user: str, request_key: str) -> JobInfo | None:
        """Return the job that a user submitted with this key."""
        with self.engine.begin() as connection:
            row = first_row(connection, user, jobs.c.request_key == request_key)
        return info_of(row) if row else None

    def order(self, job_id: str) -> dict[str, Any]:
        """Return the order of a job."""
        order: dict[str, Any] = json.loads((self.folder / job_id / ORDER_NAME).read_text("utf-8"))
        return order

    def begin_again(self, job_id: str) -> None:
        """Queue a job that has ended, outside of the quotas: the machine failed, not its user."""
        again = {"state": "queued", "attempts": 0, "error": "", "ended_at": None}
        with self.engine.begin() as connection:
            ended = jobs.c.state.in_(("done", "failed"))
            changed = update(jobs).where(jobs.c.id == job_id, ended).values(again)
            if connection.execute(changed).rowcount:
                add_event_row(connection, job_id, "state", "queued")

    def go_on(self, account: Account, job_id: str) -> JobInfo:
        """Queue a user's search or campaign that was cancelled or failed: it goes on where it was.

        Its candidates were counted when it was submitted. Raises `BadInputError` for another job,
        and `QuotaError` if the user has too many.
        """
        again = {"state": "queued", "attempts": 0, "error": "", "ended_at": None}
        with self.engine.begin() as connection:
            job = info_of(first_row(connection, account.user, jobs.c.id == job_id))
            if job.kind == "evaluation":
                raise BadInputError("an evaluation cannot be continued; submit it again")
            if job.state not in RESUMABLE:
                raise BadInputError(
                    f"the job is {job.state}; one that was stopped can be continued"
                )
            check_quota(connection, account, 0)
            changed = update(jobs).where(jobs.c.id == job_id, jobs.c.state == job.state)
            if connection.execute(changed.values(cancelling=False, **again)).rowcount:
                ended = (events.c.job == job_id, events.c.type == "state", events.c.text.in_(ENDED))
                stopped = update(events).where(*ended).values(text="stopped")
                connection.execute(stopped)  # readers of events end with a state that ends a job
                add_event_row(connection, job_id, "state", "queued")
            return info_of(first_row(connection, account.user, jobs.c.id == job_id))

    def of_user(self, user: str, limit: int = 100) -> list[JobInfo]:
        """Return a user's jobs, the latest first."""
        latest = select(jobs).where(jobs.c.user == user).order_by(jobs.c.number.desc())
        with self.engine.begin() as connection:
            return [info_of(row) for row in connection.execute(latest.limit(limit))]

    def result(self, job_id: str) -> JobResult:
        """Return the result of a job, empty while it has none."""
        with self.engine.begin() as connection:
            found = connection.execute(select(jobs.c.result).where(jobs.c.id == job_id))
            return JobResult.model_validate(found.scalar_one())

    def events(self, job_id: str, after: int = 0, limit: int = 500) -> list[JobEvent]:
        """Return events of a job with numbers above `after`, in order."""
        chosen = select(events).where(events.c.job == job_id, events.c.number > after)
        with self.engine.begin() as connection:
            rows = connection.execute(chosen.order_by(events.c.number).limit(limit))
            return [
                JobEvent(number=r.number, type=r.type, text=r.text, problem=r.problem, data=r.data)
                for r in rows
            ]

    def cancel(self, job_id: str) -> State:
        """End a queued or waiting job, mark a running one for its runner; return the state."""
        with self.engine.begin() as connection:
            row = connection.execute(job_rows(job_id)).one()
            state: State = row.state
            if state in ("queued", "waiting"):
                result = JobResult.model_validate(row.result)
                end_row(connection, job_id, "cancelled", files=row.files, result=result)
                return "cancelled"
            if state == "running":
                connection.execute(update(jobs).where(jobs.c.id == job_id).values(cancelling=True))
            return state

    def add_event(
        self, job_id: str, kind: str, text: str, problem: str, data: Any, *, again: bool = False
    ) -> None:
        """Record an event of a running job; with `again`, unless the last one is the same."""
        with self.engine.begin() as connection:
            if again and ends_with(connection, job_id, kind, text, problem, data):
                return
            last = self._last_verdict(connection, job_id) if kind == "verdict" else -1
            is_new = kind == "verdict" and data["index"] > last
            add_event_row(connection, job_id, kind, text, problem, data)
            if is_new or kind == "recorded":
                connection.execute(update(jobs).where(jobs.c.id == job_id).values(attempts=0))
        if is_new:
            self._last_verdicts[job_id] = data["index"]

    def _last_verdict(self, connection: Connection, job_id: str) -> int:
        """Return the number of the last candidate with a verdict, -1 if none has.

        A job that begins again has some twice. The database is asked once in a run of a job: it
        reads all verdicts of the job.
        """
        if job_id not in self._last_verdicts:
            chosen = select(events.c.data).where(events.c.job == job_id, events.c.type == "verdict")
            found = (row.data["index"] for row in connection.execute(chosen))
            self._last_verdicts[job_id] = max(found, default=-1)
        return self._last_verdicts[job_id]

    def take_next(self) -> JobInfo | None:
        """Mark the next queued job as running and return it, None where none waits.

        The users with the fewest running jobs come first, then the oldest job.
        """
        with self.engine.begin() as connection:
            running = (
                select(jobs.c.user, func.count().label("jobs"))
                .where(jobs.c.state == "running")
                .group_by(jobs.c.user)
                .subquery()
            )
            row = connection.execute(
                select(jobs)
                .outerjoin(running, running.c.user == jobs.c.user)
                .where(jobs.c.state == "queued")
                .order_by(func.coalesce(running.c.jobs, 0), jobs.c.number)
                .limit(1)
            ).first()
            if row is None:
                return None
            values = {"state": "running", "attempts": row.attempts + 1, "started_at": time.time()}
            connection.execute(update(jobs).where(jobs.c.id == row.id).values(values))
            add_event_row(connection, row.id, "state", "running")
            return info_of(row)

    def end(
        self, job_id: str, state: State, error: str = "", *, files: list[str], result: JobResult
    ) -> None:
        """Record the end of a job, once."""
        self._last_verdicts.pop(job_id, None)
        with self.engine.begin() as connection:
            if connection.execute(job_rows(job_id)).one().state in ENDED:
                return  # the database was lost with its answer to an earlier call
            end_row(connection, job_id, state, error, files, result)

    def requeue(
        self, job_id: str | None = None, *, lost: bool = True, but: Collection[str] = ()
    ) -> None:
        """Queue a running job again, or all that ran when the server ended, `but` some.

        A search continues where its records end. A job that was `lost` too often fails; one that
        the server ended in order was not.
        """
        which = [jobs.c.state == "running", jobs.c.id.not_in(but)]
        which += [jobs.c.id == job_id] if job_id else []
        with self.engine.begin() as connection:
            for row in connection.execute(select(jobs).where(*which)).all():
                self._last_verdicts.pop(row.id, None)
                if row.cancelling:
                    end_row(connection, row.id, "cancelled")
                elif lost and row.attempts >= _MOST_ATTEMPTS:
                    why = f"its worker was lost {row.attempts} times"
                    end_row(connection, row.id, "failed", why)
                else:
                    attempts = row.attempts if lost else 0
                    again = {"state": "queued", "attempts": attempts}
                    connection.execute(update(jobs).where(jobs.c.id == row.id).values(again))
                    add_event_row(connection, row.id, "state", "queued")

    def sweep(self) -> None:
        """Remove the folders of jobs that are not in the database: a kill came before their row."""
        with self.engine.begin() as connection:
            known = set(connection.execute(select(jobs.c.id)).scalars())
        for folder in self.folder.iterdir():
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)

    def cancelling(self) -> list[str]:
        """Return the ids of running jobs that are to end."""
        chosen = select(jobs.c.id).where(jobs.c.state == "running", jobs.c.cancelling)
        with self.engine.begin() as connection:
            return list(connection.execute(chosen).scalars())

    def counts(self) -> dict[tuple[str, str], int]:
        """Return the number of jobs by kind and state."""
        counted = select(jobs.c.kind, jobs.c.state, func.count()).group_by(
            jobs.c.kind, jobs.c.state
        )
        with self.engine.begin() as connection:
            return {(kind, state): count for kind, state, count in connection.execute(counted)}

    def forget(self, older_than_s: float) -> int:
        """Delete jobs that ended so long ago, with their folders; return their number."""
        old = select(jobs.c.id).where(jobs.c.ended_at < time.time() - older_than_s)
        with self.engine.begin() as connection:
            ids = list(connection.execute(old).scalars())
            for table in (events, prompts):
                connection.execute(table.delete().where(table.c.job.in_(ids)))
            connection.execute(jobs.delete().where(jobs.c.id.in_(ids)))
        for job_id in ids:
            shutil.rmtree(self.folder / job_id, ignore_errors=True)
        return len(ids)
