"""Parties here keep no time of their own: what they report is computed, so results are exact."""

import itertools
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore.core.verdict.evaluation import is_wide
from adaexplore.evaluate.timing.measure import (
    CANDIDATE,
    MeasuringEffort,
    charged,
    discounted,
    effort_for,
    measure,
    summarize,
    widened,
)
from adaexplore.evaluate.timing.rounds import Block

QUICK = MeasuringEffort(min_rounds=5, max_rounds=8)
ON_A_GPU = effort_for("cuda:0")


def blocks(**times_us: float) -> dict[str, Block]:
    """Return a round of blocks without noise and load."""
    return {name: Block(time_us) for name, time_us in times_us.items()}


def constant(time_us: float):
    return lambda count: [time_us] * count


def parties(candidate, **baselines):
    return {CANDIDATE: candidate} | baselines


class Counting:
    """A party that notes how many calls each block asked for."""

    def __init__(self, time_us: float) -> None:
        self.time_us = time_us
        self.blocks: list[int] = []

    def __call__(self, count: int) -> list[float]:
        self.blocks.append(count)
        return [self.time_us] * count


class TestMeasure:
    def test_constant_times_give_the_exact_speedup(self):
        timing = measure(
            parties(constant(50.0), eager=constant(200.0), compile=constant(100.0)), QUICK
        )
        assert timing.time_us == 50.0
        assert timing.time_ci_us == (50.0, 50.0)
        assert timing.baselines_us == {"eager": 200.0, "compile": 100.0}
        assert timing.speedup == 2.0
        assert timing.speedup_ci == (2.0, 2.0)
        assert timing.speedup_eager == 4.0

    def test_the_better_baseline_counts_whichever_it_is(self):
        timing = measure(
            parties(constant(50.0), eager=constant(75.0), compile=constant(100.0)), QUICK
        )
        assert timing.speedup == timing.speedup_eager == 1.5

    def test_eager_alone_is_enough(self):
        assert measure(parties(constant(50.0), eager=constant(100.0)), QUICK).speedup == 2.0

    def test_every_party_is_timed_equally_often(self):
        all_parties = parties(Counting(50.0), eager=Counting(100.0), compile=Counting(80.0))
        measure(all_parties, QUICK)
        assert len({len(party.blocks) for party in all_parties.values()}) == 1

    def test_the_samples_are_the_candidate_s_calls_after_the_pilot(self):
        candidate = Counting(1000.0)
        timing = measure(parties(candidate, eager=constant(1000.0)), QUICK)
        pilot, *rounds = candidate.blocks
        assert timing.samples == sum(rounds)
        assert pilot < timing.samples

    def test_a_block_takes_about_as_long_as_asked(self):
        slow, fast = Counting(5000.0), Counting(50.0)
        measure(parties(slow, eager=fast), MeasuringEffort(block_us=20_000.0, min_rounds=3))
        assert slow.blocks[-1] == 4
        assert fast.blocks[-1] == 100  # no more, however fast

    def test_calls_longer_than_a_block_are_made_one_by_one_but_twice_by_a_candidate(self):
        candidate, eager = Counting(1e6), Counting(1e6)
        measure(parties(candidate, eager=eager), MeasuringEffort(block_us=20_000.0, min_rounds=3))
        assert candidate.blocks[-1] == 2
        assert eager.blocks[-1] == 1

    def test_a_candidate_that_is_slow_at_first_gets_no_short_blocks(self):
        blocks = []

        def slow_at_first(count):
            blocks.append(count)
            return [1e6 if len(blocks) <= 2 else 100.0] * count

        timing = measure(parties(slow_at_first, eager=constant(100.0)), QUICK)
        assert blocks[:3] == [3, 2, 2]
        assert set(blocks[3:]) == {100}
        assert timing.samples == sum(blocks[1:])

    def test_taking_turns_at_a_turnstile_is_no_load(self):
        waited_us = [0.0]

        def turns(count):
            waited_us[0] += 3.0 * count
            return [1.0] * count

        every = parties(turns, eager=turns)
        assert measure(every, QUICK, waited_us=lambda: waited_us[0]).waited == 0.0

    def test_rounds_end_when_the_interval_is_narrow(self):
        candidate = Counting(100.0)
        measure(
            parties(candidate, eager=constant(100.0)), MeasuringEffort(min_rounds=5, max_rounds=40)
        )
        assert len(candidate.blocks) == 1 + 5

    def test_noisy_rounds_go_on_to_the_limit(self):
        rng = random.Random(0)
        blocks = []

        def noisy(count):
            blocks.append(count)
            return [rng.uniform(50.0, 150.0)] * count

        effort = MeasuringEffort(min_rounds=5, max_rounds=9, patience=1.0)
        measure(parties(noisy, eager=constant(100.0)), effort)
        assert len(blocks) == 1 + 9

    def test_a_wide_interval_is_measured_on_until_it_is_narrow(self):
        blocks = []

        def noisy_at_first(count):
            blocks.append(count)
            slow = len(blocks) < 10 and len(blocks) % 2
            return [150.0 if slow else 50.0] * count

        effort = MeasuringEffort(min_rounds=5, max_rounds=9, patience=4.0)
        timing = measure(parties(noisy_at_first, eager=constant(100.0)), effort)
        assert 1 + 9 < len(blocks) < 1 + 4 * 9
        assert timing.speedup == 2.0
        assert not is_wide(timing.speedup_ci)

    def test_a_machine_that_stays_noisy_ends_with_an_interval_that_says_so(self):
        blocks = []

        def noisy(count):
            blocks.append(count)
            return [50.0 if len(blocks) % 2 else 150.0] * count

        effort = MeasuringEffort(min_rounds=5, max_rounds=9, patience=2.0)
        timing = measure(parties(noisy, eager=constant(100.0)), effort)
        assert len(blocks) == 1 + 2 * 9
        assert timing.is_too_noisy
        assert timing.claim == timing.speedup_ci[0] < 1.0

    def test_a_hopeless_candidate_gets_the_fewest_rounds(self):
        rng = random.Random(0)
        blocks = []

        def slow_and_noisy(count):
            blocks.append(count)
            return [rng.uniform(1000.0, 2000.0)] * count

        measure(parties(slow_and_noisy, eager=constant(100.0)), MeasuringEffort(min_rounds=5))
        assert len(blocks) == 1 + 5

    def test_a_budget_of_no_time_ends_after_the_fewest_rounds(self):
        rng = random.Random(0)
        blocks = []

        def noisy(count):
            blocks.append(count)
            return [rng.uniform(50.0, 150.0)] * count

        measure(parties(noisy, eager=constant(100.0)), MeasuringEffort(min_rounds=5, budget_s=0.0))
        assert len(blocks) == 1 + 5

    def test_the_order_of_the_parties_changes_from_round_to_round(self):
        calls: list[str] = []

        def noted(name):
            return lambda count: calls.append(name) or [100.0] * count

        names = [CANDIDATE, "eager", "compile"]
        measure({name: noted(name) for name in names}, MeasuringEffort(min_rounds=12))
        rounds = [tuple(calls[at : at + 3]) for at in range(3, len(calls), 3)]
        assert all(sorted(order) == sorted(names) for order in rounds)
        assert len(set(rounds)) > 2
        assert len({order.index(CANDIDATE) for order in rounds}) == 3


