"""The ground that synthetic landscapes are made of."""

import random
from dataclasses import replace
from statistics import fmean

import pytest

from adaexplore_lab.simulate import SYNTHETIC
from adaexplore_lab.simulate.rugged import KNOBS, Ridge


def sure(name, **changes):
    """A landscape in which nothing fails and measurements are exact."""
    return replace(SYNTHETIC[name], fail_large=0.0, fail_small=0.0, noise=0.0, luck=0.0, **changes)


def test_small_steps_gain_less_the_less_there_is_to_gain():
    world, draw = sure("polish", p_climb=1.0).world(0), random.Random(0)
    kernel = world.grow(None, "large", [], draw)
    speedups = [kernel.speedup]
    for _ in range(200):
        kernel = world.grow(kernel, "small", [], draw)
        speedups.append(kernel.speedup)
    assert speedups == sorted(speedups)
    assert speedups[20] / speedups[0] > speedups[40] / speedups[20] > speedups[60] / speedups[40]
    assert kernel.state.gap < 1e-6


def test_a_step_from_nothing_never_climbs_the_ladder():
    world, draw = sure("ladder").world(0), random.Random(0)
    first = [world.grow(None, "large", [], draw) for _ in range(50)]
    assert {kernel.state.family for kernel in first} == {0}
    shown, seen = first[:1], set()
    for _ in range(100):
        kernel = world.grow(None, "large", shown, draw)
        seen.add(kernel.state.family)
        shown = max([shown, [kernel]], key=lambda kernels: kernels[0].state.family)
    assert seen == set(range(6))


def test_deceptive_families_start_slower_the_higher_their_ceiling():
    world, draw = sure("deceptive", rarity=1.0).world(0), random.Random(0)
    starts = {}
    for _ in range(300):
        kernel = world.grow(None, "large", [], draw)
        starts.setdefault(kernel.state.family, []).append(kernel.speedup)
    assert fmean(starts[7]) < fmean(starts[0])


def test_a_failed_kernel_is_mended_as_it_is():
    world, draw = sure("families").world(0), random.Random(0)
    broken = replace(SYNTHETIC["families"], fail_large=1.0).world(0)
    kernel = broken.grow(None, "large", [], draw)
    assert (kernel.status, kernel.speedup) != ("passed", 0.0)
    mended = world.grow(kernel, "small", [], draw)
    assert mended.status == "passed"
    assert mended.state == kernel.state


@pytest.mark.parametrize("seed", range(3))
def test_a_ridge_has_one_best_setting_and_local_optima(seed):
    ridge, draw = Ridge(random.Random(seed)), random.Random(seed)
    ends = set()
    for _ in range(60):
        knobs = ridge.start((), draw)
        for _ in range(200):
            other = ridge.step(knobs, draw)
            assert sum(a != b for a, b in zip(knobs, other, strict=True)) == 1
            knobs = min(knobs, other, key=ridge.gap)
        ends.add(ridge.gap(knobs))
    assert 0.0 in ends
    assert len(ends) > 1
    like = ridge.start((0,) * KNOBS, draw)
    assert like.count(0) >= KNOBS // 2
