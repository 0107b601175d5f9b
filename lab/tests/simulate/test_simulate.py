"""Simulated searches: what is found, how it is told, and how contenders are asked for."""

import math
from itertools import pairwise
from statistics import fmean

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore_lab.simulate import (
    SYNTHETIC,
    Experiment,
    Outcome,
    checkpoints,
    parse_contender,
    run,
    simulate,
    standings,
)

FAMILIES = SYNTHETIC["families"]


class TestContenders:
    def test_a_setting_and_a_parameter_of_the_policy_s_own(self):
        contender = parse_contender("beam:width=3,p_large=0.5")
        assert contender.settings.chosen_policy == "beam"
        assert contender.settings.p_large == 0.5
        assert contender.settings.policy_parameters == {"width": 3}
        assert contender.policy() is not contender.policy()

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("nothing", "no policy 'nothing'; known: auto, uct, "),
            ("uct:width=3", "width: no such setting"),
            ("beam:width=wide", "width is a whole number, not 'wide'"),
            ("polca:epsilon=-1", "epsilon is 0 or more"),
            ("uct:c=-1", "greater than or equal to 0"),
            ("uct:c", "key=value"),
        ],
    )
    def test_what_there_is_not(self, text, message):
        with pytest.raises(BadInputError, match=message):
            parse_contender(text)

    @pytest.mark.parametrize("text", ["archive:contrast=true", "uct:p_strategy=0,c=0.5"])
    def test_settings_that_only_change_prompts_cannot_be_simulated(self, text):
        with pytest.raises(BadInputError, match="cannot be simulated: it changes prompts alone"):
            parse_contender(text)


class TestSearches:
    @pytest.mark.parametrize("landscape", SYNTHETIC.values(), ids=list(SYNTHETIC))
    @pytest.mark.parametrize("policy", ["uct", "islands", "polca", "archive"])
    def test_what_is_found_is_real_and_below_the_optimum(self, landscape, policy):
        found = run(parse_contender(policy), landscape, seed=3, steps=40)
        assert len(found) == 40
        assert max(found) <= landscape.world(3).optimum * (1 + 1e-9)
        if landscape.noise <= 0.01:
            assert all(b >= 0.9 * a for a, b in pairwise(found))

    def test_the_same_seed_finds_the_same_and_another_does_not(self):
        contender = parse_contender("archive")
        assert run(contender, FAMILIES, 1, 50) == run(contender, FAMILIES, 1, 50)
        assert run(contender, FAMILIES, 1, 50) != run(contender, FAMILIES, 2, 50)

    def test_steps_under_way_are_found_as_well(self):
        """Eight at a time find about what one at a time finds."""
        contender = parse_contender("uct")
        alone = fmean(run(contender, FAMILIES, seed, 100)[-1] for seed in range(20))
        abreast = fmean(run(contender, FAMILIES, seed, 100, parallel=8)[-1] for seed in range(20))
        assert 0.8 * alone < abreast < 1.25 * alone

    def test_more_processes_find_the_same(self):
        plan = Experiment(
            [parse_contender("ps"), parse_contender("uct")], [FAMILIES], 10, range(12)
        )
        done = []
        assert simulate(plan, jobs=2, progress=done.append) == simulate(plan)
        assert sum(done) == 24


class TestStandings:
    def test_means_ratios_and_shares_by_hand(self):
        outcomes = [
            Outcome("a", "x", [4.0, 4.0], [[1.0, 2.0], [1.0, 2.0]]),
            Outcome("b", "x", [4.0, 4.0], [[1.0, 4.0], [2.0, 4.0]]),
        ]
        rows = {(s.contender, s.landscape, s.step): s for s in standings(outcomes)}
        assert {step for _, _, step in rows} == {2}
        assert rows["a", "x", 2].speedup == pytest.approx(2.0)
        assert rows["a", "x", 2].share == pytest.approx(0.5)
        assert rows["b", "x", 2].ratio == pytest.approx(2.0)
        assert rows["b", "x", 2].ratio_interval == pytest.approx((2.0, 2.0))
        assert rows["b", "all", 2].speedup == pytest.approx(4.0)

    def test_an_interval_holds_the_mean_and_narrows_with_seeds(self):
        logs = [math.sin(7.0 * i) for i in range(200)]

        def width(count):
            curves = [[math.exp(log)] for log in logs[:count]]
            [only, _] = standings([Outcome("a", "x", [9.0] * count, curves)])
            low, high = only.interval
            assert low < only.speedup < high
            return math.log(high / low)

        # The deviation of a sine is 0.707: 3.92 * 0.707 / sqrt(200) = 0.196.
        assert width(200) == pytest.approx(0.196, rel=0.2)
        assert width(50) > 1.5 * width(200)

    def test_checkpoints_end_with_the_last_step(self):
        assert checkpoints(100) == [10, 25, 50, 100]
        assert checkpoints(60) == [10, 25, 50, 60]
        assert checkpoints(5) == [5]
