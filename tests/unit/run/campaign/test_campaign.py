"""The loop over problems: order of turns, ends of turns, and effects of one problem's trouble."""

import time

import pytest

from adaexplore.core.errors import (
    BadInputError,
    BadProblemError,
    ClusterGoneError,
    InfrastructureError,
    RunInUseError,
)
from adaexplore.run.campaign.turns import Campaign, Progress, Rules
from adaexplore.search.allocation import Arm


class Job:
    """A search with given gains, which records the requested steps."""

    problem = ""

    def __init__(self, *, steps=8, gain=0.0, room=1.0, devices=("cpu",), error=None, log=None):
        self.steps, self.gain, self.room, self.error = steps, gain, room, error
        self.device, self.devices = "", devices
        self.made, self.confirmed, self.log = 0, 0, [] if log is None else log
        self.answered, self.asked, self.ended, self.elsewhere = 0, 0, "", False

    def progress(self):
        left = 0 if self.asked else self.steps - self.made
        standing = Arm([self.gain] * self.made, [1.0] * self.made, self.room)
        unconfirmed = self.made > self.confirmed
        ended = self.ended if self.made < self.steps else "all made"
        return Progress(
            standing, left, ended, unconfirmed, self.asked, self.answered, self.elsewhere
        )

    def slice(self, steps, parallel):
        self.log.append(("slice", steps, parallel))
        time.sleep(0.01)
        if self.error:
            raise self.error
        self.made += steps

    def finish(self):
        self.log.append(("finish", self.made))
        self.confirmed, self.answered = self.made, 0

    def suspend(self):
        self.log.append(("suspend",))

    def those(self, what):
        return [told[1:] for told in self.log if told[0] == what]


class Told:
    """The log of one job in that of all."""

    def __init__(self, job, told):
        self.job, self.told = job, told

    def append(self, told):
        self.told.append((self.job, told[0]))


@pytest.mark.parametrize("parallel", [1, 3])
def test_all_are_searched_to_their_end_confirmed_and_parked(parallel):
    jobs = [Job(steps=steps) for steps in (3, 8, 11, 1)]
    Campaign(jobs, Rules(parallel=parallel)).run()
    for job in jobs:
        assert job.made == job.steps
        assert job.those("finish") == [(job.steps,)]
        assert job.log[-1] == ("suspend",)


def test_a_budget_of_steps_is_kept_to_the_step_and_shared():
    jobs = [Job(steps=100) for _ in range(3)]
    Campaign(jobs, Rules("uniform", steps=31, turn_steps=4)).run()
    made = sorted(job.made for job in jobs)
    assert sum(made) == 31
    assert made[-1] - made[0] <= 4
    assert all(job.those("finish")[-1] == (job.made,) for job in jobs)


def test_a_small_budget_is_shared_between_problems():
    jobs = [Job(steps=100) for _ in range(6)]
    Campaign(jobs, Rules("headroom", steps=12)).run()
    assert [job.made for job in jobs] == [2] * 6


def test_the_rest_of_a_budget_goes_to_problems_that_gain():
    poor, rich = Job(steps=200), Job(steps=200, gain=0.01)
    Campaign([poor, rich], Rules("headroom", steps=100)).run()
    assert poor.made + rich.made == 100
    assert rich.made > 1.5 * poor.made > 0


def test_first_steps_are_made_in_one_turn():
    jobs = [Job(steps=100), Job(steps=100)]
    Campaign(jobs, Rules("headroom", turn_steps=2, first_steps=6, steps=16)).run()
    assert [job.those("slice")[0] for job in jobs] == [(6, 1), (6, 1)]


def test_few_remaining_problems_run_several_steps_at_once():
    long, short = Job(steps=20), Job(steps=2)
    Campaign([long, short], Rules("uniform", parallel=4, first_steps=1)).run()
    assert long.those("slice")[0] == (1, 1)
    assert (4, 4) in long.those("slice")


def test_a_problem_that_cannot_be_judged_is_left_out():
    bad, good = Job(error=BadProblemError("NaN")), Job()
    campaign = Campaign([bad, good], Rules())
    campaign.run()
    assert {index: str(error) for index, error in campaign.lost.items()} == {0: "NaN"}
    assert (len(bad.those("slice")), good.made) == (1, 8)


def test_a_problem_with_lost_machinery_gives_its_steps_to_others():
    lost, good = Job(steps=50, error=InfrastructureError("gone")), Job(steps=50)
    campaign = Campaign([lost, good], Rules(steps=30))
    campaign.run()
    assert isinstance(campaign.lost[0], InfrastructureError)
    assert good.made == 30


