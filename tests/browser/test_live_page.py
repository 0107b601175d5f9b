"""The live pages in a real browser, over real HTTP, while records grow and searches run."""

from __future__ import annotations

import pytest
from live_runs import MANUAL_CONFIG, add, campaign, make_run, passed, serving, step, study
from playwright.sync_api import Page, expect
from services import PROBLEM, RIGHT, running

from adaexplore.core.ask import MANUAL
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.run.asks.ask_files import ledger_of
from adaexplore.serve.client import problem_of
from adaexplore.serve.jobs import Jobs
from adaexplore.serve.messages import JobPrompt, JobResult
from adaexplore.serve.page import shelf
from adaexplore.serve.prompts import WaitingPrompts
from adaexplore.store import open_run, read_run

HOSTILE = "</script><img src=x onerror=\"console.error('ran')\">"
HOSTILE_FOLDER = "\"><img src=x onerror=console.error('ran')>"

WIDER_THAN_THE_PAGE = """[...document.querySelectorAll("body *")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth)
    .map((one) => one.tagName + "." + one.className).slice(0, 9)"""

pytestmark = pytest.mark.browser


@pytest.fixture
def visit(browser, tmp_path, monkeypatch):
    """Opens the pages of the test's folder; whatever the browser complains about fails the test."""
    monkeypatch.setattr(shelf, "_LOOK_S", 0.1)
    complaints: list[str] = []
    (tmp_path / "runs").mkdir(exist_ok=True)
    with serving(tmp_path / "runs") as address:

        def visit(path: str = "/", width: int = 1280) -> Page:
            page = browser.new_page(viewport={"width": width, "height": 860})
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on(
                "request",
                lambda r: r.url.startswith((address, "data:")) or complaints.append(r.url),
            )
            page.goto(address + path)
            return page

        yield visit
        for context in browser.contexts:
            context.close()
    assert complaints == []


def open_run_page(visit, width: int = 1280, name: str = "softmax") -> Page:
    page = visit(width=width)
    page.get_by_role("link", name=name).first.click()
    expect(page.locator("#live")).to_have_text("live")
    return page


def test_a_new_search_and_its_claim_appear_by_themselves(visit, tmp_path):
    page = visit()
    expect(page.locator("main")).to_contain_text("Nothing here yet")

    run = make_run(tmp_path / "runs" / "night", step(1, 0, passed(1.2)))
    card = page.get_by_role("link", name="softmax")
    expect(card).to_contain_text("1.20×")
    add(run, step(2, 1, passed(1.9)))
    expect(card).to_contain_text("1.90×95 % 1.86–1.94")
    expect(page.locator(".cards [role=meter]").first).to_have_attribute("aria-valuenow", "22")


def test_the_tree_grows_while_a_step_is_read(visit, tmp_path):
    run = make_run(tmp_path / "runs" / "night", step(1, 0, passed(0.9)), step(2, 1, passed(1.5)))
    page = open_run_page(visit)
    page.locator("#tree .node[data-id='2']").click()
    page.get_by_role("tab", name="Diff").click()
    page.locator("#detail .code").evaluate("box => (box.dataset.mine = 'yes')")
    page.get_by_label("Find").fill("threads=3")

    add(run, step(3, 2, passed(2.5)))
    row = page.locator("#tree .node[data-id='3']")
    expect(row).to_contain_text("2.50×")
    assert row.get_attribute("aria-level") == "3"
    expect(page.locator(".headline .number")).to_have_text("2.50×")
    expect(page.locator("svg.chart.wide .mark")).to_have_count(3)
    expect(page.locator("#candidates tbody tr")).to_have_count(1)
    expect(page.locator("#detail h3")).to_have_text("Node 2")  # no longer the best
    assert page.get_by_role("tab", name="Diff").get_attribute("aria-selected") == "true"
    assert page.locator("#detail .code").get_attribute("data-mine") == "yes"  # as it was scrolled
    page.get_by_role("tab", name="Source").click()
    assert "return x * 2" in page.locator("#detail .code").inner_text()
    page.get_by_role("tab", name="Diff").click()
    assert page.locator("#detail .added .text").all_inner_texts() == ["    return x * 2"]


