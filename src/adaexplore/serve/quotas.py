"""Quotas of a user: jobs at once, and candidates in a day."""

from __future__ import annotations

import time

from sqlalchemy import Connection, func, select

from adaexplore.serve.accounts import Account
from adaexplore.serve.tables import jobs

_DAY_S = 86_400.0


class QuotaError(Exception):
    """A quota of the user that is used up; the message is one line.

    `is_brief` is true for the jobs of a user, of which one will end.
    """

    def __init__(self, message: str, *, is_brief: bool = False) -> None:
        super().__init__(message)
        self.is_brief = is_brief


def check_quota(connection: Connection, account: Account, candidates: int) -> None:
    """Raise `QuotaError` for a user who may not have another job of so many candidates."""
    mine = jobs.c.user == account.user
    active = select(func.count()).where(mine, jobs.c.state.in_(("queued", "running")))
    if (connection.execute(active).scalar() or 0) >= account.most_jobs:
        most = account.most_jobs
        raise QuotaError(
            f"{most} jobs are queued or running, your most; wait for one", is_brief=True
        )
    day = select(func.coalesce(func.sum(jobs.c.candidates), 0)).where(
        mine, jobs.c.created_at > time.time() - _DAY_S
    )
    used: int = connection.execute(day).scalar() or 0
    if used + candidates > account.most_candidates:
        raise QuotaError(
            f"{used} of your {account.most_candidates} candidates of a day are taken, and this job "
            f"may judge {candidates}"
        )