class TestUnevenBlocks:
    """A candidate whose one call does the work of the others gains nothing by the median."""

    def test_the_work_of_all_calls_in_one_of_them_counts(self):
        def all_in_one(count):
            return [100.0 * count] + [0.0] * (count - 1)

        timing = measure(parties(all_in_one, eager=constant(100.0)), QUICK)
        assert timing.speedup == pytest.approx(1.0)
        assert timing.time_us == pytest.approx(100.0)

    def test_noise_that_the_baselines_have_too_is_none_of_its_work(self):
        def noisy(count):
            return [600.0] + [100.0] * (count - 1)

        assert measure(parties(noisy, eager=noisy), QUICK).time_us == 100.0


class Load:
    """Other programs that delay a party in some of its blocks."""

    def __init__(self, delayed_blocks: int, factor: float = 10.0) -> None:
        self.left = delayed_blocks
        self.factor = factor
        self.waited_us = 0.0

    def delay(self, time_us: float):
        def block(count):
            self.left -= 1
            if self.left < 0:
                return [time_us] * count
            self.waited_us += 1e6
            return [time_us * self.factor] * count

        return block


class TestLoad:
    def test_rounds_under_load_are_measured_again(self):
        load = Load(delayed_blocks=1 + 3)  # the pilot, and three rounds
        delayed = parties(constant(100.0), eager=load.delay(100.0))
        timing = measure(delayed, QUICK, waited_us=lambda: load.waited_us)
        assert (timing.speedup, timing.speedup_ci, timing.waited) == (1.0, (1.0, 1.0), 0.0)
        assert timing.samples == QUICK.min_rounds * 100

    @pytest.mark.parametrize("delayed", [CANDIDATE, "eager"])
    def test_under_constant_load_the_interval_holds_the_truth(self, delayed):
        load = Load(delayed_blocks=1000)
        times = {CANDIDATE: constant(100.0), "eager": constant(100.0)}
        times[delayed] = load.delay(100.0)
        timing = measure(times, QUICK, waited_us=lambda: load.waited_us)
        assert timing.speedup == pytest.approx(0.1 if delayed == CANDIDATE else 10.0)
        low, high = timing.speedup_ci
        assert low <= 1.0 <= high
        assert timing.waited > 0.5

    def test_the_interval_of_short_calls_on_a_gpu_is_wider_by_both(self):
        load = Load(delayed_blocks=1000)
        times = {CANDIDATE: constant(8.0), "eager": load.delay(8.0)}
        timing = measure(times, replace(QUICK, unseen_us=8.0), waited_us=lambda: load.waited_us)
        low, high = timing.speedup_ci
        assert (low, high) == pytest.approx((timing.noise_ci[0] / 2, timing.noise_ci[1]))
        assert timing.waited > 0.5

    def test_the_interval_is_as_much_wider_as_the_parties_waited(self):
        rounds = [{CANDIDATE: Block(50.0, waited=0.2), "eager": Block(100.0, waited=0.5)}] * 6
        timing = widened(summarize(rounds, 6), rounds)
        assert timing.speedup == 2.0
        assert timing.speedup_ci == pytest.approx((1.0, 2.5))
        assert timing.waited == 0.5


