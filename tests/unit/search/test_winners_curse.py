"""Shrinkage, repeated measurement and confirmation of noisy measurements."""

import math
from dataclasses import replace
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.verdict.evaluation import Cost, Estimate, Failed, Passed, Timing
from adaexplore.search import needs_remeasure, next_to_confirm, settled, shrunk, worst_of
from adaexplore.search.winners_curse import deviation


def measured(speedup, spread=1.0, cost=Cost()):  # noqa: B008 - immutable
    interval = (speedup / spread, speedup * spread)
    timing = Timing(10.0, (9.0, 11.0), {"eager": 20.0}, speedup, interval, 2.0, 7)
    return Passed("fp32", 1e-7, timing, cost)


def speedup_of(evaluation):
    return evaluation.measured.speedup


ESTIMATED = Passed("fp32", 1e-7, Estimate(3.0, "memory", "sm_90"))
BROKEN = Failed("infra_error", "gone")
WRONG = Failed("wrong_output", "off by one")


class TestShrinkage:
    def test_noise_as_large_as_a_typical_step_halves_the_change(self):
        """A deviation of 0.1, as large as a typical change, leaves half of the distance in ln."""
        evaluation = measured(2.0, math.exp(1.96 * 0.1))
        assert deviation(evaluation.timing) == pytest.approx(0.1)
        assert speedup_of(shrunk(evaluation, math.log(1.5))) == pytest.approx(math.sqrt(3.0))

    @given(st.floats(0.1, 20), st.floats(0.1, 20), st.floats(1, 3), st.floats(1, 3))
    def test_the_estimate_moves_towards_the_parent_with_the_noise(self, now, before, a, b):
        quiet, noisy = sorted((a, b))
        estimates = [
            speedup_of(shrunk(measured(now, spread), math.log(before)))
            for spread in (1.0, quiet, noisy)
        ]
        assert estimates[0] == pytest.approx(now)
        distances = [abs(math.log(estimate / before)) for estimate in estimates]
        assert distances[0] + 1e-9 >= distances[1] >= distances[2] - 1e-9

    @pytest.mark.parametrize("evaluation", [WRONG, ESTIMATED, measured(2.0, 1.5)])
    def test_an_evaluation_without_measurement_or_parent_is_unchanged(self, evaluation):
        assert shrunk(evaluation, -math.inf) is evaluation
        if evaluation is not WRONG and evaluation.measured is None:
            assert shrunk(evaluation, 0.5) is evaluation

    def test_an_interval_that_begins_at_zero_gives_the_parents_speedup(self):
        assert speedup_of(shrunk(measured(0.0), math.log(0.5))) == pytest.approx(0.5)


class TestRemeasure:
    def test_only_a_claim_to_beat_pytorch_and_the_best_is_measured_again(self):
        assert needs_remeasure(measured(1.1), None)
        assert needs_remeasure(measured(1.3), measured(1.2))
        assert not needs_remeasure(measured(1.2), measured(1.2))
        assert not needs_remeasure(measured(0.9), None)
        assert not needs_remeasure(ESTIMATED, None)
        assert not needs_remeasure(WRONG, None)

    def test_the_worst_evaluation_counts_at_the_cost_of_all(self):
        first, second = measured(1.5, cost=Cost(3.0, 1.0)), measured(1.3, cost=Cost(2.0, 0.5))
        found = worst_of([first, second])
        assert (speedup_of(found), found.cost) == (1.3, Cost(5.0, 1.5))
        assert worst_of([first, WRONG]).status == "wrong_output"

    def test_an_infrastructure_error_counts_only_alone(self):
        assert speedup_of(worst_of([measured(1.5), BROKEN])) == 1.5
        assert worst_of([BROKEN]) == BROKEN


class TestConfirmation:
    SEARCHED: ClassVar = {
        1: measured(1.5, 1.05),
        2: WRONG,
        3: measured(2.0, 1.05),
        4: measured(1.9, 1.05),
    }

    def test_the_fastest_are_confirmed_first_up_to_the_limit(self):
        assert next_to_confirm(self.SEARCHED, {}, 3) == 3
        assert next_to_confirm(self.SEARCHED, {3: [measured(1.9, 1.05)]}, 3) == 4
        assert next_to_confirm(self.SEARCHED, {3: [measured(1.9, 1.05)]}, 1) is None

    def test_the_race_ends_once_no_other_candidate_can_win(self):
        assert next_to_confirm(self.SEARCHED, {3: [measured(2.1, 1.05)]}, 3) is None

    def test_a_candidate_as_fast_as_the_confirmed_one_may_still_win(self):
        alike = {1: measured(2.0, 1.0), 2: measured(2.0, 1.0)}
        assert next_to_confirm(alike, {1: [measured(2.0, 1.0)]}, 3) == 2

    def test_a_slower_confirmation_lets_slower_candidates_in(self):
        confirmed = {3: [measured(1.4, 1.05)] * 3, 4: [measured(1.5, 1.05)] * 2}
        assert next_to_confirm(self.SEARCHED, confirmed, 3) == 1

    def test_a_failed_confirmation_does_not_end_the_race(self):
        assert next_to_confirm(self.SEARCHED, {3: [WRONG]}, 3) == 4
        assert next_to_confirm(self.SEARCHED, {3: [WRONG], 4: [BROKEN], 1: [WRONG]}, 3) is None

    def test_estimates_are_not_confirmed(self):
        assert next_to_confirm({1: ESTIMATED, 2: WRONG}, {}, 3) is None


NOISY = measured(0.094, 8.0)


