"""Landscapes fitted to runs."""

import random
from statistics import fmean

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore_lab.simulate import (
    FITS,
    RecordedRun,
    RecordedStep,
    fitted_landscapes,
    parse_contender,
    run,
)


def step(number, parent, kind, speedup, origin="model", status="wrong_output"):
    status = "passed" if speedup else status
    return RecordedStep(
        number, parent, kind, origin, status, speedup, 2 * speedup, 0.01 if speedup else None, (1,)
    )


def steady(name, problem, low, high):
    """Large steps from nothing give `low`, small ones from that `high`, each second one fails."""
    steps = [step(number, 0, "large", low) for number in range(1, 13)]
    steps += [step(number, number - 12, "small", high * (number % 2)) for number in range(13, 37)]
    return RecordedRun(name, problem, tuple(steps))


@pytest.fixture
def landscapes():
    return fitted_landscapes([steady("a", "near", 1.0, 1.1), steady("b", "far", 2.0, 8.0)])


def grown(world, parent, kind, shown=(), count=300):
    rng = random.Random(0)
    return [world.grow(parent, kind, shown, rng) for _ in range(count)]


def test_each_problem_has_its_own_speeds_and_what_steps_come_to_is_learned_from_all(landscapes):
    for landscape, low, high in zip(landscapes, (1.0, 2.0), (1.1, 8.0), strict=True):
        world = landscape.world(0)
        assert world.optimum == pytest.approx(high)
        first = grown(world, None, "large")
        assert all(kernel.speedup == pytest.approx(low) for kernel in first)
        after = grown(world, first[0], "small")
        assert {round(kernel.speedup, 6) for kernel in after} == {0.0, high}
        assert 0.4 < fmean(kernel.status == "passed" for kernel in after) < 0.6


def test_a_problem_of_few_steps_borrows_those_of_others():
    few = RecordedRun("c", "few", (step(1, 0, "large", 1.0), step(2, 1, "large", 4.0)))
    [_, borrows] = fitted_landscapes([steady("a", "near", 1.0, 1.1), few])
    world = borrows.world(3)
    [first, *_] = grown(world, None, "large")
    assert 4.0 in {round(kernel.speedup, 6) for kernel in grown(world, first, "small")}


def test_a_step_is_answered_by_those_that_started_as_near():
    slow = [step(n, 0, "large", 1.0) for n in range(1, 16)]
    fast = [step(n, 0, "large", 4.0) for n in range(16, 31)]
    down = [step(n, n - 15, "small", 2.0) for n in range(31, 46)]
    up = [step(n, n - 45, "small", 3.0) for n in range(46, 61)]
    [landscape] = fitted_landscapes([RecordedRun("a", "x", (*slow, *fast, *down, *up))])
    world = landscape.world(0)
    first = {round(kernel.speedup): kernel for kernel in grown(world, None, "large")}
    assert {round(k.speedup, 6) for k in grown(world, first[4], "small")} == {2.0}
    assert {round(k.speedup, 6) for k in grown(world, first[1], "small")} == {3.0}


def test_a_large_step_starts_from_the_best_that_it_is_shown():
    alone = [step(n, 0, "large", 1.0) for n in range(1, 16)]
    shown = [step(n, n - 15, "large", 3.0) for n in range(16, 31)]
    small = [step(31, 1, "small", 1.0)]
    [landscape] = fitted_landscapes([RecordedRun("a", "x", (*alone, *shown, *small))])
    world = landscape.world(0)
    [first, *_] = grown(world, None, "large")
    wrong = next(k for k in grown(fitted_with_failures(), None, "large") if not k.speedup)
    assert {round(k.speedup, 6) for k in grown(world, None, "large", [wrong])} == {1.0}
    assert {round(k.speedup, 6) for k in grown(world, None, "large", [wrong, first])} == {3.0}


def fitted_with_failures():
    steps = [step(n, 0, "large", float(n % 2)) for n in range(1, 13)]
    [landscape] = fitted_landscapes([RecordedRun("a", "x", (*steps, step(13, 1, "small", 1.0)))])
    return landscape.world(0)


def test_seeds_of_the_compiler_are_where_steps_start_and_not_what_comes_of_them():
    seeds = [step(n, 0, "large", 1.0, origin="compiler") for n in range(1, 4)]
    own = [step(n, 1 + n % 3, "small", 5.0) for n in range(4, 20)]
    own += [step(n, 0, "large", 4.0) for n in range(20, 32)]
    [landscape] = fitted_landscapes([RecordedRun("a", "x", (*seeds, *own))])
    world = landscape.world(0)
    assert {round(k.speedup, 6) for k in grown(world, None, "large")} == {4.0}
    [only] = fitted_landscapes(
        [RecordedRun("a", "x", (*seeds, step(4, 1, "small", 2.0, "compiler")))]
    )
    assert only.world(0).optimum == pytest.approx(2.0)


def test_fits_differ_by_seed_and_come_again(landscapes):
    """One of two runs failed throughout: a fit has both, or only the other."""
    other = steady("c", "near", 1.0, 1.1)
    failing = RecordedRun("d", "near", tuple(step(n, 0, "large", 0.0) for n in range(1, 13)))
    [landscape] = fitted_landscapes([other, failing])

    def failures(seed):
        return fmean(k.status != "passed" for k in grown(landscape.world(seed), None, "large"))

    assert {round(failures(seed) * 2) / 2 for seed in range(12)} == {0.0, 0.5}
    assert failures(5) == failures(5 + FITS)


def test_a_search_stays_below_the_best_that_was_recorded(landscapes):
    for landscape in landscapes:
        found = run(parse_contender("archive"), landscape, seed=0, steps=40)
        assert 1.0 < found[-1] <= landscape.world(0).optimum * (1 + 1e-9)


def test_the_published_reward_is_told_of_the_speedup_over_eager(landscapes):
    [kernel, *_] = grown(landscapes[0].world(0), None, "large")
    timing = kernel.evaluation.measured
    assert timing.speedup_eager == pytest.approx(2 * timing.speedup)


def test_a_measurement_has_a_recorded_noise_and_says_so(landscapes):
    world = landscapes[0].world(0)
    kernel = grown(world, None, "large")[0]
    again = [world.measure(kernel, random.Random(n)) for n in range(200)]
    assert {each.deviation for each in again} == {0.01}
    assert fmean(abs(each.measured / kernel.speedup - 1) for each in again) < 0.02
    assert len({each.measured for each in again}) == 200


def test_what_nothing_can_be_fitted_to():
    wrong = RecordedRun("a", "hard", (step(1, 0, "large", 0.0),))
    with pytest.raises(BadInputError, match="hard: no kernel was correct"):
        fitted_landscapes([steady("b", "x", 1.0, 2.0), wrong])
    with pytest.raises(BadInputError, match="a: there are no small steps"):
        fitted_landscapes([RecordedRun("a", "x", (step(1, 0, "large", 2.0),))])