class TestSummary:
    @given(
        drift=st.lists(st.floats(0.1, 10.0), min_size=3, max_size=12),
        candidate=st.floats(1.0, 1e4),
        eager=st.floats(1.0, 1e4),
    )
    @settings(max_examples=50)
    def test_drift_that_hits_all_parties_of_a_round_cancels(self, drift, candidate, eager):
        rounds = [blocks(candidate=candidate * d, eager=eager * d) for d in drift]
        timing = summarize(rounds, samples=len(rounds))
        assert timing.speedup == pytest.approx(eager / candidate)
        assert timing.speedup_ci == pytest.approx((eager / candidate, eager / candidate))

    def test_one_disturbed_round_does_not_move_the_median(self):
        rounds = [blocks(candidate=50.0, eager=100.0) for _ in range(10)]
        rounds[4] = blocks(candidate=500.0, eager=100.0)
        timing = summarize(rounds, samples=10)
        assert (timing.time_us, timing.speedup) == (50.0, 2.0)

    @given(
        times=st.lists(
            st.tuples(*itertools.repeat(st.floats(1.0, 100.0), 3)), min_size=1, max_size=10
        )
    )
    @settings(max_examples=50)
    def test_the_interval_holds_the_speedup_which_is_over_the_best_baseline(self, times):
        rounds = [blocks(candidate=c, eager=e, compile=k) for c, e, k in times]
        timing = summarize(rounds, samples=1)
        low, high = timing.speedup_ci
        assert low <= timing.speedup <= high
        assert set(timing.baselines_us) == {"eager", "compile"}
        over = {"eager": timing.speedup_eager, "compile": timing.speedup_compile}
        assert timing.speedup == min(over.values()) == over[timing.strongest]

    def test_the_strongest_baseline_is_the_one_that_the_speedup_is_over(self):
        # Compile has the smaller median, but in most rounds the smaller speedup is over eager.
        times = [(10.0, 20.0, 21.0), (20.0, 38.0, 42.0), (30.0, 60.0, 33.0)]
        rounds = [blocks(candidate=c, eager=e, compile=k) for c, e, k in times]
        timing = summarize(rounds, samples=3)
        assert timing.baselines_us["compile"] < timing.baselines_us["eager"]
        assert (timing.speedup, timing.strongest) == (2.0, "eager")