class TestSettling:
    """A confirmation that is noisy or contradicts the search is measured again."""

    FOUND = measured(1.32, 1.01)

    @pytest.mark.parametrize(
        ("found", "confirmed", "again"),
        [
            ((1.9, 2.0), (2.1, 2.15), False),  # 5 % apart
            ((1.9, 2.0), (2.11, 2.15), True),
            ((2.1, 2.15), (1.9, 2.0), False),
            ((2.11, 2.15), (1.9, 2.0), True),
        ],
    )
    def test_measurements_agree_whose_intervals_are_at_most_5_percent_apart(
        self, found, confirmed, again
    ):
        def with_interval(interval):
            timing = replace(measured(math.sqrt(math.prod(interval))).timing, speedup_ci=interval)
            return Passed("fp32", 1e-7, timing)

        chosen = next_to_confirm({7: with_interval(found)}, {7: [with_interval(confirmed)]}, 3)
        assert chosen == (7 if again else None)

    @pytest.mark.parametrize(
        ("tries", "again"),
        [
            ([measured(1.31, 1.01)], False),
            ([NOISY], True),  # 0.01 to 0.75 for a search's 1.32
            ([NOISY, NOISY], True),
            ([NOISY, NOISY, NOISY], False),
            ([NOISY, measured(1.30, 1.01)], False),
            ([measured(0.9, 1.01)], True),  # narrow, and far from what the search measured
            ([measured(0.9, 1.01), measured(0.91, 1.01)], False),
            ([measured(0.9, 1.01), measured(1.31, 1.01)], False),
            ([NOISY, WRONG], False),
        ],
    )
    def test_confirmations_go_on_until_two_clear_measurements_agree(self, tries, again):
        chosen = next_to_confirm({7: self.FOUND}, {7: tries}, 3)
        assert chosen == (7 if again else None)

    @pytest.mark.parametrize(
        ("tries", "counts"),
        [
            ([NOISY, measured(1.30, 1.01)], 1),
            ([measured(0.9, 1.01), measured(1.31, 1.01)], 1),
            ([measured(0.9, 1.01), measured(1.1, 1.01), measured(0.91, 1.01)], 2),
            ([measured(0.9, 1.01), measured(0.7, 1.01), measured(0.8, 1.01)], 1),
            ([measured(0.9, 1.5), measured(1.2, 1.3), measured(1.3, 2.0)], 1),
            ([measured(1.31, 1.01), WRONG, measured(1.31, 1.01)], 1),
            ([measured(1.31, 1.01), BROKEN], 0),
        ],
    )
    def test_the_confirmation_that_counts(self, tries, counts):
        assert settled(self.FOUND, tries) is tries[counts]

    @pytest.mark.parametrize(
        ("searched", "last"), [(ESTIMATED, measured(1.5)), (measured(3.0), ESTIMATED)]
    )
    def test_an_estimate_contradicts_no_measurement(self, searched, last):
        assert settled(searched, [measured(1.0), last]) is last

    def test_a_measurement_under_load_is_no_clear_one(self):
        loaded = replace(self.FOUND, timing=replace(self.FOUND.timing, waited=0.1))
        assert next_to_confirm({7: self.FOUND}, {7: [loaded]}, 3) == 7

    def test_a_noisy_leader_counts_only_where_no_clear_measurement_is(self):
        clear = measured(1.3, 1.01)
        assert speedup_of(worst_of([measured(2.4, 3.0), clear])) == 1.3
        assert needs_remeasure(measured(2.4, 3.0), clear)


def on_a_gpu(time_us, eager_us=20.0):
    """Return a quiet measurement of a short call on a GPU, which proves much less than it tells."""
    found = measured(eager_us / time_us, 1.005).timing
    allowance = (1 - 0.35 / eager_us) / (1 + 3.35 / time_us), 1.0 + 0.7 / time_us
    (low, high), (below, above) = found.speedup_ci, allowance
    claimed = replace(found, speedup_ci=(low * below, high * above), allowance=allowance)
    return Passed("fp32", 1e-7, replace(claimed, time_us=time_us))


class TestUnproven:
    """What short calls do not prove of a speedup leaves the comparison of candidates alone."""

    def test_a_slower_candidate_is_told_apart(self):
        fast, slow = on_a_gpu(8.0), on_a_gpu(9.0)
        assert fast.timing.is_unproven
        assert fast.timing.speedup_ci[0] < slow.timing.speedup_ci[0] * 1.1  # claims overlap
        assert needs_remeasure(fast, slow)
        assert not needs_remeasure(slow, fast)
        assert worst_of([fast, slow]).timing == slow.timing
        assert next_to_confirm({1: slow, 2: fast}, {2: [fast]}, 3) is None

    def test_its_credit_is_that_of_its_noise(self):
        quiet, told = measured(2.5, 1.005), on_a_gpu(8.0)
        assert deviation(told.timing) == pytest.approx(deviation(quiet.timing))
        estimate = shrunk(told, 0.0)
        assert speedup_of(estimate) == pytest.approx(speedup_of(shrunk(quiet, 0.0)))
        assert estimate.timing.noise_ci == (speedup_of(estimate), speedup_of(estimate))

    @pytest.mark.parametrize(("again_us", "again"), [(8.0, False), (8.7, False), (10.5, True)])
    def test_only_a_contradiction_is_confirmed_again(self, again_us, again):
        chosen = 7 if again else None
        first, second = on_a_gpu(8.0), on_a_gpu(again_us)
        assert next_to_confirm({7: first}, {7: [second]}, 3) == chosen
        assert next_to_confirm({7: second}, {7: [first]}, 3) == chosen
