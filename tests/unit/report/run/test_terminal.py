from __future__ import annotations

import io
from dataclasses import replace

from hand_made import PROBLEM, estimated, failed, node, on_two_workloads, passed, run_info
from rich.console import Console

from adaexplore.core.verdict.evaluation import PublishedVerdict
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.core.verdict.uses import Use
from adaexplore.report import summarize
from adaexplore.report.calls import CallTotals
from adaexplore.report.run.costs import Costs
from adaexplore.report.run.terminal import headline, tree_table


def printed(renderable, width=80):
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(renderable)
    return console.file.getvalue().splitlines()


def test_the_table_fits_80_columns_and_cuts_long_reasons():
    nodes = [
        node(1, passed(1.041, spread=0.04), origin="a-model-with-a-long-name"),
        node(2000, failed("compile_error", "expected ';' before " * 20), parent_id=1),
    ]

    lines = printed(tree_table(summarize(PROBLEM, nodes, run_info())))

    assert max(map(len, lines)) <= 80
    assert lines[1].split() == (
        ["★1", "0", "large", "a-model-w…", "passed", "692", "µs", "1.041×", "0.999–1.083", "1.30×"]
    )
    assert lines[3].split() == ["2000", "1", "small", "compiler", "compile_error"]
    assert lines[4].endswith("…")


def test_the_published_judge_is_beside_ours_where_they_differ():
    right, wrong = PublishedVerdict("", 400.0, 900.0), PublishedVerdict("off by 3 at most")
    nodes = [
        node(1, replace(passed(1.5), published=right)),
        node(2, replace(failed("wrong_output", "error 1e-3"), published=right)),
        node(3, replace(passed(1.2), published=wrong)),
        node(4, replace(failed(), published=wrong)),
        node(5, failed()),
    ]
    summary = summarize(PROBLEM, nodes, run_info())
    lines = printed(tree_table(summary), width=120)
    assert [line.strip() for line in lines[2::2]] == [
        "fold the constants",
        "[published judge: correct] error 1e-3",
        "[published judge: off by 3 at most] fold the constants",
        "no such name: tmp0",
        "no such name: tmp0",
    ]
    assert (
        "2 of 4 steps correct by the published judge, 2 by this one; its best 2.25× over eager "
        "(step 1); correct there alone: step 2; correct here alone: step 3"
    ) in printed(headline(summary), width=200)


def test_an_estimate_is_in_the_note_and_not_among_the_times():
    lines = printed(tree_table(summarize(PROBLEM, [node(1, estimated())], run_info())), width=120)

    assert lines[1].split() == ["★1", "0", "large", "compiler", "passed"]
    assert "[≈ 12.0 µs on sm_90, an estimate (memory-bound)] fold the constants" in lines[2]


def test_markup_in_a_reason_is_text():
    lines = printed(
        tree_table(summarize(PROBLEM, [node(1, failed(reason="[red]x[/red]"))], run_info()))
    )

    assert lines[-1].strip() == "[red]x[/red]"


def test_the_headline_shows_claim_baselines_and_cost():
    summary = summarize(PROBLEM, [node(1, passed(1.5))], run_info(confirmations={1: passed(1.4)}))

    text = "\n".join(printed(headline(summary), width=200))

    assert "1.40× like-for-like speedup over torch.compile" in text
    assert "node 1 (compiler), confirmed: 514 µs against PyTorch eager 900 µs" in text
    assert "1 of 20 steps (1 passed); proposing 0.5 s, evaluating 3 s, device held 1 s" in text


def test_the_headline_shows_uses_that_do_not_hold():
    uses = (Use("pickle", "holds"), Use("two instances", "wrong", "output is off by 0.9"))
    confirmed = replace(passed(1.4), uses=uses)

    lines = printed(
        headline(summarize(PROBLEM, [node(1, passed(1.5))], run_info(confirmations={1: confirmed})))
    )

    assert "SILENTLY WRONG: two instances (output is off by 0.9)" in lines
    assert "holds in use: pickle" in lines


def test_the_headline_shows_every_workload_beside_the_geometric_mean():
    lines = printed(headline(summarize(PROBLEM, [node(1, on_two_workloads())], run_info())))

    assert "geometric mean of 2 workloads" in lines[0] + lines[1]
    assert "workload short: 1.000× (0.980–1.020), 720 µs" in lines
    assert "workload long: 2.25× (2.21–2.29), 320 µs" in lines


def test_the_headline_shows_model_costs():
    nodes = [node(1, passed(1.5))]
    asked = summarize(PROBLEM, nodes, run_info(), costs=Costs(CallTotals(2, 300, 40, cost_usd=0.5)))
    alone = summarize(PROBLEM, nodes, run_info())

    assert "models: 2 calls, 300 tok in, 40 tok out, 0.5000 USD" in printed(headline(asked))
    assert not any(line.startswith("models:") for line in printed(headline(alone)))


def test_the_headline_of_an_empty_run_claims_nothing():
    text = "\n".join(printed(headline(summarize(PROBLEM, [], run_info()))))

    assert "No step has been recorded yet." in text
    assert "×" not in text


def test_the_headline_explains_labels():
    info = run_info(reference=ReferenceFacts(labels={"collapsible": "only sums of weight count"}))

    text = "\n".join(printed(headline(summarize(PROBLEM, [node(1, passed(1.5))], info)), width=200))

    assert "collapsible: only sums of weight count" in text
