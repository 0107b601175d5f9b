"""Rows of jobs and of their events, read and written within a transaction."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import Connection, Row, Select, func, insert, select, update

from adaexplore.serve.messages import JobInfo, JobResult, State
from adaexplore.serve.tables import events, jobs


def job_rows(job_id: str) -> Select[Any]:
    """Select the row of a job."""
    return select(jobs).where(jobs.c.id == job_id)


def first_row(connection: Connection, user: str, which: Any) -> Row[Any] | None:
    """Return the first row of a user's jobs that fits."""
    return connection.execute(select(jobs).where(jobs.c.user == user, which)).first()


def add_event_row(
    connection: Connection,
    job_id: str,
    kind: str,
    text: str = "",
    problem: str = "",
    data: Any = None,
) -> None:
    """Add an event to a job within a transaction."""
    last = connection.execute(select(func.max(events.c.number)).where(events.c.job == job_id))
    connection.execute(
        insert(events).values(
            job=job_id,
            number=(last.scalar() or 0) + 1,
            type=kind,
            text=text,
            problem=problem,
            data=data or {},
        )
    )


def ends_with(connection: Connection, job_id: str, *event: Any) -> bool:
    """Return True if the last event of a job has this type, text, problem and data."""
    latest = select(events).where(events.c.job == job_id).order_by(events.c.number.desc())
    row = connection.execute(latest.limit(1)).first()
    *words, data = event
    return row is not None and [row.type, row.text, row.problem, row.data] == [*words, data or {}]


def end_row(
    connection: Connection,
    job_id: str,
    state: State,
    error: str = "",
    files: list[str] | None = None,
    result: JobResult | None = None,
) -> None:
    """End a job within a transaction."""
    values = {
        "state": state,
        "error": error,
        "ended_at": time.time(),
        "files": files or [],
        "result": (result or JobResult()).model_dump(mode="json"),
    }
    connection.execute(update(jobs).where(jobs.c.id == job_id).values(values))
    add_event_row(connection, job_id, "state", state)


def info_of(row: Row[Any] | None) -> JobInfo:
    """Return a row that is there as a job."""
    assert row is not None
    names = JobInfo.model_fields
    return JobInfo(**{name: value for name, value in row._mapping.items() if name in names})
