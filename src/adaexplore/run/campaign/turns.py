"""The loop over problems: jobs get slices where steps pay most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from adaexplore.core.errors import (
    AdaExploreError,
    BadProblemError,
    ClusterGoneError,
    InfrastructureError,
    RunInUseError,
)
from adaexplore.core.settings.config import Allocation
from adaexplore.run.workers import Landed, Workers
from adaexplore.search.allocation import Arm, choose_problem

KEPT_READY = 2
"""Jobs that keep their prepared reference between slices: each takes memory."""

PROBLEMS_OF_A_GPU = 8
"""Problems whose searches share a GPU at once: each reference takes a tenth of its memory or more.

Fourteen at once on an H200 waited for memory most of the time (`docs/results/record-sixty.md`).
"""

_MOST_STEPS = 1_000_000


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a job.

    `left` is the number of steps that it may still make now, 0 where `ended` is the reason that it
    makes no more. A job is `unconfirmed` until its winner is measured again. `asked` steps wait for
    an answer and are not made yet; `answered` ones are paid for and wait for their evaluation. A
    job is `elsewhere` while another process works on it.
    """

    standing: Arm
    left: int
    ended: str = ""
    unconfirmed: bool = False
    asked: int = 0
    answered: int = 0
    elsewhere: bool = False


