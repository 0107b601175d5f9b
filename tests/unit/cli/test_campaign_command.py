"""campaign, on real small problems with a proposer that needs no compiler."""

import json
import shutil
import time
from dataclasses import replace

import pytest
from answering import LOCAL
from test_search_commands import NOT_A_NUMBER, Renaming

from adaexplore.core.candidate import Candidate
from adaexplore.run.asks.ledger import Ledger
from adaexplore.run.session import Session
from adaexplore.store import open_run, read_run

CPU = ("--device", "cpu", "--set", "stop_near=0")
FAST = (*CPU, "--set", "confirm=false")


@pytest.fixture
def proposer(monkeypatch):
    proposer = Renaming()
    monkeypatch.setattr(Session, "compiler", lambda *_: proposer)
    return proposer


@pytest.fixture
def problems(file, problem, proposer):
    source = problem.read_text()
    other = source.replace("64, 64", "32, 96")
    assert other != source
    return [file("one.py", source), file("other.py", other), file("nan.py", NOT_A_NUMBER)]


def steps(folder):
    counts = {}
    for path in folder.iterdir():
        if (path / "run.db").exists():
            with read_run(path) as run:
                counts[path.name] = run.store.node_count()
    return counts


def test_a_campaign_from_beginning_to_end(adaexplore, problems, tmp_path):
    folder, out = tmp_path / "night", tmp_path / "out.json"
    words = [*CPU, "--steps", 2, "--run", folder, "--json", out, "--parallel", 2]
    result = adaexplore("campaign", *problems, *words)
    assert result.code == 0, result
    assert steps(folder) == {"one": 2, "other": 2}
    assert "one: step 2" in result.out
    told = [line for line in result.out.splitlines() if line.startswith("one: ")]
    assert told[:2] == ["one: preparing", "one: step 1: proposing (large)"]
    assert told.count("one: preparing") == 1
    assert "2 of 2 correct" in result.out
    assert "nan: " in result.out
    data = json.loads(out.read_text())
    [group] = data["groups"]
    assert [one["name"] for one in group["results"]] == ["one", "other"]
    assert all(one["confirmed"] and one["state"] == "done" for one in group["results"])
    assert [(one["name"], one["state"]) for one in data["unjudged"]] == [("nan", "refused")]
    page = (folder / "index.html").read_text()
    assert 'href="one/report.html"' in page
    assert (folder / "one" / "report.html").exists()

    assert adaexplore("show", folder / "one").code == 0
    shown = adaexplore("show", folder)
    assert shown.code == 0
    assert "2 of 2 correct" in shown.out
    assert "* not measured again" not in shown.out
    assert adaexplore("report", folder, "-o", tmp_path / "page.html").code == 0
    assert 'href="one/report.html"' in (tmp_path / "page.html").read_text()
    longer = adaexplore("resume", folder / "one", "--steps", 3)
    assert longer.code == 0

    again = adaexplore("resume", folder, "--steps", 3)
    assert again.code == 0
    assert steps(folder) == {"one": 3, "other": 3}
    assert "other: step 3" in again.out
    assert "one: step" not in again.out


@pytest.mark.slow
def test_a_file_with_a_budget_of_steps_that_is_raised_later(adaexplore, problems, file, tmp_path):
    path = file(
        "night.toml",
        """
        budget = "3steps"
        allocation = "uniform"
        turn_steps = 1
        device = "cpu"
        confirm = false
        stop_near = 0
        [[problem]]
        files = "o*.py"
        """,
    )
    folder = tmp_path / "night"
    assert adaexplore("campaign", path, "--run", folder).code == 0
    assert sorted(steps(folder).values()) == [1, 2]
    with read_run(folder / "one") as run:
        assert run.store.run().steps == run.store.node_count()

    assert adaexplore("campaign", folder, "--budget", "5steps").code == 0
    assert sorted(steps(folder).values()) == [2, 3]
    assert adaexplore("campaign", folder).code == 0
    assert sorted(steps(folder).values()) == [2, 3]


