"""The tables of a campaign of searches."""

import dataclasses
import json

import searches_table

from adaexplore.core.candidate import Candidate
from adaexplore.core.node import Node
from adaexplore.core.proposal import Proposal
from adaexplore.core.verdict.evaluation import Failed, Passed, Timing
from adaexplore.report.campaign.summary import CampaignSummary, Result, Spending

SUMMARY = CampaignSummary("record", "", "", "", (), (), Spending(calls=4, tokens=10), 1.0)


def passed(speedup, labels=()):
    timing = Timing(
        time_us=1.0,
        time_ci_us=(1.0, 1.0),
        baselines_us={"eager": speedup},
        speedup=speedup,
        speedup_ci=(speedup, speedup),
        speedup_eager=2 * speedup,
        samples=100,
    )
    return Passed("tf32", 1e-4, timing, labels=labels)


def steps(*evaluations):
    proposal = Proposal(Candidate("class ModelNew: ...", "triton"), "manual", "a step")
    return [Node(i + 1, i, "large", proposal, one) for i, one in enumerate(evaluations)]


def row(name, *speedups, labels=(), problem_labels=None):
    best = passed(max(speedups), labels)
    result = Result(
        *(name, "tf32", "cuda:0", "finished", ""),
        steps=len(speedups),
        verdict="faster",
        claimed=best,
        confirmed=True,
        labels=problem_labels or {},
        category="level 2",
    )
    made = steps(*map(passed, speedups))
    after = tuple(searches_table.best_claim(made[:count]) for count in (1, 3))
    return searches_table.Row(result, after, first_is_right=True)


def test_after_some_steps_the_best_right_candidate_so_far_counts():
    made = steps(passed(0.5), Failed("wrong_output", "off"), passed(3.0), passed(2.0))
    assert [searches_table.best_claim(made[:n]) for n in (0, 1, 2, 3, 4)] == [1, 1, 1, 3, 3]


def test_nothing_counts_as_less_than_the_strongest_baseline():
    slow = row("slow", 0.5)
    assert slow.final == 1.0
    assert "nothing faster: 1" in searches_table.figures([slow, row("fast", 4.0)], [SUMMARY])


def test_means_leave_out_what_is_labelled_and_tell_algebra_apart():
    rows = [
        row("a", 2.0, 4.0),
        row("b", 1.0, 1.0),
        row("algebra", 16.0, labels=("algebra",)),
        row("constant", 100.0, problem_labels={"constant-output": "the same for all inputs"}),
    ]
    lines = searches_table.means_table(rows, (1, 3)).splitlines()
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells[:5] == ["level 2", "all", "3", "3.17x", "4.00x"]  # of 2, 1, 16 and of 4, 1, 16
    assert cells[5].startswith("4.00x (1.00 to 16.00)")
    assert cells[6].startswith("2.00x")  # of 4 and 1
    assert cells[7] == "1, 100.00x"


def test_a_problem_that_is_not_confirmed_has_a_star():
    found = row("a", 2.0)
    open_ = dataclasses.replace(found.result, confirmed=False)
    table = searches_table.problems_table(
        [found, dataclasses.replace(found, result=open_)], (1, 3)
    ).splitlines()
    assert "2.00x (2.00 to 2.00)" in table[2]
    assert "2.00x* (2.00 to 2.00)" in table[3]


def verdict(collection, key, claim, precision, status="passed"):
    entry = {"collection": collection, "key": key, "place": collection, "digest": f"{claim}"}
    found = {"status": status, "precision": precision, "claim": claim}
    return {"entry": entry, "evaluation": found}


def test_the_best_released_kernel_is_right_in_the_class_of_its_folder(tmp_path):
    verdicts = [
        verdict("a", "2/7", 1.5, "fp32"),
        verdict("b", "2/7", 2.0, "tf32"),
        verdict("c", "2/7", 3.0, "half"),  # another class
        verdict("a", "2/8", 4.0, None, status="wrong_output"),
    ]
    bench = {"config": {"precision": "tf32"}, "entries": [each["entry"] for each in verdicts]}
    (tmp_path / "bench.json").write_text(json.dumps(bench))
    (tmp_path / "verdicts.jsonl").write_text("".join(f"{json.dumps(v)}\n" for v in verdicts))
    assert searches_table.best_released([tmp_path]) == {"2/7": searches_table.Released("b", 2.0)}


def test_a_problem_counts_as_faster_than_what_was_released_within_what_measurements_differ_by():
    ours = row("7_x", 1.99)
    rows = [
        dataclasses.replace(ours, released=searches_table.Released("b", claim))
        for claim in (2.0, 2.5, 1.0)
    ]
    figures = searches_table.figures([*rows, ours], [SUMMARY] * 2)
    assert "as fast as the best released kernel, or faster: 2 of 3" in figures
    assert "spent: 8 answers, 20 tokens" in figures  # of two campaigns
    assert "b 2.50x" in searches_table.problems_table(rows, (1, 3))