def test_keys_go_through_steps_and_cards(visit, tmp_path):
    make_run(tmp_path / "runs" / "a", step(1, 0, passed(0.9)), step(2, 1, passed(1.5)))
    make_run(tmp_path / "runs" / "b", name="relu")
    page = visit()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator("#detail h3")).to_contain_text("Node 2")
    page.keyboard.press("k")
    expect(page.locator("#detail h3")).to_contain_text("Node 1")
    page.get_by_label("Find").press("j")
    expect(page.locator("#detail h3")).to_contain_text("Node 1")


def test_hostile_texts_are_shown_and_never_run(visit, tmp_path):
    run = make_run(
        tmp_path / "runs" / HOSTILE_FOLDER,
        step(1, 0, Failed("compile_error", HOSTILE, detail=HOSTILE), HOSTILE),
        config=MANUAL_CONFIG,
        name=HOSTILE,
    )
    with open_run(run) as directory:
        ledger_of(directory).prompt(MANUAL)
    page = visit()
    assert HOSTILE_FOLDER in page.locator(".card-name").inner_text()
    page.locator("a.card").click()
    expect(page.locator("h1")).to_have_text(HOSTILE)
    expect(page.locator(".prompt")).to_contain_text(HOSTILE)
    expect(page.locator("#detail .code")).to_contain_text(HOSTILE)
    page.get_by_label("Your reply").fill("half a rep")
    with open_run(run) as directory:
        ledger_of(directory).prompt(MANUAL)
    expect(page.locator(".prompt")).to_have_count(2)
    page.keyboard.type("ly")  # where the reader was
    assert page.get_by_label("Your reply").first.input_value() == "half a reply"
    page.get_by_role("link", name="Compare", exact=True).last.click()
    expect(page.locator("#diff")).to_contain_text("The same source.")
    expect(page.locator("#first")).to_contain_text(HOSTILE)
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("width", [360, 1280])
def test_no_page_scrolls_sideways(visit, tmp_path, width):
    long = "a_problem_with_a_very_long_name_" * 4
    run = make_run(
        tmp_path / "runs" / long, step(1, 0, passed(0.9)), config=MANUAL_CONFIG, name=long
    )
    with open_run(run) as directory:
        ledger_of(directory).prompt(MANUAL)
    campaign(tmp_path / "runs" / "many", "relu", "gelu")
    page = visit(width=width)
    paths = page.locator("a.card").evaluate_all("cards => cards.map(card => card.pathname)")
    for path in ["/", *paths, "/compare", f"/compare?a={paths[-1][6:]}&b={paths[-1][6:]}"]:
        page.goto(page.url.split("/", 3)[0] + "//" + page.url.split("/")[2] + path)
        wide = page.evaluate(WIDER_THAN_THE_PAGE)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, wide)


def test_a_campaign_has_a_forest_of_its_problems_that_grows(visit, tmp_path):
    path = campaign(tmp_path / "runs" / "many", "relu", "gelu")
    page = open_run_page(visit, name="many")
    forest = page.locator("svg.forest.wide")
    expect(forest.locator("a")).to_have_count(2)
    expect(forest).to_contain_text("2.40× (2.35–2.45)")

    add(path / "relu", step(2, 1, passed(3.0)))
    expect(forest).to_contain_text("3.00× (2.94–3.06)")
    forest.locator("a", has_text="relu").click()
    expect(page.locator("h1")).to_have_text("relu")
    expect(page.locator(".controls")).to_contain_text("Belongs to")


def test_a_study_compares_its_arms_as_they_go_on(visit, tmp_path):
    path = study(tmp_path / "runs" / "arms", "default", "independent")
    page = open_run_page(visit, name="arms")
    speedups = page.locator("section", has=page.get_by_role("heading", name="Speedups"))
    rows = speedups.locator("table").first.locator("tbody tr")
    expect(rows.filter(has_text="default")).to_contain_text("1.50×")
    expect(rows.filter(has_text="independent")).to_contain_text("1.20×")

    for problem in ("gelu", "relu"):
        add(path / "independent" / f"{problem}-seed0", step(2, 1, passed(3.0)))
    expect(rows.filter(has_text="independent")).to_contain_text("3.00×")
    page.get_by_role("link", name="relu").first.click()
    expect(page.locator(".controls")).to_contain_text("Belongs to")