def on_a_gpu(**times_us):
    """Return the timing of quiet rounds in which every block had these times."""
    return measure({name: constant(time_us) for name, time_us in times_us.items()}, ON_A_GPU)


class TestAllowance:
    """Times of single calls on a GPU: clocks that differ by process, and what a forger may hide."""

    @pytest.mark.parametrize(("candidate", "eager"), [(7.68, 8.38), (8.38, 7.68), (2.0, 2.7)])
    def test_the_interval_of_the_same_code_holds_one(self, candidate, eager):
        timing = on_a_gpu(candidate=candidate, eager=eager)
        low, high = timing.speedup_ci
        assert low <= 1.0 <= high
        soonest, latest = timing.time_ci_us
        assert soonest == pytest.approx(candidate - 0.35)
        assert latest == pytest.approx(candidate + 0.35 + 3.0)

    def test_a_time_that_is_forged_by_3_us_is_no_gain(self):
        timing = on_a_gpu(candidate=5.0, eager=8.0)
        assert timing.speedup == 1.6
        assert timing.speedup_ci[0] == pytest.approx(7.65 / 8.35)
        assert timing.speedup_ci[1] < 1.8  # nobody hides that they are faster
        assert timing.claim == pytest.approx(timing.speedup_ci[0])
        assert timing.is_unproven
        assert not timing.is_too_noisy

    @pytest.mark.parametrize("honest_us", [6.0, 12.0, 20.0, 22.0, 40.0, 60.0, 200.0, 5000.0])
    def test_the_same_code_that_hides_3_us_claims_no_gain_at_any_length(self, honest_us):
        timing = on_a_gpu(candidate=honest_us - 3.0, eager=honest_us)
        assert timing.speedup > 1.0
        assert timing.claim <= 1.0

    def test_a_brief_measurement_allows_for_as_much(self):
        brief = effort_for("cuda:0", brief=True)
        timing = measure(parties(constant(5.0), eager=constant(8.0)), brief)
        assert timing.speedup_ci == on_a_gpu(candidate=5.0, eager=8.0).speedup_ci

    def test_the_noise_is_that_of_the_rounds_alone(self):
        timing = on_a_gpu(candidate=5.0, eager=8.0)
        assert timing.noise_ci == pytest.approx((1.6, 1.6))
        assert timing.at_least == timing.speedup
        assert not timing.is_noisy

    def test_nothing_is_allowed_for_on_a_processor(self):
        times = {CANDIDATE: constant(5.0), "eager": constant(8.0)}
        timing = measure(times, replace(effort_for("cpu"), budget_s=0.05))
        assert timing.speedup_ci == timing.noise_ci == (1.6, 1.6)
        assert timing.time_ci_us == (5.0, 5.0)

    def test_a_long_call_is_told_as_exactly_as_before(self):
        timing = on_a_gpu(candidate=1000.0, eager=2000.0)
        assert timing.claim == pytest.approx(2.0, rel=5e-3)
        assert timing.speedup == 2.0
        assert timing.speedup_ci == pytest.approx((2.0, 2.0), rel=5e-3)

    def test_a_parent_is_compared_with_care_for_the_clocks_alone(self):
        paired = on_a_gpu(candidate=8.0, eager=30.0, parent=8.5).parent
        assert paired.speedup_ci[0] <= 1.0 < paired.speedup < paired.speedup_ci[1]
        assert on_a_gpu(candidate=8.0, eager=30.0, parent=10.0).parent.speedup_ci[0] > 1.1

    def test_times_as_short_as_the_clock_is_coarse_tell_nothing(self):
        timing = on_a_gpu(candidate=0.3, eager=0.3)
        assert 0.0 < timing.speedup_ci[0] < 0.01
        assert timing.time_ci_us[0] == 0.0
        assert timing.is_unproven


