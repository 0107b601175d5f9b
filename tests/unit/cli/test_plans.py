"""What a run was planned to be, and what changes it: budgets, steps, servers, templates."""

import shutil

import pytest
from answering import LOCAL, MODULE, kept
from test_asks import RIGHT, SETTINGS, names

from adaexplore.core.ask import MANUAL
from adaexplore.core.environment import Environment
from adaexplore.core.problem import Problem
from adaexplore.core.settings.configure import parse_settings
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.store import RunRecord, create_run, open_run
from llm_server import KEY, status

QUIET = ("--set", "confirm=false", "--set", "p_strategy=0", "--set", "p_contrast=0")


@pytest.fixture
def prompts(tmp_path):
    """A folder of templates, one of them short."""
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "problem.j2").write_text("Mine: {{ problem.name }}.")
    return folder


@pytest.fixture
def asks(tmp_path):
    return tmp_path / "asks"


@pytest.fixture
def start(adaexplore, problem, tmp_path):
    def start(*words):
        path = tmp_path / "run"
        return adaexplore(
            "explore", problem, "--proposer", "manual", "--device", "cpu", "--run", path, *words
        ), path

    return start


@pytest.fixture
def made(tmp_path, problem):
    """A run as `start` makes it, of which nothing was measured."""
    path = tmp_path / "made"
    record = RunRecord(
        problem=Problem("problem", problem.read_text(), "cpp", "cpu"),
        config=parse_settings(SETTINGS[1::2]).model_copy(
            update={"seed": 0, "steps": 3, "proposer": MANUAL}
        ),
        proposers=(MANUAL,),
        environment=Environment(),
        command="adaexplore start problem.py",
        created_at=0.0,
        plan={"proposers": [MANUAL]},
    )
    create_run(path, record).close()
    return path


class TestResume:
    def test_a_budget_is_raised_for_good(self, llm, explore, adaexplore):
        result, path = explore("--model", LOCAL, "--budget", "100tok,1h", *QUIET)
        assert "stopping: the budget" in result.out
        assert result.out.splitlines()[-1].endswith(": run.db, report.html")

        raised = adaexplore("resume", path, "--budget", "1Mtok,1step")
        assert raised.code == 0, raised
        record, nodes, _ = kept(path)
        assert (record.config.budget, record.steps, len(nodes)) == ("1Mtok,1step", 1, 1)
        assert raised.out.splitlines()[-1].endswith(": run.db, best.py, report.html")

    @pytest.mark.slow
    def test_a_server_that_moved(self, llm, explore, adaexplore, monkeypatch):
        monkeypatch.delenv("ADAEXPLORE_BASE_URL")
        llm.answer = lambda _: status(404, "nobody by that name")
        words = ["--model", LOCAL, "--steps", 1, *QUIET]
        result, path = explore(*words, "--base-url", f"{llm.url}/v0")
        assert result.code == 2

        llm.answer = lambda _: MODULE.format(times=3)
        moved = adaexplore("resume", path, "--base-url", f"{llm.url}/v1")
        assert moved.code == 0, moved
        assert kept(path)[0].config.base_url == f"{llm.url}/v1"

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--budget", "plenty"], "budget 'plenty' is not understood"),
            pytest.param(
                ["--budget", "2usd"], f"no price is known for {LOCAL}", marks=pytest.mark.slow
            ),
            pytest.param(
                ["--base-url", "localhost"],
                "looks like http://localhost:8000/v1",
                marks=pytest.mark.slow,
            ),
            (["--prompts", "nowhere"], "no such folder of prompt templates"),
        ],
    )
    def test_a_change_that_cannot_be_made_changes_nothing(
        self,
        llm,
        explore,
        adaexplore,
        words,
        said,
    ):
        _, path = explore("--model", LOCAL, "--budget", "1tok", *QUIET)
        before = kept(path)[0].plan
        assert said in adaexplore("resume", path, *words).complaint
        assert kept(path)[0].plan == before


@pytest.mark.slow
def test_a_server_that_wants_no_key(llm, explore, monkeypatch):
    monkeypatch.delenv("ADAEXPLORE_API_KEY")
    llm.script.extend([None, status(401, f"not {KEY}")])
    result, path = explore("--model", LOCAL, "--steps", 2, *QUIET)
    assert len(kept(path)[1]) == 1
    [line] = result.err.splitlines()
    assert "refuses calls without a key (401); set ADAEXPLORE_API_KEY" in line


