"""Runs the queued jobs, each in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

from sqlalchemy.exc import DBAPIError

from adaexplore.run.session import INTERRUPTED
from adaexplore.serve.jobs import LOG_NAME, ORDER_NAME, POSTPONED, REPLIES_NAME, Jobs
from adaexplore.serve.messages import JobInfo, JobPrompt, JobResult, PromptReply
from adaexplore.serve.tables import is_unreachable
from adaexplore.serve.warm import WarmLimits, WarmPool

_LOOK_S = 0.2
_STOP_S = 20.0
"""Time for a cancelled job to end by itself."""
_PATIENCE_S = 1.0
"""Time until a database that could not be reached is asked again."""
_PAUSE_S = 15.0
"""Time until a job begins after one that its cluster or this machine could not: all jobs have the
same."""
_NO_ORDER = "its files are gone: the service has another folder"
_MOST_LINE = 64 << 20


@dataclass(slots=True)
class _Running:
    """A job under way: its process, the thread that reads its messages, and what they said.

    It takes `replies`, and ends with `prompts` that wait. `key` names the jobs that its process may
    do afterwards, empty for none; `ready` is True once it waits for one.
    """

    job: JobInfo
    process: subprocess.Popen[bytes]
    key: str = ""
    reader: threading.Thread | None = None
    ready: bool = False
    error: str = ""
    files: list[str] = field(default_factory=list)
    result: JobResult | None = None
    replies: list[PromptReply] = field(default_factory=list)
    prompts: list[JobPrompt] = field(default_factory=list)
    stop_by: float | None = None


class Runner:
    """Runs up to `at_once` jobs at the same time, in one thread that starts and ends processes.

    A worker that is lost (killed, out of memory) is replaced, and its job begins again or goes on.
    So does a job whose cluster was gone, or that this machine could not begin.
    """

    def __init__(self, jobs: Jobs, at_once: int, warm: WarmLimits) -> None:
        self._jobs = jobs
        self._warm: WarmPool[_Running] = WarmPool(warm)
        self._at_once = at_once
        self._running: list[_Running] = []
        self._begin_from = 0.0
        self._is_unsure = False
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="runner", daemon=True)

    def start(self) -> None:
        """Queue what an earlier server left running, and begin."""
        self._jobs.sweep()
        self._jobs.requeue()
        self._thread.start()

    def close(self) -> None:
        """End all jobs; a later server continues them."""
        self._ending.set()
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        """False once the runner has ended, or failed."""
        return self._thread.is_alive()

    def _run(self) -> None:
        # The workers end with the thread that started them, so this one does all of it.
        while not self._ending.wait(_LOOK_S):
            try:
                self._look()
            except DBAPIError as error:
                if not is_unreachable(error):
                    raise
                self._is_unsure = True
                self._ending.wait(_PATIENCE_S)
        for running in self._running:
            running.process.kill()
            running.process.wait()
            self._jobs.requeue(running.job.id, lost=False)
        self._warm.close()

    def _look(self) -> None:
        """Land, stop and begin jobs once."""
        if self._is_unsure:  # one may have been taken, and the answer lost with the database
            at_work = [running.job.id for running in self._running]
            self._jobs.requeue(lost=False, but=at_work)
            self._is_unsure = False
        self._land()
        self._stop_cancelled()
        self._warm.trim()
        while len(self._running) < self._at_once and time.monotonic() >= self._begin_from:
            job = self._jobs.take_next()
            if job is None:
                break
            if (self._jobs.folder / job.id / ORDER_NAME).is_file():
                self._start(job)
            else:
                self._jobs.end(job.id, "failed", _NO_ORDER, files=[], result=JobResult())

    def _start(self, job: JobInfo) -> None:
        """Begin a job; queue it again where the machine has no disk or no process for it."""
        try:
            self._running.append(self._continue(job) or self._begin(job))
        except OSError as error:
            self._begin_from = time.monotonic() + _PAUSE_S
            self._insist(lambda _: self._jobs.requeue(job.id, lost=False))
            self._record(job.id, "notice", f"cannot begin now: {error.strerror}", "", {})

    def _continue(self, job: JobInfo) -> _Running | None:
        """Have a process do a job for which it has a prepared reference; None where none has."""
        running = self._warm.take(self._key(job))
        if running is None or running.process.stdin is None:
            return None
        running.job, running.ready, running.result = job, False, None
        try:
            running.process.stdin.write(f"{self._jobs.folder / job.id}\n".encode())
            running.process.stdin.flush()
        except BrokenPipeError:
            return None  # it was killed just now
        return running

    def _key(self, job: JobInfo) -> str:
        """Return the key of the jobs that share a prepared reference; empty for none.

        The configuration has the scope that verdicts are shared in: by default, that of one user.
        """
        if job.kind != "evaluation" or not self._warm.is_open:
            return ""
        order = json.loads((self._jobs.folder / job.id / ORDER_NAME).read_text("utf-8"))
        return json.dumps([order["config"], order["problems"]], sort_keys=True)

    def _begin(self, job: JobInfo) -> _Running:
        self._warm.make_room()
        folder, key = self._jobs.folder / job.id, self._key(job)
        replies = self._jobs.prompts.replies(job.id)
        given = [reply.model_dump() for reply in replies]
        (folder / REPLIES_NAME).write_text(json.dumps(given), encoding="utf-8")
        with (folder / LOG_NAME).open("ab") as log:
            ours, theirs = os.pipe()
            pipe = os.fdopen(ours, "rb")
            try:
                process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "adaexplore.serve.worker", folder, str(theirs)],
                    pass_fds=[theirs],
                    stdin=subprocess.PIPE if key else subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            except OSError:
                pipe.close()
                raise
            finally:
                os.close(theirs)
        running = _Running(job, process, key, replies=replies)
        running.reader = threading.Thread(target=self._read, args=(running, pipe), daemon=True)
        running.reader.start()
        return running

    def _read(self, running: _Running, pipe: IO[bytes]) -> None:
        with pipe:
            while line := pipe.readline(_MOST_LINE):
                if not line.endswith(b"\n"):
                    return  # the worker was killed as it wrote
                self._take(running, json.loads(line))

    def _take(self, running: _Running, message: dict[str, Any]) -> None:
        match message["type"]:
            case "result":
                running.result = JobResult.model_validate(message["data"]["result"])
                running.files = message["data"]["files"]
                asked = message["data"].get("prompts", ())
                running.prompts = [JobPrompt.model_validate(prompt) for prompt in asked]
            case "error":
                running.error = message["text"]
                running.result = JobResult(**message["data"])
            case "ready":
                running.ready = True
            case kind:
                text, problem = message.get("text", ""), message.get("problem", "")
                self._record(running.job.id, kind, text, problem, message.get("data"))

    def _record(self, *event: Any) -> None:
        self._insist(lambda again: self._jobs.add_event(*event, again=again))

    def _insist(self, record: Callable[[bool], None]) -> None:
        """Record something, once the database can be reached; tell `record` if it is called again.

        What it recorded before may be there, and only the database's answer lost.
        """
        again = False
        while True:
            try:
                return record(again)
            except DBAPIError as error:
                if not is_unreachable(error) or self._ending.wait(_PATIENCE_S):
                    raise
                again = True

    def _land(self) -> None:
        for running in list(self._running):
            if running.ready and running.key and running.stop_by is None:
                self._rest(running)
                continue
            status = running.process.poll()
            if status is None or running.reader is None:
                continue
            running.reader.join()
            self._end(running, status)
            self._running.remove(running)

    def _rest(self, running: _Running) -> None:
        """End a job whose process waits for another."""
        result = running.result or JobResult()
        self._jobs.end(running.job.id, "done", files=running.files, result=result)
        self._running.remove(running)
        self._warm.give(running.key, running)

    def _end(self, running: _Running, status: int) -> None:
        job_id, result = running.job.id, running.result or JobResult()
        if running.stop_by is not None or status == INTERRUPTED:
            self._jobs.end(job_id, "cancelled", files=running.files, result=result)
        elif status == POSTPONED:
            self._begin_from = time.monotonic() + _PAUSE_S
            self._jobs.requeue(job_id, lost=False)
        elif running.error:
            self._jobs.end(job_id, "failed", running.error, files=running.files, result=result)
        elif status == 0 and running.prompts:
            files, taken = running.files, running.replies
            self._jobs.prompts.wait(job_id, running.prompts, taken, files=files, result=result)
        elif status == 0 and running.result:
            self._jobs.end(job_id, "done", files=running.files, result=result)
        elif status < 0:
            self._jobs.requeue(job_id)
        else:
            error = f"its worker failed (exit code {status}); the server's log of the job says why"
            self._jobs.end(job_id, "failed", error, files=running.files, result=result)

    def _stop_cancelled(self) -> None:
        cancelled = self._jobs.cancelling() if self._running else []
        now = time.monotonic()
        for running in self._running:
            if running.job.id not in cancelled:
                continue
            if running.stop_by is None:
                running.stop_by = now + _STOP_S
                running.process.send_signal(signal.SIGINT)
            elif now > running.stop_by:
                running.process.kill()
