from __future__ import annotations

import dataclasses
import json
import math

from hand_made import PROBLEM, call, estimated, failed, node, passed, run_info
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.text.feedback import render
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.report import summarize
from adaexplore.report.run import embed


def page_data(nodes, exchanges=None):
    summary = summarize(PROBLEM, nodes, run_info(), exchanges)
    return json.loads(embed.page_json(summary))


def document(data, number):
    spans = data["documents"][number]
    pairs = zip(spans[::2], spans[1::2], strict=True)
    return "\n".join(data["lines"][first + i] for first, count in pairs for i in range(count))


@given(st.lists(st.text(max_size=60), min_size=1, max_size=6))
def test_every_source_can_be_restored(sources):
    nodes = [node(number, passed(1.0), source=source) for number, source in enumerate(sources, 1)]

    data = page_data(nodes)

    for source, step in zip(sources, data["steps"], strict=True):
        expected = source.replace("\r\n", "\n")
        assert (document(data, step["source"]) if step["source"] >= 0 else "") == expected


def test_nothing_in_the_json_can_end_its_script_element():
    hostile = "</script><script>alert(1)</script><!--"
    nodes = [node(1, failed(reason=hostile), source=hostile, note=hostile, prompt=hostile)]

    assert "<" not in embed.page_json(summarize(PROBLEM, nodes, run_info()))


def test_every_exchange_has_a_title():
    said = call(1, text="One\r\ntwo")
    cut = dataclasses.replace(said, prompt=said.prompt.after("One\r\ntwo", "Go on.", "continue"))
    cut = dataclasses.replace(cut, reply=dataclasses.replace(cut.reply, finish="truncated"))
    data = page_data([node(1, failed())], {1: (said, cut)})

    turns = [
        (title, document(data, prompt), document(data, reply))
        for title, prompt, reply in data["steps"][0]["turns"]
    ]

    assert turns == [
        ("large · some:model · 100 tok in, 20 tok out", "[user]\nFaster!", "One\ntwo"),
        (
            "continue · some:model · 100 tok in, 20 tok out · truncated",
            "[user]\nGo on.",
            "One\ntwo",
        ),
    ]


def test_a_step_without_exchanges_shows_its_stored_prompt():
    data = page_data([node(1, passed(1.0), prompt="Faster!"), node(2, passed(1.0))])

    [(title, prompt, reply)] = data["steps"][0]["turns"]
    assert (title, document(data, prompt), reply) == ("", "Faster!", -1)
    assert data["steps"][1]["turns"] == []


def test_shared_sources_and_lines_are_stored_once():
    shared = "".join(f"line_{number}\n" for number in range(50))
    nodes = [
        node(1, passed(1.0), source=shared),
        node(2, passed(1.1), source=shared),
        node(3, passed(1.2), source=f"{shared}changed\n"),
    ]

    data = page_data(nodes)

    assert data["steps"][0]["source"] == data["steps"][1]["source"]
    assert data["lines"].count("line_7") == 1


def test_a_diff_holds_the_changed_line_ranges():
    nodes = [
        node(1, passed(1.0), source="a\nb\nc\n"),
        node(2, passed(1.1), parent_id=1, source="a\nB\nc\nd\n"),
        node(3, failed(), parent_id=1, source=""),
    ]

    assert [step["diff"] for step in page_data(nodes)["steps"]] == [
        None,
        [[1, 2, 1, 2], [3, 3, 3, 4]],
        None,
    ]


def test_an_infinite_error_is_null_in_the_json():
    step = page_data([node(1, Failed("wrong_output", "overflow", error=math.inf))])["steps"][0]

    assert step["error"] == [None, "inf"]


def test_sources_beyond_the_budget_have_no_colours(monkeypatch):
    monkeypatch.setattr(embed, "HIGHLIGHT_BUDGET", 20)
    nodes = [
        node(1, passed(1.0), source="import slower_module\n"),
        node(2, passed(2.0), source="import best\n"),
    ]

    data = page_data(nodes)

    assert data["runs"][data["lines"].index("import best")]
    assert not data["runs"][data["lines"].index("import slower_module")]


def test_an_estimate_has_no_speedup_and_is_marked():
    step = page_data([node(1, estimated())])["steps"][0]

    assert (step["status"], step["speedup"], step["time"]) == ("passed", None, None)
    assert step["estimate"] == "≈ 12.0 µs on sm_90, an estimate (memory-bound)"


def test_the_feedback_equals_that_of_the_command_line():
    evaluation = failed("wrong_output", "output is off by 2")
    data = page_data([node(1, evaluation)])

    assert document(data, data["steps"][0]["feedback"]) == render(evaluation)


def test_a_step_s_facts_name_the_strongest_baseline():
    one = passed(1.5, baselines={"eager": 900.0, "compile-max-autotune": 600.0})
    one = dataclasses.replace(one, timing=dataclasses.replace(one.timing, speedup_compile=1.8))
    facts = dict(page_data([node(1, one)])["steps"][0]["evaluation"])

    assert facts["Strongest baseline"] == "torch.compile (max-autotune)"
    assert facts["Speedup over eager"] == "2.25×"
    assert facts["Speedup over torch.compile's defaults"] == "1.80×"


def test_labels_belong_to_their_step():
    labelled = dataclasses.replace(passed(1.5), labels=("no-custom-kernel",))

    assert page_data([node(1, labelled)])["steps"][0]["labels"] == ["no-custom-kernel"]
