from __future__ import annotations

import dataclasses
import re

import pytest
from hand_made import PROBLEM, call, estimated, failed, node, on_two_workloads, passed, run_info

from adaexplore.core.environment import Environment
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.core.verdict.uses import Use
from adaexplore.report import summarize
from adaexplore.report.calls import CallTotals
from adaexplore.report.run.costs import Costs
from adaexplore.report.run.html import render


def page(nodes, **info):
    return render(summarize(PROBLEM, nodes, run_info(**info)))


@pytest.mark.parametrize("count", [0, 1, 12])
def test_a_page_has_no_outside_references(count):
    text = page([node(number, passed(1.0 + number / 10)) for number in range(1, count + 1)])

    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#|data:)""", text)
    assert not re.search(r"(?:https?:)?//[a-z]+\.[a-z]", text)
    assert "@import" not in text


def test_hostile_text_never_becomes_markup():
    hostile = "</script><img src=x onerror=alert(1)>"
    text = page(
        [node(1, failed(reason=hostile), source=hostile, note=hostile, origin=hostile)],
        name=hostile,
        environment=Environment(cpu=hostile),
        reference=ReferenceFacts(notes=(hostile,)),
        reproduce=hostile,
    )

    assert "<img" not in text


def test_replies_never_become_markup():
    hostile = "</script><img src=x onerror=alert(1)><!--"
    said = call(1, model=hostile, text=hostile)
    said = dataclasses.replace(said, prompt=said.prompt.after(hostile, hostile, hostile))
    nodes = [node(1, failed(), settings={"form": hostile})]

    text = render(summarize(PROBLEM, nodes, run_info(), {1: (said, said)}))

    assert "<img" not in text
    assert text.count("</script>") == 2
    assert "\\u003cimg src=x" in text


def test_a_page_shows_the_uses_of_the_winner():
    uses = (Use("pickle", "holds"), Use("two instances", "wrong", "<b>off</b>"))
    confirmed = dataclasses.replace(passed(1.4), uses=uses)

    text = page([node(1, passed(1.5))], confirmations={1: confirmed})

    wrong = "SILENTLY WRONG: two instances (&lt;b&gt;off&lt;/b&gt;)"
    assert f'<p class="warning">{wrong}</p>' in text
    assert '<p class="caveat">holds in use: pickle</p>' in text


def test_a_page_shows_every_workload():
    page = render(summarize(PROBLEM, [node(1, on_two_workloads())], run_info()))
    assert "geometric mean of 2 workloads" in page
    assert "<td>long</td>" in page
    assert '<td class="num">2.25×</td><td class="num">2.21–2.29</td>' in page


def test_a_page_names_the_strongest_baseline_beside_the_quoted_speedups():
    one = passed(1.5, baselines={"eager": 900.0, "compile": 720.0, "eager-cuda-graph": 600.0})
    text = page(
        [
            node(
                1,
                dataclasses.replace(
                    one, timing=dataclasses.replace(one.timing, speedup_compile=1.8)
                ),
            )
        ]
    )

    assert "over PyTorch eager (cuda-graph)</p>" in text
    assert "<dt>Over eager alone</dt><dd>2.25×</dd>" in text
    assert "<dt>Over torch.compile’s defaults</dt><dd>1.80×</dd>" in text


def test_a_page_shows_model_costs():
    costs = Costs(CallTotals(2, 300, 40, cost_usd=0.5))
    text = render(summarize(PROBLEM, [node(1, passed(1.5))], run_info(), costs=costs))

    assert "Models: 2 calls, 300 tok in, 40 tok out, 0.5000 USD." in text
    assert "Models:" not in page([node(1, passed(1.5))])


def test_a_lone_surrogate_does_not_stop_the_page_from_being_written():
    page([node(1, failed(reason="\ud800"), source="\ud800")], name="\ud800").encode()


def test_the_page_shows_its_conditions():
    text = page(
        [node(1, passed(1.5))],
        environment=Environment(torch="2.13.0"),
        settings={"c": 0.3},
        reference=ReferenceFacts(
            errors={"tf32": 3e-4}, baselines_us={"eager": 900.0}, notes=("careful",)
        ),
        reproduce="adaexplore explore softmax.py --seed 0",
    )

    for fact in ("2.13.0", "0.3", "3.0e-4", "900 µs", "careful", "explore softmax.py --seed 0"):
        assert fact in text


def test_a_page_of_estimates_claims_no_speedup():
    text = page([node(1, estimated()), node(2, failed())])
    visible = text.partition('<script type="application/json"')[0]

    assert "No speedup is claimed" in visible
    assert "correct, not measured" in visible
    assert "like-for-like speedup <br>" not in visible


def test_a_page_explains_labels():
    text = page(
        [node(1, passed(1.5))], reference=ReferenceFacts(labels={"constant": "zeros <would> pass"})
    )

    assert "<strong>constant</strong>: zeros &lt;would&gt; pass" in text