@pytest.mark.parametrize("error", [BadInputError("no key"), ClusterGoneError("no head")])
def test_an_error_common_to_all_searches_ends_the_campaign_after_the_current_turns(error):
    log = []
    failing = Job(error=error, log=log)
    others = [Job(steps=400) for _ in range(3)]
    campaign = Campaign([failing, *others], Rules(parallel=2, turn_steps=1))
    with pytest.raises(type(error), match=str(error)):
        campaign.run()
    assert not campaign.lost
    assert log[-1] == ("suspend",)
    assert all(job.made < 400 for job in others)


def test_what_another_process_works_on_is_left_to_it_and_the_budget_spares_its_slice():
    theirs, ours = Job(steps=50), Job(steps=50)
    theirs.made, theirs.elsewhere = 8, True
    Campaign([theirs, ours], Rules(steps=40, turn_steps=5, shared=True)).run()
    assert (theirs.log, ours.made) == ([], 40 - 8 - 5)


def test_a_problem_that_another_process_took_meanwhile_goes_on_here_once_it_is_free():
    contested, other = Job(steps=8, error=RunInUseError("taken")), Job(steps=16)
    slice_of_contested = contested.slice

    def slice_once_refused(steps, parallel):
        try:
            slice_of_contested(steps, parallel)
        finally:
            contested.error = None

    contested.slice = slice_once_refused
    campaign = Campaign([contested, other], Rules("uniform", first_steps=4, shared=True))
    campaign.run()
    assert (contested.made, other.made, campaign.lost) == (8, 16, {})


def test_steps_of_other_processes_count():
    ours, theirs = Job(steps=100), Job(steps=100)
    slice_of_ours = ours.slice

    def slice_beside_another(steps, parallel):
        slice_of_ours(steps, parallel)
        theirs.made, theirs.elsewhere = 90, True

    ours.slice = slice_beside_another
    Campaign([ours, theirs], Rules(steps=100, first_steps=8, turn_steps=2, shared=True)).run()
    assert (ours.made, theirs.made) == (8, 90)


def test_an_unexpected_exception_is_raised_at_once():
    with pytest.raises(ZeroDivisionError):
        Campaign([Job(error=ZeroDivisionError())], Rules()).run()


def test_when_the_time_is_over_winners_are_still_confirmed():
    jobs = [Job(steps=100), Job(steps=100)]
    over = []

    def spent():
        over.append("asked")
        return "time is over" if len(over) > 5 else None

    Campaign(jobs, Rules("uniform", turn_steps=1, first_steps=1), spent).run()
    assert 0 < sum(job.made for job in jobs) < 10
    assert all(job.confirmed == job.made for job in jobs)


@pytest.mark.parametrize("ended", ["near the roofline", ""])
def test_answers_are_judged_though_the_search_has_ended_or_the_budget_is_spent(ended):
    job = Job(steps=4)
    job.made = job.confirmed = 2
    job.answered, job.ended = 3, ended
    Campaign([job], Rules(), lambda: "" if ended else "time is over").run()
    assert job.log == [("finish", 2), ("suspend",)]
    assert job.answered == 0


def test_nothing_is_done_where_nothing_is_left_to_do():
    done = Job(steps=4)
    done.made = done.confirmed = 4
    Campaign([done], Rules()).run()
    assert done.log == []


def test_problems_are_spread_over_devices_and_stay_there():
    jobs = [Job(devices=("cuda:0", "cuda:1")) for _ in range(4)]
    kept = Job(devices=("cuda:1",))
    kept.device = "cuda:1"
    Campaign([kept, *jobs], Rules(parallel=2)).run()
    homes = [job.device for job in (kept, *jobs)]
    assert kept.device == "cuda:1"
    assert {homes.count("cuda:0"), homes.count("cuda:1")} == {2, 3}


@pytest.mark.parametrize(
    ("device", "at_once"), [("cuda:0", 3), ("cpu", 6)], ids=["a GPU", "the CPU"]
)
def test_so_many_problems_share_a_gpu_and_the_others_wait(device, at_once):
    jobs, running, most = [Job(steps=4, devices=(device,)) for _ in range(9)], set(), []
    for i, job in enumerate(jobs):
        job.problem = str(i)
        job.slice = counting(job, running, most)
    Campaign(jobs, Rules(parallel=6, of_a_gpu=3)).run()
    assert max(most) == at_once
    assert all(job.made == job.confirmed == 4 for job in jobs)
    in_flight = [parallel for job in jobs for _, parallel in job.those("slice")]
    assert in_flight[0] == 6 // at_once