class TestQuoted:
    """Speedups over eager and `torch.compile`'s defaults, timed beside the candidate or not."""

    ROUNDS = [blocks(**{CANDIDATE: 50.0, "eager-cuda-graph": 100.0, "compile": 200.0})] * 3

    def test_a_party_is_compared_with_directly(self):
        known_us = {"eager": 1.0, "eager-cuda-graph": 1.0, "compile": 1.0}
        assert summarize(self.ROUNDS, 1, known_us).speedup_compile == 4.0

    def test_what_is_no_party_is_compared_with_by_way_of_the_strongest(self):
        timing = summarize(self.ROUNDS, 1, {"eager": 90.0, "eager-cuda-graph": 30.0})
        assert (timing.strongest, timing.speedup, timing.speedup_eager) == (
            "eager-cuda-graph",
            2.0,
            6.0,
        )

    def test_without_torch_compile_there_is_no_speedup_over_it(self):
        rounds = [blocks(candidate=50.0, eager=100.0)] * 3
        assert summarize(rounds, 1).speedup_compile is None
        assert summarize(rounds, 1, {"eager": 100.0}).speedup_compile is None

    def test_baselines_keep_their_order_in_every_round(self):
        names = ["eager", "compile", "compile-max-autotune"]
        timing = measure(parties(constant(1.0), **dict.fromkeys(names, constant(2.0))), QUICK)
        assert list(timing.baselines_us) == names


class TestParent:
    def test_it_is_compared_with_in_the_same_rounds(self):
        timing = measure(
            parties(constant(50.0), eager=constant(100.0), parent=constant(60.0)), QUICK
        )
        assert timing.parent is not None
        assert timing.parent.time_us == 60.0
        assert timing.parent.speedup == 1.2
        assert timing.parent.speedup_ci == (1.2, 1.2)

    def test_it_is_no_baseline(self):
        timing = measure(
            parties(constant(50.0), eager=constant(100.0), parent=constant(10.0)), QUICK
        )
        assert timing.speedup == 2.0
        assert timing.baselines_us == {"eager": 100.0}

    def test_without_one_there_is_no_comparison(self):
        assert measure(parties(constant(50.0), eager=constant(100.0)), QUICK).parent is None


def test_a_candidate_far_behind_the_best_known_is_measured_briefly():
    noisy = [Jittery(100.0), Jittery(100.0)]
    effort = replace(QUICK, patience=1.0)
    measure(parties(noisy[0], eager=constant(90.0)), effort)
    measure(parties(noisy[1], eager=constant(90.0)), effort, best_us=20.0)
    assert noisy[0].blocks == 1 + QUICK.max_rounds
    assert noisy[1].blocks == 1 + QUICK.min_rounds


class Jittery:
    """A party whose times never settle; counts its blocks."""

    def __init__(self, time_us: float) -> None:
        self.time_us = time_us
        self.blocks = 0

    def __call__(self, count: int) -> list[float]:
        self.blocks += 1
        return [self.time_us * (1.0 + 0.2 * (self.blocks % 3))] * count