@pytest.mark.slow
def test_variants_come_besides_the_steps_and_stop_no_other_search(
    adaexplore, problems, proposer, tmp_path, monkeypatch
):
    def with_a_number(context):
        proposal = yield from Renaming().begin(context)
        if context.problem.name == "one":
            return proposal
        source = f"CODE = 'constexpr int CHUNK = 16;'\n{proposal.candidate.source}"
        return replace(proposal, candidate=Candidate(source, "cpp"))

    monkeypatch.setattr(proposer, "begin", with_a_number, raising=False)
    folder = tmp_path / "night"
    words = [*FAST, "--set", "tune=2", "--run", folder]
    assert adaexplore("campaign", *problems[:2], *words, "--steps", 1).code == 0
    assert steps(folder) == {"one": 1, "other": 3}

    again = adaexplore("campaign", folder, "--steps", 3)
    assert again.code == 0
    with read_run(folder / "other") as run:
        kinds = [node.step_kind for node in run.store.nodes()]
    assert len(kinds) - kinds.count("tune") == 3
    assert steps(folder)["one"] == 3


@pytest.mark.slow
def test_a_campaign_whose_prompts_are_answered_in_files(adaexplore, problems, tmp_path):
    folder = tmp_path / "night"
    words = ["--proposer", "manual", "--language", "cpp", "--steps", 3, "--run", folder]
    words += ["--set", "compiler_seeds=1", "--set", "p_strategy=0", "--set", "p_contrast=0"]
    one = folder / "asks" / "one"

    first = adaexplore("campaign", *problems[:2], *FAST, *words)
    assert f"prompts wait in {folder / 'asks'}" in first.out
    assert steps(folder) == {"one": 1, "other": 1}  # the compiler's
    assert sorted(path.name for path in one.iterdir()) == ["2.1.md", "3.1.md"]

    source = problems[0].read_text().replace("class Model(", "class ModelNew(")
    (one / "3.1.reply.md").write_text(f"As it is.\n```python\n{source}# 3\n```\n")
    again = adaexplore("campaign", folder)
    assert "one: step 2" in again.out
    assert "other: step" not in again.out

    (one / "2.1.reply.md").write_text(f"So.\n```python\n{source}# 2\n```\n")
    last = adaexplore("campaign", folder)
    assert steps(folder) == {"one": 3, "other": 1}
    assert f"adaexplore resume {folder}" in last.out  # for the other one
    with read_run(folder / "one") as run:
        assert run.store.run().command.startswith("adaexplore explore ")

    (folder / "asks" / "other" / "answer.reply.md").write_text("hello")
    misnamed = adaexplore("campaign", folder)
    assert misnamed.code == 2
    assert "answer.reply.md: name it after its prompt" in misnamed.err


@pytest.mark.slow
def test_a_file_that_is_no_reply_is_refused_before_any_work(adaexplore, problems, tmp_path):
    folder = tmp_path / "night"
    words = ["--proposer", "manual", "--language", "cpp", "--steps", 1, "--run", folder]
    adaexplore("campaign", *problems[:2], *FAST, *words)
    source = problems[0].read_text().replace("class Model(", "class ModelNew(")
    good, bad = (folder / "asks" / name / "1.1.reply.md" for name in ("one", "other"))
    good.write_text(f"So.\n```python\n{source}```\n")
    bad.write_text("")
    refused = adaexplore("campaign", folder)
    assert refused.code == 2
    assert f"{bad}: is empty; write the reply into it" in refused.err
    assert steps(folder)["one"] == 0
    bad.write_text("I would rather not.")
    again = adaexplore("campaign", folder)
    assert steps(folder)["one"] == 1
    assert "other: 1.1.reply.md: taken; there is a follow-up" in again.out


