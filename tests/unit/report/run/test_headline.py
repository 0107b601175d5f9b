from __future__ import annotations

from dataclasses import replace

import pytest
from hand_made import PROBLEM, estimated, failed, node, passed, run_info

from adaexplore.core.verdict.evaluation import Estimate
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.report import summarize


def headline(nodes, confirmations=()):
    return summarize(PROBLEM, nodes, run_info(confirmations=dict(confirmations))).headline


def test_a_speedup_is_claimed_only_with_its_interval_above_one():
    clear = headline([node(1, passed(1.5))])
    touching = headline([node(1, passed(1.01, spread=0.02))])
    slower = headline([node(1, passed(0.8))])

    assert (clear.verdict, touching.verdict, slower.verdict) == ("faster", "no_gain", "no_gain")
    assert "1.50× like-for-like speedup over torch.compile" in clear.sentence
    assert "its interval includes 1" in touching.sentence
    assert slower.sentence.startswith("Nothing faster than the baseline")


def test_a_claim_on_a_labelled_problem_names_the_labels():
    labels = {"constant": "zeros would pass", "overhead-bound": "launching"}
    reference = ReferenceFacts(labels=labels)
    result = summarize(PROBLEM, [node(1, passed(1.5))], run_info(reference=reference)).headline

    assert result.sentence.endswith("The problem is labelled constant, overhead-bound.")


def test_a_claim_that_counts_on_constant_weights_says_so():
    skips = replace(passed(30.0), labels=("constant-weights",))
    sentence = headline([node(1, skips)]).sentence
    assert sentence.endswith("It counts on weights that keep their first, constant values.")


def test_nothing_is_claimed_for_a_kernel_that_rests_on_luck():
    lucky = headline([node(1, replace(passed(30.0), labels=("waits-for-blocks",)))])
    assert lucky.claimed is None
    assert "wait for other blocks" in lucky.sentence
    assert "--allow-waiting" in lucky.sentence
    beside = headline(
        [node(1, replace(passed(30.0), labels=("waits-for-blocks",))), node(2, passed(2.0))]
    )
    assert (beside.verdict, beside.node_id) == ("faster", 2)


def test_a_claim_by_algebra_says_so():
    less_work = replace(passed(30.0), labels=("algebra",))
    assert headline([node(1, less_work)]).sentence.endswith("the reference's work, by algebra.")


def test_labels_are_not_named_without_a_claim():
    reference = ReferenceFacts(labels={"constant": "zeros would pass"})
    result = summarize(PROBLEM, [node(1, failed())], run_info(reference=reference)).headline

    assert "labelled" not in result.sentence


def test_the_baseline_named_is_the_faster_one():
    result = headline([node(1, passed(1.5, baselines={"eager": 500.0, "compile": 720.0}))])

    assert "over PyTorch eager" in result.sentence


def test_an_unconfirmed_claim_has_a_caveat():
    result = headline([node(1, passed(1.5)), node(2, passed(1.2))])

    assert not result.confirmed
    assert "best of 2 measurements tends to flatter" in result.caveat


def test_the_confirmation_is_claimed():
    result = headline([node(1, passed(1.5))], confirmations={1: passed(1.3)})

    assert result.confirmed
    assert result.claimed.timing.speedup == 1.3
    assert "the search had measured 1.50×" in result.caveat


def test_a_confirmation_below_one_withdraws_the_claim():
    result = headline([node(1, passed(1.1))], confirmations={1: passed(0.9)})

    assert result.verdict == "no_gain"


def test_a_failed_confirmation_withdraws_the_claim():
    result = headline([node(1, passed(1.5))], confirmations={1: failed("wrong_output", "off by 2")})

    assert result.verdict == "not_confirmed"
    assert result.claimed is None
    assert "wrong_output: off by 2" in result.sentence


def test_the_claim_and_the_star_follow_a_better_step_that_is_not_confirmed_yet():
    nodes = [node(1, passed(1.5)), node(2, passed(1.9))]

    found = summarize(PROBLEM, nodes, run_info(confirmations={1: passed(1.4)}))

    assert (found.headline.node_id, found.headline.confirmed, found.best.node.id) == (2, False, 2)
    assert "not confirmed" in found.headline.caveat
    assert "node 1: 1.40×" in found.headline.caveat


def test_the_star_is_at_the_confirmed_winner_and_not_at_the_fastest_of_the_search():
    nodes = [node(1, passed(1.5)), node(2, passed(1.9))]
    again = {2: passed(1.2), 1: passed(1.45)}

    found = summarize(PROBLEM, nodes, run_info(confirmations=again))

    assert (found.headline.node_id, found.best.node.id) == (1, 1)


def test_a_refuted_step_leads_no_more():
    nodes = [node(1, passed(1.5)), node(2, passed(1.9))]

    found = summarize(PROBLEM, nodes, run_info(confirmations={2: failed("wrong_output", "off")}))

    assert (found.headline.node_id, found.best.node.id) == (1, 1)
    assert "node 2: wrong_output" in found.headline.caveat


@pytest.mark.parametrize("node_id", [1, 7])
def test_a_confirmation_of_another_node_leaves_the_best_unconfirmed(node_id):
    nodes = [node(1, passed(1.5)), node(2, passed(1.9))]

    result = headline(nodes, confirmations={node_id: failed()})

    assert (result.node_id, result.verdict, result.confirmed) == (2, "faster", False)