def test_any_two_kernels_are_compared(visit, tmp_path):
    make_run(tmp_path / "runs" / "a", step(1, 0, passed(0.9)), step(2, 1, passed(1.5)), name="relu")
    make_run(tmp_path / "runs" / "b", step(1, 0, passed(2.0)), step(2, 0, passed(0.5)))
    page = visit("/compare")
    page.get_by_label("Search").first.select_option(label=str(tmp_path / "runs" / "a"))
    page.get_by_label("Step").first.fill("1")
    page.get_by_label("Search").last.select_option(label=str(tmp_path / "runs" / "b"))
    page.get_by_label("Step").last.fill("2")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#first")).to_contain_text("0.900×")
    expect(page.locator("#second")).to_contain_text("0.50×")
    assert page.locator("#diff .added .text").all_inner_texts() == ["    return x * 2"]
    page.get_by_role("link", name="Compare the two searches").click()
    expect(page.locator("h2").first).to_be_visible()


def test_a_user_of_a_service_logs_in_and_stops_a_job(browser, tmp_path):
    with running(tmp_path) as service:
        service.client().submit_search(problem_of("relu", PROBLEM), {})
        page = browser.new_page(viewport={"width": 360, "height": 740})
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(service.url)
        page.get_by_label("Your token").fill(service.token)
        page.keyboard.press("Enter")
        page.get_by_role("link", name="relu").click()
        expect(page.locator("#live")).to_have_text("live")
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".state")).to_have_text("cancelled")
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()
        page.context.close()
    assert complaints == []


def test_a_user_of_a_service_answers_a_prompt(browser, tmp_path):
    with running(tmp_path) as service:
        jobs = Jobs(service.engine, tmp_path / "jobs")
        job = service.client().submit_search(problem_of("relu", PROBLEM), {"proposer": MANUAL})
        jobs.take_next()
        make_run(jobs.folder / job.id / "run", config=MANUAL_CONFIG)
        prompt = JobPrompt(ask=1, turn=0, purpose="large step", text=HOSTILE)
        WaitingPrompts(service.engine).wait(job.id, [prompt], [], files=[], result=JobResult())
        page = browser.new_page(viewport={"width": 360, "height": 740})
        complaints: list[str] = []
        page.on("console", lambda m: m.type == "error" and complaints.append(m.text))
        page.goto(service.url)
        page.get_by_label("Your token").fill(service.token)
        page.keyboard.press("Enter")
        page.get_by_role("link", name="relu").click()
        expect(page.locator("#live")).to_have_text("live")
        expect(page.locator(".state")).to_have_text("waiting")
        expect(page.locator(".prompt .code")).to_have_text(HOSTILE)
        page.get_by_label("Your reply").fill("mine")
        page.get_by_role("button", name="Send and evaluate").click()
        expect(page.locator(".state")).to_have_text("queued")
        expect(page.locator(".prompt")).to_have_count(0)
        [reply] = WaitingPrompts(service.engine).replies(job.id)
        page.context.close()
    assert (reply.reply, complaints) == ("mine", [])


@pytest.mark.slow
def test_prompts_are_answered_and_a_search_is_stopped_and_continued(visit, tmp_path):
    """A search answered by hand: a real judge evaluates in a process of its own meanwhile."""
    run = make_run(tmp_path / "runs" / "mine", config=MANUAL_CONFIG)
    page = open_run_page(visit)
    page.get_by_role("button", name="New prompt").click()
    reply = page.get_by_label("Your reply")
    expect(page.locator(".prompt .code")).to_contain_text("torch.relu(x) + 1")
    reply.fill(f"```python\n{RIGHT}\n```")
    page.get_by_role("button", name="New prompt").click()
    expect(page.locator(".prompt")).to_have_count(2)
    assert RIGHT in reply.first.input_value()

    state = page.locator(".state")
    page.get_by_role("button", name="Send and evaluate").first.click()
    expect(page.locator(".prompt")).to_have_count(1)
    expect(state).to_have_text("running", timeout=60_000)
    page.get_by_role("button", name="Stop").click()
    expect(state).to_have_text("waiting", timeout=60_000)
    expect(page.locator(".controls")).to_contain_text("1 to evaluate")
    expect(page.locator("#tree")).to_have_count(0)

    page.get_by_role("button", name="Evaluate", exact=True).click()
    expect(page.locator("#tree .node")).to_have_count(1, timeout=120_000)
    expect(state).to_have_text("waiting", timeout=60_000)
    expect(page.locator(".controls")).not_to_contain_text("to evaluate")
    with read_run(run) as directory:
        [node] = directory.store.nodes()
    assert node.candidate.source.strip() == RIGHT.strip()
    assert node.evaluation.status == "passed"