@pytest.mark.slow
def test_what_waits_for_answers_is_confirmed_once_the_budget_is_spent(
    adaexplore, problems, tmp_path
):
    folder = tmp_path / "night"
    words = ["--proposer", "manual", "--language", "cpp", "--steps", 3, "--run", folder]
    first = adaexplore("campaign", problems[0], *CPU, *words, "--set", "compiler_seeds=1")
    assert "* not measured again" in first.out
    ended = adaexplore("campaign", folder, "--budget", "1steps")
    assert steps(folder) == {"one": 1}
    assert "* not measured again" not in ended.out


@pytest.mark.slow
def test_no_more_prompts_are_asked_for_than_the_budget_has_steps(adaexplore, problems, tmp_path):
    folder = tmp_path / "night"
    words = ["--proposer", "manual", "--language", "cpp", "--budget", "2steps", "--run", folder]
    adaexplore("campaign", problems[0], *FAST, *words, "--set", "p_strategy=0")
    prompts = folder / "asks" / "one"
    assert [path.name for path in sorted(prompts.iterdir())] == ["1.1.md", "2.1.md"]
    source = problems[0].read_text().replace("class Model(", "class ModelNew(")
    (prompts / "1.1.reply.md").write_text(f"So.\n```python\n{source}```\n")
    adaexplore("campaign", folder)
    assert steps(folder) == {"one": 1}
    assert len(list(prompts.glob("*.1.md"))) == 2


@pytest.mark.slow
def test_a_campaign_that_ends_among_the_seeds_asks_nobody_yet(
    adaexplore, problems, proposer, tmp_path, monkeypatch
):
    begin = proposer.begin

    def slowly(context):
        time.sleep(1.1)
        return begin(context)

    monkeypatch.setattr(proposer, "begin", slowly, raising=False)
    folder = tmp_path / "night"
    words = ["--proposer", "manual", "--budget", "1s", "--set", "compiler_seeds=3", "--run", folder]
    words += ["--language", "cpp", "--steps", 4]
    assert adaexplore("campaign", problems[0], *FAST, *words).code == 0
    assert steps(folder)["one"] < 2  # a busy machine takes the second for preparing
    assert not list(folder.rglob("*.md"))

    with open_run(folder / "one") as run:  # a seed that was stopped half-way
        Ledger(run.store, {"compiler": proposer}).ask("compiler")
    adaexplore("campaign", folder, "--budget", "1h")
    assert steps(folder) == {"one": 3}
    assert [path.name for path in (folder / "asks" / "one").iterdir()] == ["4.1.md"]


def test_an_interrupted_campaign_says_how_to_go_on_and_does(
    adaexplore, problems, proposer, tmp_path, monkeypatch
):
    folder = tmp_path / "night"

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("adaexplore.run.campaign.turns.Campaign._land", interrupt)
        result = adaexplore("campaign", problems[0], *FAST, "--steps", 2, "--run", folder)
    assert result.code == 130
    assert f"adaexplore resume {folder}" in result.out
    assert adaexplore("campaign", folder).code == 0
    assert steps(folder) == {"one": 2}


@pytest.mark.slow
def test_a_run_of_which_a_kill_left_half_is_made_anew(adaexplore, problems, tmp_path):
    folder = tmp_path / "night"
    words = [*FAST, "--steps", 1, "--run", folder]
    assert adaexplore("campaign", problems[0], *words).code == 0
    shutil.move(folder / "one", folder / ".one.new")
    (folder / ".one.new" / "run.db").write_bytes(b"half")
    assert adaexplore("campaign", folder).code == 0
    assert steps(folder) == {"one": 1}
    assert not (folder / ".one.new").exists()


def test_a_problem_file_that_is_not_there_is_refused_before_a_folder_is_made(
    adaexplore, problems, tmp_path
):
    gone, night = tmp_path / "gone.py", tmp_path / "night"
    complaint = adaexplore("campaign", problems[0], gone, *FAST, "--run", night).complaint
    assert complaint == f"adaexplore: there is no problem file {gone}"
    assert not night.exists()


