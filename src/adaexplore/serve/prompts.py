"""Prompts of searches that are answered by hand, and their answers, in the service's database.

The worker of a search takes the answers into its records, evaluates what they propose, opens the
next prompts, and ends. The job waits then, without a process.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Engine, insert, select, update

from adaexplore.core.errors import BadInputError
from adaexplore.serve.messages import ENDED, RESUMABLE, JobPrompt, JobResult, PromptReply
from adaexplore.serve.rows import add_event_row, end_row
from adaexplore.serve.tables import jobs, prompts


class WaitingPrompts:
    """The prompts of all jobs; thread-safe."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def waiting(self, job_id: str) -> list[JobPrompt]:
        """Return the prompts of a job that wait for an answer, none of one that has ended."""
        chosen = (
            select(prompts)
            .join(jobs, jobs.c.id == prompts.c.job)
            .where(prompts.c.job == job_id, prompts.c.reply.is_(None), jobs.c.state.not_in(ENDED))
            .order_by(prompts.c.ask, prompts.c.turn)
        )
        with self._engine.begin() as connection:
            rows = connection.execute(chosen)
            return [JobPrompt(ask=r.ask, turn=r.turn, purpose=r.purpose, text=r.text) for r in rows]

    def answer(self, job_id: str, given: PromptReply) -> None:
        """Keep the answer to a prompt, and queue a job that waits, outside of the quotas.

        The same answer may come twice. Raises `BadInputError` for a job that has ended, a prompt
        that is not there, and one with another answer.
        """
        number = f"ask {given.ask}, turn {given.turn + 1}"  # as people count
        with self._engine.begin() as connection:
            state = connection.execute(select(jobs.c.state).where(jobs.c.id == job_id)).scalar_one()
            if state in ENDED:
                way = "; continue it first" if state in RESUMABLE else ""
                raise BadInputError(f"the job is {state}{way}")
            here = (
                prompts.c.job == job_id,
                prompts.c.ask == given.ask,
                prompts.c.turn == given.turn,
            )
            row = connection.execute(select(prompts).where(*here)).first()
            if row is None:
                raise BadInputError(f"{number}: no such prompt waits")
            if row.reply not in (None, given.reply):
                raise BadInputError(f"{number} has been answered already; the first answer counts")
            connection.execute(update(prompts).where(*here).values(reply=given.reply))
            if state == "waiting" and not row.taken:
                connection.execute(update(jobs).where(jobs.c.id == job_id).values(state="queued"))
                add_event_row(connection, job_id, "state", "queued")

    def replies(self, job_id: str) -> list[PromptReply]:
        """Return the answers that the records of a search do not have yet, as far as is known."""
        return self._given(job_id, ~prompts.c.taken)

    def given(self, job_id: str) -> list[PromptReply]:
        """Return all answers to the prompts of a job."""
        return self._given(job_id)

    def _given(self, job_id: str, *which: ColumnElement[bool]) -> list[PromptReply]:
        answered = (prompts.c.job == job_id, prompts.c.reply.is_not(None), *which)
        chosen = select(prompts).where(*answered).order_by(prompts.c.ask, prompts.c.turn)
        with self._engine.begin() as connection:
            rows = connection.execute(chosen)
            return [PromptReply(ask=row.ask, turn=row.turn, reply=row.reply) for row in rows]

    def wait(
        self,
        job_id: str,
        opened: Sequence[JobPrompt],
        taken: Sequence[PromptReply],
        *,
        files: list[str],
        result: JobResult,
    ) -> None:
        """Let a running job wait for answers; queue it where more have come than it has taken.

        `opened` are all prompts that wait now, some of which were there before.
        """
        own = prompts.c.job == job_id
        with self._engine.begin() as connection:
            row = connection.execute(select(jobs).where(jobs.c.id == job_id)).one()
            if row.state != "running":
                return  # the answer to an earlier call was lost
            for reply in taken:
                which = (own, prompts.c.ask == reply.ask, prompts.c.turn == reply.turn)
                connection.execute(update(prompts).where(*which).values(taken=True))
            connection.execute(prompts.delete().where(own, prompts.c.reply.is_(None)))
            there = select(prompts.c.ask, prompts.c.turn).where(own)
            known = {(row.ask, row.turn) for row in connection.execute(there)}
            for prompt in opened:
                if (prompt.ask, prompt.turn) not in known:
                    connection.execute(insert(prompts).values(job=job_id, **prompt.model_dump()))
            if row.cancelling:
                end_row(connection, job_id, "cancelled", files=files, result=result)
                return
            left = select(prompts.c.ask).where(own, prompts.c.reply.is_not(None), ~prompts.c.taken)
            state = "queued" if connection.execute(left).first() else "waiting"
            kept = {"files": files, "result": result.model_dump(mode="json")}
            changed = update(jobs).where(jobs.c.id == job_id)
            connection.execute(changed.values(state=state, attempts=0, **kept))
            add_event_row(connection, job_id, "state", state)