class TestTemplates:
    @pytest.mark.slow
    def test_a_run_has_its_templates_with_it(self, start, adaexplore, prompts, asks, tmp_path):
        started, path = start("--prompts", prompts, *SETTINGS)
        assert started.code == 0, started
        shutil.rmtree(prompts)
        elsewhere = tmp_path / "elsewhere"
        path.rename(elsewhere)
        adaexplore("ask", elsewhere, "-o", asks)
        assert "Mine: problem." in (asks / "1.1.md").read_text()
        (asks / "1.1.reply.md").write_text(RIGHT)
        assert adaexplore("tell", elsewhere, asks).code == 0
        assert adaexplore("resume", elsewhere).code == 0
        assert len(kept(elsewhere)[1]) == 1

    def test_evaluating_needs_none(self, made, adaexplore, asks):
        """Also where those of the run are no use to a later release."""
        adaexplore("ask", made, "-o", asks)
        (asks / "1.1.reply.md").write_text(RIGHT)
        adaexplore("tell", made, asks)
        with open_run(made) as directory:
            gone = {"mine/no-such-template.j2": ""}
            directory.store.set_plan({**directory.store.run().plan, "templates": gone})
        assert "no such prompt template" in adaexplore("ask", made, "-o", asks).complaint
        assert adaexplore("resume", made).code == 0

    def test_what_shows_only_in_use_is_said_at_the_start(self, start, prompts):
        (prompts / "task_repair.j2").write_text("Well,\n{{ problem.nosuch }}")
        result, path = start("--prompts", prompts)
        assert (result.code, path.exists()) == (2, False)
        [line] = result.err.splitlines()
        assert "prompts/task_repair.j2, line 2: " in line
        assert "nosuch" in line

    def test_models_runs_too(self, llm, explore, prompts):
        (prompts / "guidance.j2").write_text("{{ guidance.nosuch }}")
        result, path = explore("--model", LOCAL, "--prompts", prompts)
        assert (result.code, path.exists()) == (2, False)
        assert "guidance.j2, line 1: " in result.err

    def test_no_ask_is_left_open_for_a_prompt_that_cannot_be_made(
        self, made, adaexplore, prompts, asks
    ):
        broken = {"mine/hardware.j2": "{{ baselines_us.eager | time }}"}
        with open_run(made) as directory:
            directory.store.set_plan({"proposers": [MANUAL], "templates": broken})
        assert "mine/hardware.j2, line 1: " in adaexplore("ask", made, "-o", asks).complaint
        with open_run(made) as directory:
            assert directory.store.ask_count() == 0
            directory.store.set_reference(ReferenceFacts(baselines_us={"eager": 10.0}))
        assert adaexplore("ask", made, "-o", asks).code == 0
        assert names(asks) == ["1.1.md"]

    def test_others_from_now_on(self, made, adaexplore, prompts, asks):
        adaexplore("ask", made, "-o", asks)
        assert "Mine" not in (asks / "1.1.md").read_text()
        adaexplore("ask", made, "-n", 0, "-o", asks, "--prompts", prompts)
        assert "Mine: problem." in (asks / "1.1.md").read_text()
        adaexplore("ask", made, "-n", 1, "-o", asks)
        assert "Mine: problem." in (asks / "2.1.md").read_text()

        (prompts / "problem.j2").write_text("{{ problem.nosuch }}")
        line = adaexplore("ask", made, "-o", asks, "--prompts", prompts).complaint
        assert "problem.j2, line 1: " in line


class TestAsks:
    def test_no_more_than_planned(self, made, adaexplore, asks):
        line = adaexplore("ask", made, "-n", 4, "-o", asks).complaint
        assert "of 3 planned steps 0 are made and 0 are asked for, so there are 3" in line
        assert adaexplore("ask", made, "-n", 3, "-o", asks).code == 0
        line = adaexplore("ask", made, "-o", asks).complaint
        assert "0 are made and 3 are asked for, so there are 0 to ask for, not 1" in line
        assert adaexplore("ask", made, "-n", 0, "-o", asks).code == 0
        assert adaexplore("ask", made, "--steps", 4, "-o", asks).code == 0
        assert names(asks) == ["1.1.md", "2.1.md", "3.1.md", "4.1.md"]
        assert kept(made)[0].steps == 4

    def test_a_prompt_is_no_reply(self, made, adaexplore, asks):
        adaexplore("ask", made, "-o", asks)
        told = adaexplore("tell", made, asks / "1.1.md")
        assert told.code == 2
        assert "1.1.md: that is the prompt; its answer goes to 1.1.reply.md" in told.out

    def test_a_person_has_no_price(self, made, adaexplore, asks):
        adaexplore("ask", made, "-o", asks)
        (asks / "1.1.reply.md").write_text(RIGHT)
        adaexplore("tell", made, asks)
        tables = adaexplore("show", made, "--cost").out
        assert "price" not in tables
        [line] = [line for line in tables.splitlines() if line.startswith("manual ")]
        assert "-" in line.split()