@pytest.mark.slow
def test_where_nothing_can_be_judged_the_exit_code_says_so(adaexplore, problems, file, tmp_path):
    broken = file("broken.py", "class Model: ...")
    words = [*FAST, "--run", tmp_path / "night"]
    result = adaexplore("campaign", problems[2], broken, *words)
    assert result.code == 2
    for name in ("nan: ", "broken: "):
        assert name in result.out
    broken.write_text(problems[0].read_text())
    assert adaexplore("campaign", tmp_path / "night", "--steps", 1).code == 0
    assert steps(tmp_path / "night") == {"broken": 1}


@pytest.mark.slow
def test_a_model_works_on_all_problems_within_one_budget(llm, adaexplore, problems, tmp_path):
    folder, out = tmp_path / "night", tmp_path / "out.json"
    words = [*FAST, "--model", LOCAL, "--steps", 1, "--run", folder, "--json", out]
    assert adaexplore("campaign", *problems[:2], *words).code == 0
    assert steps(folder) == {"one": 1, "other": 1}
    spent = json.loads(out.read_text())["spent"]
    assert spent["calls"] == len(llm.conversations) >= 2
    assert spent["tokens"] == 120 * spent["calls"]

    words = ["--steps", 3, "--budget", f"{spent['tokens'] + 100}tok", "--json", out]
    assert adaexplore("campaign", folder, *words).code == 0
    [group] = json.loads(out.read_text())["groups"]
    assert steps(folder) == {"one": 1, "other": 1}
    assert all("the budget is used up" in one["reason"] for one in group["results"])


class TestBadInput:
    @pytest.mark.parametrize(
        ("words", "complaint"),
        [
            (["--budget", "much"], "budget 'much' is not understood"),
            (["--budget", "2usd"], "goes with --model; there is none"),
            (["--model", "nowhere:x"], "nowhere"),
            (["--set", "windw=3"], "did you mean window"),
            (["--set", "window"], "write it as key=value"),
            (["--device", "cuda:99"], "no such GPU"),
            (["--device", "cpu,tpu"], "--device tpu: write cpu, cuda or cuda:<index>"),
        ],
    )
    def test_options(self, adaexplore, problem, tmp_path, words, complaint):
        folder = tmp_path / "night"
        assert complaint in adaexplore("campaign", problem, *words, "--run", folder).complaint
        assert not folder.exists()

    def test_the_same_file_twice(self, adaexplore, problem):
        assert "is there twice" in adaexplore("campaign", problem, problem).complaint

    def test_a_folder_that_is_no_campaign(self, adaexplore, tmp_path):
        line = adaexplore("campaign", tmp_path).complaint
        assert f"{tmp_path} is a folder and no campaign" in line

    def test_a_file_beside_problems(self, adaexplore, problem, file):
        path = file("a.toml", "")
        assert "give nothing beside it" in adaexplore("campaign", path, problem).complaint

    def test_a_place_that_is_taken(self, adaexplore, problem, tmp_path):
        line = adaexplore("campaign", problem, "--device", "cpu", "--run", tmp_path).complaint
        assert "exists and is not empty" in line

    def test_a_campaign_goes_on_as_it_began(self, adaexplore, problems, tmp_path):
        folder = tmp_path / "night"
        assert adaexplore("campaign", problems[0], *FAST, "--steps", 1, "--run", folder).code == 0
        line = adaexplore("campaign", folder, "--precision", "tf32").complaint
        assert line.startswith("adaexplore: --precision: ")
        assert "it may change --steps, --budget, --parallel, --allocation" in line
        for both in ((folder, problems[1]), (problems[1], folder)):
            assert "give nothing beside it" in adaexplore("campaign", *both).complaint

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [("{", "is damaged"), ("[]", "is damaged"), ('{"format": 99}', "upgrade adaexplore")],
    )
    def test_a_manifest_that_cannot_be_read(self, adaexplore, tmp_path, text, complaint):
        (tmp_path / "campaign.json").write_text(text)
        assert complaint in adaexplore("campaign", tmp_path).complaint