class ProblemJob(Protocol):
    """The search of one problem in a campaign; one thread uses it at a time.

    `slice` and `finish` raise `BadProblemError` for a problem that cannot be judged,
    `InfrastructureError` where its machinery is gone, `ClusterGoneError` where that of every search
    is, and `BadInputError` for what would stop every search, such as a model that refuses to be
    asked.
    """

    device: str
    """The device that judges it, empty until one is chosen."""

    @property
    def problem(self) -> str:
        """A name of the problem that is equal in jobs which may share its reference."""
        ...

    @property
    def devices(self) -> Sequence[str]:
        """The devices that may judge it."""
        ...

    def progress(self) -> Progress:
        """Return the progress, as the store has it."""
        ...

    def slice(self, steps: int, parallel: int) -> None:
        """Make `steps` steps, or fewer if there is a reason to stop; `parallel` at once."""
        ...

    def finish(self) -> None:
        """Judge what is answered, and measure the winner again."""
        ...

    def suspend(self) -> None:
        """Release everything held between slices; the next slice prepares again."""
        ...


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules by which jobs get slices.

    A slice is `turn_steps` steps, and every problem gets `first_steps` before any gets more.
    `parallel` steps are in flight at once, over all problems. `steps` is the limit for
    all together, None for no limit. With `in_rounds`, every job makes a turn before any makes the
    next, and jobs on the same problem follow each other. With `shared`, other processes give slices
    to the same jobs: progress is read anew before each choice, and a job at work elsewhere is left
    to the other process, with the steps of its slice set aside. `of_a_gpu` is the number of
    problems that share a GPU at once, None for no limit.
    """

    allocation: Allocation = "headroom"
    parallel: int = 1
    turn_steps: int = 4
    first_steps: int = 8
    steps: int | None = None
    in_rounds: bool = False
    shared: bool = False
    of_a_gpu: int | None = None


@dataclass(eq=False, slots=True)
class _Runner:
    """A job and its state.

    It is `finished` once its winner is measured again, until its next slice; `lost` is the reason
    that it gets no more slices.
    """

    job: ProblemJob
    progress: Progress
    steps: int = 0  # under way
    at_work: bool = False
    finished: bool = False
    lost: AdaExploreError | None = None

    @property
    def made(self) -> int:
        return len(self.progress.standing.gains)

    @property
    def to_search(self) -> bool:
        busy = self.at_work or self.progress.elsewhere
        return not (busy or self.lost or self.progress.ended) and self.progress.left > 0

    @property
    def standing(self) -> Arm:
        return replace(self.progress.standing, under_way=self.steps)


class Campaign:
    """Gives slices to jobs until all have ended or the budget is spent; then finishes them all.

    `spent` returns the reason to begin no further step, if any. Problems are spread over the
    devices that they may use. A job that cannot be judged, or whose machinery is lost, is left out
    and the others continue; `lost` has the reasons.
    """

    def __init__(
        self,
        jobs: Sequence[ProblemJob],
        rules: Rules,
        spent: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._runners = [_Runner(job, job.progress()) for job in jobs]
        self._rules = rules
        self._devices = {device for job in jobs for device in job.devices}
        self._spent = spent
        self._first = _first_steps(rules, len(jobs))
        self._workers: Workers[_Runner] = Workers()
        self._ready: list[_Runner] = []  # the one used last at the end
        self._error: AdaExploreError | None = None
        self._latest = ""  # the problem of the turn that began last

    @property
    def lost(self) -> dict[int, AdaExploreError]:
        """The reason that a job was left out, by its index."""
        return {i: r.lost for i, r in enumerate(self._runners) if r.lost}

    def run(self) -> None:
        """Run to the end.

        Raises what would stop every search, once the slices in flight have ended; Ctrl-C waits for
        nothing.
        """
        while True:
            while self._error is None and self._at_work() < self._rules.parallel:
                if not self._begin_next():
                    break
            if not self._at_work():
                break
            self._land(self._workers.next())
        for runner in self._ready:
            runner.job.suspend()
        if self._error:
            raise self._error

    def _at_work(self) -> int:
        return sum(runner.at_work for runner in self._runners)

    def _begin_next(self) -> bool:
        """Begin what comes next; in rounds, a search that ended is finished by its reference."""
        if self._rules.shared:
            for runner in self._runners:
                if not runner.at_work:
                    runner.progress = runner.job.progress()
        if self._rules.in_rounds:
            return self._begin_finish() or self._begin_turn()
        return self._begin_turn() or self._begin_finish()

    def _begin_turn(self) -> bool:
        waiting = [one for one in self._runners if one.to_search and self._has_room(one)]
        allowed = self._allowed()
        if not waiting or allowed < 1 or self._spent():
            return False
        waiting = self._in_this_round(self._on_free_devices(waiting))
        standings = [runner.standing for runner in waiting]
        runner = waiting[choose_problem(standings, self._rules.allocation, self._first)]
        runner.finished = False
        self._latest = runner.job.problem
        runner.steps = min(self._wanted(runner), runner.progress.left, allowed)
        in_flight = max(self._rules.parallel // self._at_once(), 1)
        if not runner.job.device:
            runner.job.device = min(runner.job.devices, key=self._load)
        self._start(runner, partial(runner.job.slice, runner.steps, min(in_flight, runner.steps)))
        return True

    def _begin_finish(self) -> bool:
        """Finish a search that has ended or gets no more slices: what was paid for is judged."""
        over = self._allowed() < 1 or self._spent() is not None
        for runner in self._runners:
            ended = runner.progress.ended or over
            busy = runner.at_work or runner.progress.elsewhere
            idle = not (busy or runner.lost or runner.finished)
            left = runner.progress.unconfirmed or runner.progress.answered
            if idle and ended and left and self._has_room(runner):
                runner.finished = True
                self._start(runner, runner.job.finish)
                return True
        return False

    def _allowed(self) -> int:
        """Return the number of steps that may still begin."""
        most = self._rules.steps
        begun = sum(r.made + r.steps + r.progress.asked for r in self._runners)
        begun += sum(self._wanted(r) for r in self._runners if r.progress.elsewhere)
        return _MOST_STEPS if most is None else max(most - begun, 0)

    def _wanted(self, runner: _Runner) -> int:
        """Return the steps of a job's next slice, where nothing limits them."""
        first = self._first - runner.made
        return first if first > 0 else self._rules.turn_steps

    def _at_once(self) -> int:
        """Return the number of searches that can be at work at once, at least 1."""
        unfinished = [r.job.problem for r in self._runners if not (r.lost or r.progress.ended)]
        most, on_gpus = self._rules.of_a_gpu, all(map(_is_gpu, self._devices))
        problems = most * len(self._devices) if most and on_gpus else None
        return max(sum(runs for _, runs in Counter(unfinished).most_common(problems)), 1)

    def _has_room(self, runner: _Runner) -> bool:
        """Return whether a device of a job has memory for its problem, beside those at work."""
        job, most = runner.job, self._rules.of_a_gpu
        for device in [job.device] if job.device else job.devices:
            at_work = {r.job.problem for r in self._runners if r.at_work and r.job.device == device}
            if not most or not _is_gpu(device) or len(at_work | {job.problem}) <= most:
                return True
        return False

    def _on_free_devices(self, waiting: list[_Runner]) -> list[_Runner]:
        """Return the jobs whose device is the least busy, or that may use it."""
        least = min(self._load(device)[0] for device in self._devices)
        free = [
            runner
            for runner in waiting
            if not runner.job.device or self._load(runner.job.device)[0] <= least
        ]
        return free or waiting

    def _in_this_round(self, waiting: list[_Runner]) -> list[_Runner]:
        """Return the jobs with the fewest turns; of these the ones on the latest problem, if any.

        Without rounds, all.
        """
        if not self._rules.in_rounds:
            return waiting
        turn = max(self._first, self._rules.turn_steps)
        round_of = {id(runner): runner.made // turn for runner in waiting}
        first = min(round_of.values())
        earliest = [runner for runner in waiting if round_of[id(runner)] == first]
        return [r for r in earliest if r.job.problem == self._latest] or earliest

    def _load(self, device: str) -> tuple[int, int]:
        """Return the number of jobs at work on a device, and of jobs that have it."""
        theirs = [runner for runner in self._runners if runner.job.device == device]
        return sum(runner.at_work for runner in theirs), len(theirs)

    def _start(self, runner: _Runner, work: Callable[[], None]) -> None:
        runner.at_work = True
        if runner in self._ready:
            self._ready.remove(runner)
        self._workers.begin(runner, work)

    def _land(self, landed: Landed[_Runner]) -> None:
        """Record the end of a slice."""
        runner, error = landed.key, landed.error
        runner.at_work, runner.steps = False, 0
        match error:
            case None:
                runner.progress = runner.job.progress()
                self._keep_ready(runner)
            case RunInUseError():
                runner.progress = replace(runner.job.progress(), elsewhere=True)
                runner.job.suspend()
            case ClusterGoneError():
                self._end_with(error, runner)
            case BadProblemError() | InfrastructureError():
                runner.lost = error
                runner.job.suspend()
            case AdaExploreError():
                self._end_with(error, runner)
            case _:
                raise error

    def _end_with(self, error: AdaExploreError, runner: _Runner) -> None:
        """Begin no more slices; `run` raises the first such error."""
        self._error = self._error or error
        runner.job.suspend()

    def _keep_ready(self, runner: _Runner) -> None:
        """Suspend the job that has waited longest if too many are ready, and a job that rests.

        A job rests if it has nothing to do now, or has made steps and another waits for its first:
        that one comes first, and may need the memory that a reference takes.
        """
        comes_later = runner.made and any(map(_waits_to_begin, self._runners))
        if comes_later or not _goes_on(runner.progress):
            runner.job.suspend()
            return
        self._ready.append(runner)
        while len(self._ready) > KEPT_READY:
            self._ready.pop(0).job.suspend()


def _is_gpu(device: str) -> bool:
    return device.startswith("cuda")


def _goes_on(progress: Progress) -> bool:
    """Return whether a job has steps to make now, or an end to be finished."""
    if progress.ended:
        return progress.unconfirmed or bool(progress.answered)
    return progress.left > 0


def _waits_to_begin(runner: _Runner) -> bool:
    """Return whether a job is to make its first step and is not at it."""
    return not runner.made and runner.to_search


def _first_steps(rules: Rules, problems: int) -> int:
    """Return the steps that every problem gets before any gets more: at most an equal share."""
    if rules.steps is None:
        return rules.first_steps
    return max(min(rules.first_steps, rules.steps // max(problems, 1)), 1)