def counting(job, running, most):
    """Return a `slice` that notes how many problems are at work."""
    judge = job.slice

    def act(steps, parallel):
        running.add(job.problem)
        most.append(len(running))
        judge(steps, parallel)
        time.sleep(0.05)
        running.discard(job.problem)

    return act


def test_searches_of_one_problem_share_its_reference_on_a_gpu():
    jobs, running, most = [Job(steps=4, devices=("cuda:0",)) for _ in range(6)], set(), []
    for i, job in enumerate(jobs):
        job.problem = "ab"[i % 2]
        job.slice = counting(job, running, most)
    Campaign(jobs, Rules(parallel=6, of_a_gpu=1)).run()
    assert max(most) == 1
    assert all(job.made == 4 for job in jobs)
    assert jobs[0].those("slice")[0] == (4, 2)


def test_few_references_are_kept_ready_between_turns():
    jobs = [Job(steps=20) for _ in range(6)]
    Campaign(jobs, Rules("uniform", turn_steps=2, first_steps=2)).run()
    turns = sum(len(job.those("slice")) for job in jobs)
    parked = sum(len(job.those("suspend")) for job in jobs)
    assert turns == 60
    assert parked >= turns / 2


def test_no_reference_is_kept_while_another_search_has_not_begun():
    told = []
    jobs = [Job(steps=20) for _ in range(3)]
    for i, job in enumerate(jobs):
        job.log = Told(i, told)
    Campaign(jobs, Rules("uniform", turn_steps=2, first_steps=2)).run()
    assert told[:4] == [(0, "slice"), (0, "suspend"), (1, "slice"), (1, "suspend")]
    assert told[4] == (2, "slice")
    assert told[5][1] == "slice"


def test_a_reference_is_kept_for_the_next_turn_while_others_are_at_their_first():
    slow, quick = Job(steps=2), Job(steps=4)
    slow.slice = taking(0.5, slow)
    Campaign([slow, quick], Rules("uniform", parallel=2, turn_steps=2, first_steps=2)).run()
    assert [what for what, *_ in quick.log][:2] == ["slice", "slice"]


def taking(seconds, job):
    """Return a `slice` that takes so long."""
    judge = job.slice

    def act(steps, parallel):
        time.sleep(seconds)
        judge(steps, parallel)

    return act


def test_the_reference_for_which_prompts_were_written_judges_the_answers_that_are_there():
    jobs = [Job(steps=2) for _ in range(2)]
    for job in jobs:
        job.slice = asking_first(job)
    Campaign(jobs, Rules("uniform", turn_steps=2, first_steps=2)).run()
    for job in jobs:
        assert [what for what, *_ in job.log][:2] == ["ask", "slice"]


def asking_first(job):
    """Return a `slice` that writes prompts first, and judges the answers in the next slice."""
    judge = job.slice

    def act(steps, parallel):
        if ("ask",) in job.log:
            judge(steps, parallel)
        else:
            job.log.append(("ask",))

    return act


def test_no_reference_is_kept_while_prompts_wait_for_answers():
    job, others = Job(steps=20), [Job(steps=2) for _ in range(2)]

    def ask(_steps, _parallel):
        job.log.append(("slice",))
        job.asked = 2

    job.slice = ask
    Campaign([*others, job], Rules("uniform", turn_steps=2, first_steps=2)).run()
    assert job.log == [("slice",), ("suspend",)]


def test_in_rounds_jobs_on_one_problem_follow_each_other_and_are_finished_there():
    jobs, told = [Job(steps=4) for _ in range(6)], []
    for i, job in enumerate(jobs):
        job.problem, job.log = "ab"[i % 2], Told(i, told)
    Campaign(jobs, Rules("uniform", first_steps=4, in_rounds=True)).run()
    done = [(i, what) for i, what in told if what != "suspend"]
    assert done == [(i, what) for i in (0, 2, 4, 1, 3, 5) for what in ("slice", "finish")]


def test_in_rounds_every_job_has_a_turn_before_any_has_the_next():
    jobs = [Job(steps=100) for _ in range(4)]
    for job, name in zip(jobs, "aabb", strict=True):
        job.problem = name
    Campaign(jobs, Rules("uniform", turn_steps=2, first_steps=2, steps=20, in_rounds=True)).run()
    assert [job.made for job in jobs] == [6, 6, 4, 4]
