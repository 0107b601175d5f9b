"""The report in a real browser: it opens from disk, answers, and leaks nothing."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from adaexplore.core.ask import Exchange
from adaexplore.core.candidate import Candidate
from adaexplore.core.environment import Environment
from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.proposal import Proposal
from adaexplore.core.protocols.client import Message, Prompt, Reply, Usage
from adaexplore.core.verdict.evaluation import Evaluation, Failed, Passed, Timing
from adaexplore.report import RunInfo, summarize
from adaexplore.report.run import embed
from adaexplore.report.run.html import render

HOSTILE = "</script><img src=x onerror=\"console.error('ran')\">"

pytestmark = pytest.mark.browser


@pytest.fixture
def open_report(open_page):
    def open_report(nodes: list[Node], width: int = 1280, fragment: str = ""):
        return open_page(report(nodes), width, fragment)

    return open_report


def passed(speedup: float) -> Passed:
    interval = (speedup * 0.98, speedup * 1.02)
    baselines = {"eager": 900.0, "compile": 720.0}
    timing = Timing(720 / speedup, (1.0, 2.0), baselines, speedup, interval, speedup * 1.25, 100)
    return Passed("fp32", 1e-7, timing)


def node(node_id: int, parent_id: int, evaluation: Evaluation, source: str, **texts: str) -> Node:
    proposal = Proposal(
        Candidate(source, "cpp"), "compiler", f"threads={node_id}", {"family": "fold"}, **texts
    )
    return Node(node_id, parent_id, "small" if parent_id else "large", proposal, evaluation)


def sample_nodes() -> list[Node]:
    kernel = "import torch\n\n\ndef launch(x):\n    return x * {}\n"
    return [
        node(1, 0, passed(0.9), kernel.format(1)),
        node(2, 1, passed(1.6), kernel.format(2), prompt="Make it faster.", reply="Done."),
        node(3, 1, Failed("compile_error", HOSTILE, detail=HOSTILE), kernel.format(3) + HOSTILE),
        node(4, 0, passed(1.2), kernel.format(4)),
    ]


def many_nodes(count: int) -> list[Node]:
    lines = "".join(f"    x = x + {number}\n" for number in range(30))
    return [
        node(i, i // 3, passed(1 + i / count), f"def launch(x):\n{lines}    return x * {i}\n")
        for i in range(1, count + 1)
    ]


def report(nodes: list[Node]) -> str:
    info = RunInfo(
        name="night",
        directory="runs/" + "deep/" * 30,
        seed=0,
        proposer="compiler",
        planned_steps=4,
        environment=Environment(cpu="A processor with a rather long name " * 3),
        reproduce="adaexplore explore problem.py " + "--set c=0.3 " * 12,
        confirmations={2: passed(1.5)},
    )
    problem = Problem("softmax", "class Model: ...\n", "cpp", "cpu")
    return render(summarize(problem, nodes, info, {3: hostile_conversation()}))


def hostile_conversation() -> tuple[Exchange, ...]:
    """A reply that cannot be used, and none to the question that follows."""
    first = Prompt((Message("system", HOSTILE), Message("user", "Faster!")), "large")
    replies = (Reply(HOSTILE, HOSTILE, usage=Usage(100, 20)), Reply("", HOSTILE, "empty"))
    prompts = (first, first.after(HOSTILE, HOSTILE, "again"))
    return tuple(Exchange(1, p, r, 0.0) for p, r in zip(prompts, replies, strict=True))


@pytest.mark.parametrize("count", [0, 1, 4])
def test_opens_from_disk_without_errors_or_requests(open_report, count):
    watched = open_report(sample_nodes()[:count])

    assert watched.complaints == []
    assert [url for url in watched.requests if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in watched.requests if url.startswith("file:")]) == 1


def test_the_best_is_selected_first_and_a_link_selects_another(open_report):
    first = open_report(sample_nodes()).page
    linked = open_report(sample_nodes(), fragment="#node-4").page

    assert "Node 2 ★ best" in first.locator("#detail").inner_text()
    assert linked.locator("#detail h3").inner_text() == "Node 4"


def test_clicking_a_node_shows_its_source_and_its_diff(open_report):
    page = open_report(sample_nodes()).page

    page.locator("#tree .node[data-id='2']").click()
    assert "return x * 2" in page.locator("#detail .code").inner_text()
    assert page.locator("#detail .code .tok-k").first.inner_text() == "import"

    page.get_by_role("tab", name="Diff").click()
    assert page.locator("#detail .removed .text").all_inner_texts() == ["    return x * 1"]
    assert page.locator("#detail .added .text").all_inner_texts() == ["    return x * 2"]


def test_tabs_show_the_evaluation_and_the_conversation(open_report):
    page = open_report(sample_nodes()).page
    detail = page.locator("#detail")

    page.get_by_role("tab", name="Evaluation").click()
    assert "1.60× (95 % 1.57–1.63)" in detail.inner_text()
    page.get_by_role("tab", name="Conversation").click()
    assert "Make it faster." not in detail.inner_text()
    detail.get_by_text("Prompt", exact=True).click()
    assert "Make it faster." in detail.inner_text()
    detail.get_by_text("Reply", exact=True).click()
    assert "Done." in detail.inner_text()


def test_a_failed_step_shows_every_exchange(open_report):
    watched = open_report(sample_nodes(), fragment="#node-3")
    detail = watched.page.locator("#detail")

    watched.page.get_by_role("tab", name="Conversation").click()
    assert detail.locator(".turn").all_inner_texts() == [
        f"large · {HOSTILE} · 100 tok in, 20 tok out",
        f"again · {HOSTILE} · empty",
    ]
    assert "Reply: empty" in detail.inner_text()
    for prompt in detail.get_by_text("Prompt", exact=True).all():
        prompt.click()
    detail.get_by_text("Reply", exact=True).click()
    first, reply, second = detail.locator(".folded .code").all_inner_texts()
    assert (first, reply) == (f"[system]\n{HOSTILE}\n\n[user]\nFaster!", HOSTILE)
    assert second == f"[user]\n{HOSTILE}"
    assert watched.page.locator("img").count() == 0
    assert watched.complaints == []


def test_hostile_text_is_shown_and_never_executed(open_report):
    watched = open_report(sample_nodes())
    page = watched.page

    page.locator("#tree .node[data-id='3']").click()
    assert HOSTILE in page.locator("#detail .reason").inner_text()
    assert HOSTILE in page.locator("#detail .code").inner_text()
    page.get_by_role("tab", name="Evaluation").click()

    assert page.locator("img").count() == 0
    assert watched.complaints == []


def test_the_tree_reacts_to_the_keyboard(open_report):
    page = open_report(sample_nodes()).page
    page.locator("#tree [aria-selected=true]").focus()

    page.keyboard.press("Home")
    assert page.locator("#detail h3").inner_text() == "Node 1"
    page.keyboard.press("ArrowLeft")
    assert not page.locator("#tree .node[data-id='2']").is_visible()
    page.keyboard.press("ArrowDown")
    assert page.locator("#detail h3").inner_text() == "Node 4"


def ids(page: Page) -> list[int]:
    rows = page.locator("#candidates tbody tr")
    found: list[int] = rows.evaluate_all("rows => rows.map((row) => Number(row.dataset.id))")
    return found


def test_sorting_puts_missing_values_last_both_ways(open_report):
    page = open_report(sample_nodes()).page
    speedup = page.get_by_role("button", name="Speedup", exact=True)

    assert ids(page) == [1, 2, 3, 4]
    speedup.click()
    assert ids(page) == [2, 4, 1, 3]
    speedup.click()
    assert ids(page) == [1, 4, 2, 3]
    assert page.locator("th[aria-sort=ascending]").inner_text().startswith("Speedup")


def test_filters_narrow_the_table(open_report):
    page = open_report(sample_nodes()).page

    page.locator("#status").select_option("passed")
    assert ids(page) == [1, 2, 4]
    page.locator("#find").fill("threads=4")
    assert ids(page) == [4]
    assert page.locator("#count").inner_text() == "1 of 4"


def test_the_chart_names_and_selects_the_nearest_step(open_report):
    page = open_report(sample_nodes()).page
    mark = page.locator("svg.chart.wide .mark[data-id='4']").first

    mark.hover()
    assert "Node 4" in page.locator(".tip").inner_text()
    mark.click()
    assert page.locator("#detail h3").inner_text() == "Node 4"


@pytest.mark.parametrize(
    "width", [400, *(pytest.param(width, marks=pytest.mark.slow) for width in (800, 1280))]
)
@pytest.mark.parametrize("tab", ["Source", "Diff", "Evaluation", "Conversation", "Settings"])
def test_the_page_never_scrolls_sideways(open_report, width, tab):
    page = open_report(sample_nodes(), width=width).page

    page.get_by_role("tab", name=tab).click()

    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_two_thousand_nodes_stay_usable(open_report, tmp_path):
    page = open_report(many_nodes(2000)).page

    assert (tmp_path / "report.html").stat().st_size < 5_000_000
    assert page.locator("#tree .node").count() == 2000
    assert len(ids(page)) == 50
    page.get_by_role("button", name="Show all 2000").click()
    assert len(ids(page)) == 2000
    page.locator("#tree .node[data-id='1500']").click()
    assert "return x * 1500" in page.locator("#detail .code").inner_text()


@pytest.mark.slow
def test_ten_thousand_nodes_open_at_the_path_to_the_best(open_report, tmp_path, monkeypatch):
    monkeypatch.setattr(embed, "HIGHLIGHT_BUDGET", 100_000)
    watched = open_report(many_nodes(10_000))
    page = watched.page

    assert watched.complaints == []
    assert (tmp_path / "report.html").stat().st_size < 20_000_000
    assert "Node 10000 ★ best" in page.locator("#detail").inner_text()
    shown = page.locator("#tree .node").count()
    assert shown < 100
    assert page.locator("svg.chart.wide .mark").count() < 2100
    page.locator("#find").fill("threads=7777")
    page.locator("#candidates tbody tr[data-id='7777']").click()
    assert page.locator("#tree .node[data-id='7777']").is_visible()
    assert page.locator("#tree .node").count() > shown
