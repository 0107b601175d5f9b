import math

import pytest

from adaexplore.core.candidate import Candidate
from adaexplore.core.node import Node
from adaexplore.core.proposal import Proposal
from adaexplore.core.verdict.evaluation import Failed, Passed, Timing
from adaexplore.search.ensemble import choose_proposer, gains


def node(number, origin, speedup):
    evaluation = Failed("wrong_output", "no")
    if speedup is not None:
        timing = Timing(1.0, (1.0, 1.0), {"eager": speedup}, speedup, (speedup,) * 2, speedup, 7)
        evaluation = Passed("fp32", 0.0, timing)
    return Node(number, 0, "large", Proposal(Candidate(str(number), "cpp"), origin, ""), evaluation)


def history(*steps):
    return [node(i, origin, speedup) for i, (origin, speedup) in enumerate(steps, 1)]


class TestGains:
    def test_only_a_speedup_above_the_best_so_far_is_a_gain(self):
        steps = history(("a", 0.5), ("a", 2.0), ("b", 1.5), ("b", None), ("a", 4.0))
        assert gains(steps) == pytest.approx([0.0, math.log(2), 0.0, 0.0, math.log(2)])


class TestChoice:
    def test_every_proposer_is_asked_once_in_order(self):
        assert choose_proposer(["a", "b", "c"], []) == "a"
        assert choose_proposer(["a", "b", "c"], history(("a", 3.0))) == "b"
        assert choose_proposer(["a", "b", "c"], history(("a", 3.0), ("b", None))) == "c"

    def test_the_proposer_that_improves_is_asked_most_and_none_is_starved(self):
        steps, best = [], 1.0
        for i in range(60):
            name = choose_proposer(["good", "bad"], steps)
            if name == "good":
                best *= 1.1
            steps.append(node(i + 1, name, best if name == "good" else None))
        asked = [step.proposal.origin for step in steps]
        assert asked.count("good") > 40
        assert "bad" in asked[20:]

    def test_without_gains_proposers_are_asked_equally_often(self):
        steps = []
        for i in range(30):
            steps.append(node(i + 1, choose_proposer(["a", "b", "c"], steps), None))
        counts = [[s.proposal.origin for s in steps].count(name) for name in "abc"]
        assert max(counts) - min(counts) <= 1

    def test_known_prices_turn_gain_per_step_into_gain_per_dollar(self):
        steps = history(("cheap", 1.2), ("expensive", 1.5))
        assert choose_proposer(["cheap", "expensive"], steps) == "expensive"
        assert (
            choose_proposer(["cheap", "expensive"], steps, {"cheap": 0.01, "expensive": 1.0})
            == "cheap"
        )
        assert choose_proposer(["cheap", "expensive"], steps, {"cheap": 0.01}) == "expensive"

    def test_steps_in_flight_turn_the_choice_to_other_proposers(self):
        assert choose_proposer(["a", "b", "c"], [], under_way=["a"]) == "b"
        assert choose_proposer(["a", "b", "c"], history(("c", 3.0)), under_way=["b"]) == "a"
        steps, asked = history(("a", None), ("b", None)), []
        for _ in range(6):
            asked.append(choose_proposer(["a", "b"], steps, None, asked))
        assert asked.count("a") == asked.count("b") == 3

    def test_prices_are_per_finished_step(self):
        steps = history(("cheap", 1.2), ("expensive", 1.5))
        spent = {"cheap": 0.01, "expensive": 1.0}
        assert choose_proposer(["cheap", "expensive"], steps, spent, ["cheap"]) == "cheap"
        assert choose_proposer(["cheap", "expensive"], steps[:1], spent, ["expensive"]) == "cheap"

    def test_steps_of_other_proposers_are_ignored(self):
        assert choose_proposer(["a", "b"], history(("elsewhere", 9.0), ("a", None))) == "b"