def test_what_is_charged_makes_every_call_longer():
    timing = measure(parties(constant(50.0), eager=constant(200.0), compile=constant(150.0)), QUICK)
    charge = charged(timing, 25.0)
    assert (charge.time_us, charge.time_ci_us) == (75.0, (75.0, 75.0))
    assert (charge.speedup, charge.speedup_ci) == (2.0, (2.0, 2.0))
    assert (charge.speedup_eager, charge.speedup_compile) == pytest.approx((200 / 75, 2.0))
    assert charged(timing, 0.0) == timing


def test_what_blocks_leave_open_is_charged_by_its_median_over_the_rounds():
    opened = itertools.cycle([10.0, 900.0, -500.0])
    timing = measure(
        parties(constant(50.0), eager=constant(120.0)),
        replace(QUICK, min_rounds=9, max_rounds=9),
        open_us=lambda: next(opened),
    )
    assert (timing.time_us, timing.speedup) == (60.0, 2.0)


def test_only_rounds_that_count_are_charged():
    load, told = Load(delayed_blocks=1 + 6), iter([0.0] * 6 + [30.0] * 99)
    timing = measure(
        parties(constant(20.0), eager=load.delay(100.0)),
        replace(QUICK, max_rounds=20),
        waited_us=lambda: load.waited_us,
        open_us=lambda: next(told),
    )
    assert (timing.time_us, timing.speedup) == (50.0, 2.0)


class TestDiscounted:
    TIMING = measure(parties(constant(50.0), eager=constant(200.0), compile=constant(150.0)), QUICK)

    def test_the_quiet_baselines_count(self):
        timing = discounted(self.TIMING, {"eager": 100.0, "compile": 75.0})
        assert timing.speedup == 1.5
        assert timing.speedup_ci == (1.5, 1.5)
        assert timing.speedup_eager == 2.0
        assert timing.time_us == 50.0

    def test_a_baseline_that_was_not_beside_changes_as_the_strongest_does(self):
        rounds = [blocks(**{CANDIDATE: 50.0, "eager-cuda-graph": 100.0})] * 3
        timing = summarize(rounds, 1, {"eager-cuda-graph": 10.0, "eager": 20.0, "compile": 40.0})
        found = discounted(timing, {"eager-cuda-graph": 50.0, "eager": 1.0, "compile": 1.0})
        assert (found.speedup, found.speedup_eager, found.speedup_compile) == (1.0, 2.0, 4.0)
        assert found.baselines_us == {"eager-cuda-graph": 50.0}

    def test_nobody_gains_by_a_quiet_moment_that_was_slower(self):
        timing = discounted(self.TIMING, {"eager": 400.0, "compile": 300.0})
        assert (timing.speedup, timing.speedup_eager) == (3.0, 4.0)


class TestEffort:
    def test_seven_rounds_are_the_fewest_without_other_wishes(self):
        candidate = Counting(100.0)
        measure(parties(candidate, eager=constant(100.0)))
        assert len(candidate.blocks) == 1 + 7

    @pytest.mark.parametrize("device", ["cpu", "cuda:0"])
    def test_a_brief_look_takes_a_fraction_of_the_time(self, device):
        brief, full = effort_for(device, brief=True), effort_for(device)
        assert (brief.budget_s, full.budget_s) == (0.5, 3.0)
        assert brief.other_us < full.other_us
        assert brief.max_rounds < full.max_rounds

    def test_a_gpus_baselines_take_shorter_blocks_than_a_candidate_that_may_hide_work(self):
        effort = effort_for("cuda:0")
        assert (effort.block_us, effort.other_us) == (20_000.0, 10_000.0)
        assert effort_for("cuda:0", brief=True).block_us == 20_000.0
        assert effort_for("cpu", brief=True).block_us == 5_000.0