def test_the_best_confirmation_is_claimed_and_the_others_are_named():
    nodes = [node(1, passed(1.5)), node(2, passed(1.9)), node(3, passed(1.6))]
    again = {2: passed(1.4), 3: passed(1.55), 1: failed("timeout")}

    result = headline(nodes, confirmations=again)

    assert (result.node_id, result.claimed.timing.speedup) == (3, 1.55)
    assert "again too: node 2: 1.40× (95 % 1.37–1.43), node 1: timeout." in result.caveat
    assert result.caveat.endswith("Node 2 measured 1.90× during the search.")


def test_an_estimate_is_never_claimed():
    result = headline([node(1, estimated()), node(2, failed())], confirmations={1: estimated()})

    assert (result.verdict, result.claimed, result.timing) == ("unmeasured", None, None)
    assert "1 of 2 steps correct, none measured" in result.sentence
    assert "12.0 µs on sm_90, an estimate (memory-bound)" in result.sentence


def test_the_shortest_complete_estimate_is_shown():
    part = replace(estimated(1.0), timing=Estimate(1.0, "memory", "sm_90", partial=True))
    result = headline([node(1, part), node(2, estimated(20.0)), node(3, estimated(12.0))])

    assert (result.node_id, result.verdict, result.claimed) == (3, "unmeasured", None)
    assert "Node 3: ≈ 12.0 µs on sm_90, an estimate" in result.sentence


def test_a_measurement_precedes_any_estimate():
    result = headline([node(1, estimated(1e-3)), node(2, passed(0.8))])

    assert (result.node_id, result.verdict) == (2, "no_gain")


def test_says_that_no_candidate_is_correct():
    result = headline([node(1, failed()), node(2, failed()), node(3, failed("timeout"))])

    assert result.verdict == "no_correct"
    assert result.sentence == "No correct candidate in 3 steps: 2 compile_error, 1 timeout."
    assert result.claimed is None


class TestNoise:
    def test_a_wide_interval_above_one_claims_its_lower_end(self):
        result = headline([node(1, spread_out(2.41, 1.006, 10.2))])

        assert result.verdict == "faster"
        assert result.sentence.startswith(
            "At least 1.006× like-for-like speedup over torch.compile"
        )

    def test_a_wide_interval_that_includes_one_is_too_noisy_to_tell(self):
        found = spread_out(0.094, 0.054, 6.43)
        result = headline([node(1, passed(1.32))], confirmations={1: found})

        assert (result.verdict, result.claimed) == ("too_noisy", found)
        assert result.sentence.startswith("Too noisy to tell")

    @pytest.mark.parametrize("confirmed", [False, True])
    def test_a_gain_under_load_is_no_claim(self, confirmed):
        found = spread_out(1.32, 1.2, 1.4)
        loaded = replace(found, timing=replace(found.timing, waited=0.05))

        assert headline([node(1, found)]).sentence.startswith("1.32×")
        result = headline([node(1, loaded)], confirmations={1: loaded} if confirmed else {})
        assert result.verdict == "too_noisy"
        assert result.sentence.startswith("Measured under load: no claim.")

    def test_a_loss_under_load_stays_a_loss(self):
        found = spread_out(0.8, 0.7, 0.9)
        loaded = replace(found, timing=replace(found.timing, waited=0.05))

        assert headline([node(1, loaded)]).verdict == "no_gain"

    def test_a_clear_step_is_starred_before_a_noisy_one_that_measured_more(self):
        nodes = [node(1, spread_out(2.41, 1.006, 10.2)), node(2, passed(1.5))]
        assert headline(nodes).node_id == 2


class TestShortCalls:
    """A quiet measurement of calls that are too short to prove it."""

    REASON = "Calls of 8.00 µs: 3 µs of each are not proven."

    def test_a_gain_claims_what_is_proven(self):
        result = headline([node(1, short_calls(2.41, 1.3, 2.5))])

        assert result.verdict == "faster"
        assert result.sentence.startswith("At least 1.31× like-for-like speedup over torch.compile")
        assert "(measured 2.41×, 95 % interval 1.30–2.50" in result.sentence
        assert result.caveat.startswith(self.REASON)

    def test_without_a_proven_gain_nothing_is_claimed(self):
        found = short_calls(1.6, 0.92, 1.7)
        result = headline([node(1, found)], confirmations={1: found})

        assert (result.verdict, result.claimed) == ("unproven", found)
        assert result.sentence.startswith("Not proven faster")
        assert (result.sentence + result.caveat).count("not proven") == 1
        assert self.REASON in result.caveat
        assert "noisy" not in result.sentence

    def test_a_loss_is_a_loss(self):
        assert headline([node(1, short_calls(0.7, 0.5, 0.8))]).verdict == "no_gain"


def short_calls(speedup, low, high):
    found = spread_out(speedup, low, high)
    allowance = low / (0.99 * speedup), high / (1.01 * speedup)
    return replace(found, timing=replace(found.timing, time_us=8.0, allowance=allowance))


def spread_out(speedup, low, high):
    found = passed(speedup)
    return replace(found, timing=replace(found.timing, speedup_ci=(low, high)))
