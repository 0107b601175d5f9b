"""explore and resume with language models: over real HTTP, with real evaluations."""

import json
import os
import signal

import pytest
from answering import LOCAL, MODULE, kept
from starlette.responses import JSONResponse
from test_search_commands import Renaming

from adaexplore.llm.credentials import KEY_VARIABLES
from adaexplore.run.session import Session
from adaexplore.sandbox.process import ForkServer
from llm_server import hang, html, status

QUIET = ("--set", "confirm=false", "--set", "p_strategy=0", "--set", "p_contrast=0")


@pytest.fixture
def compiler(monkeypatch):
    monkeypatch.setattr(Session, "compiler", lambda *_: Renaming())


@pytest.mark.slow
def test_a_run_from_beginning_to_end(llm, explore, adaexplore, monkeypatch):
    monkeypatch.delenv("ADAEXPLORE_BASE_URL")
    words = ["--model", LOCAL, "--base-url", f"{llm.url}/v1", "--steps", 3, "--set", "p_large=0"]
    words += ["--set", "confirm_top=1", "--set", "temperature=0.5", "--set", "reply_tokens=9000"]
    result, path = explore(*words, *QUIET[2:])
    assert result.code == 0, result
    assert "step   3/3" in result.out
    assert "confirming" in result.out
    assert {(body["temperature"], body["max_completion_tokens"]) for body in llm.bodies} == {
        (0.5, 9000)
    }
    record, nodes, calls = kept(path)
    assert "--set temperature=0.5 --set reply_tokens=9000" in record.command
    assert [node.evaluation.status for node in nodes] == ["passed"] * 3
    assert {node.proposal.origin for node in nodes} == {LOCAL}
    assert len(calls) == len(llm.conversations) >= 3
    assert record.config.base_url == f"{llm.url}/v1"
    assert f"--model {LOCAL} " in record.command
    assert f"--base-url {llm.url}/v1" in record.command
    assert "clamp(min=0)" in (path / "best.py").read_text()

    made = len(calls)
    summed = f"odels: {made} calls, {100 * made} tok in, {20 * made} tok out, unknown price"
    for text in (result.out, adaexplore("show", path).out, (path / "report.html").read_text()):
        assert summed in text

    costs = json.loads(adaexplore("show", path, "--cost", "--json").out)
    assert costs["total"]["input_tokens"] == 100 * made
    assert [each["model"] for each in costs["models"]] == [LOCAL]
    assert sum(each["steps"] for each in costs["forms"]) == 3
    assert sum(each["share"] for each in costs["sections"]) == pytest.approx(1.0)
    tables = adaexplore("show", path, "--cost")
    assert tables.code == 0
    for word in ("large", "problem", "unknown price", f"total: {made} calls"):
        assert word in tables.out

    longer = adaexplore("resume", path, "--steps", 4)
    assert longer.code == 0, longer
    assert "step   4/4" in longer.out


@pytest.mark.slow
def test_a_recorded_run_is_replayed_without_a_server(llm, explore, file, tmp_path, monkeypatch):
    """With templates that show nothing measured: no two runs measure the same."""
    (tmp_path / "prompts").mkdir()
    for name in ("hardware", "problem", "pool", "tried"):
        file(f"prompts/{name}.j2", f"no {name} today")
    words = ["--prompts", tmp_path / "prompts", "--model", LOCAL, "--steps", 2]
    words += [*QUIET, "--set", "small_limit=0"]
    recorded, first = explore(*words, "--record", tmp_path / "replies")
    assert recorded.code == 0, recorded
    asked = len(llm.conversations)

    monkeypatch.delenv("ADAEXPLORE_BASE_URL")
    replayed, second = explore(*words, "--replay", tmp_path / "replies")
    assert replayed.code == 0, replayed
    assert len(llm.conversations) == asked
    sources = [[node.candidate.source for node in kept(path)[1]] for path in (first, second)]
    assert sources[0] == sources[1]

    (tmp_path / "prompts" / "pool.j2").write_text("another pool")
    strayed, path = explore(*words, "--replay", tmp_path / "replies")
    assert strayed.code == 2
    assert "no reply of openai-compatible:local to this prompt (large)" in strayed.err
    assert "the nearest is " in strayed.err
    assert f"adaexplore resume {path}" in strayed.out

    assert kept(path)[1] == []


@pytest.fixture
def interruptible():
    """Background jobs of a shell ignore Ctrl-C, and their children with them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_run_that_was_stopped_while_a_model_thinks_goes_on(
    llm, explore, adaexplore, interruptible
):
    async def stop(scope, receive, send):
        os.kill(os.getpid(), signal.SIGINT)
        await hang(scope, receive, send)

    llm.script.extend([None, stop])
    result, path = explore("--model", LOCAL, "--steps", 2, *QUIET)
    assert result.code == 130, result
    assert "stopped after 1 of 2 steps; nothing recorded is lost" in result.out
    assert f"adaexplore resume {path}" in result.out
    resumed = adaexplore("resume", path)
    assert resumed.code == 0, resumed
    assert "note: " not in resumed.out.partition("reference")[0]
    assert len(kept(path)[1]) == 2


@pytest.mark.slow
def test_several_models_and_the_compiler_share_a_run(llm, explore, compiler):
    names = ["openai:gpt-5-mini", "anthropic:claude-haiku-4-5"]
    words = [word for name in names for word in ("--model", name)]
    result, path = explore(*words, "--proposer", "compiler", "--steps", 4, *QUIET)
    assert result.code == 0, result
    record, nodes, calls = kept(path)
    assert {node.proposal.origin for node in nodes} == {*names, "compiler"}
    assert {call.reply.model for call in calls} == set(names)
    assert all(call.reply.usage.cost_usd > 0 for call in calls)
    assert record.proposers == (*names, "compiler")


@pytest.mark.slow
def test_the_compiler_makes_the_first_steps_if_asked_to(llm, explore, compiler):
    result, path = explore("--model", LOCAL, "--steps", 2, "--set", "compiler_seeds=1", *QUIET)
    assert result.code == 0, result
    assert [node.proposal.origin for node in kept(path)[1]] == ["compiler", LOCAL]


@pytest.mark.slow
def test_a_budget_of_steps_is_the_number_of_steps(llm, explore):
    result, path = explore("--model", LOCAL, "--budget", "1step", *QUIET)
    assert result.code == 0, result
    record, nodes, _ = kept(path)
    assert (record.steps, len(nodes)) == (1, 1)


@pytest.mark.parametrize(
    "budget",
    [
        "100tok",
        *(pytest.param(budget, marks=pytest.mark.slow) for budget in ("0.000001usd", "0.000001s")),
    ],
)
def test_a_budget_that_is_spent_ends_the_run_well(llm, explore, budget):
    result, path = explore("--model", "openai:gpt-5-mini", "--budget", budget, *QUIET)
    assert result.code == 0, result
    assert "stopping: the budget" in result.out
    assert (path / "report.html").exists()
    assert llm.conversations == []


@pytest.mark.slow
def test_what_earlier_sessions_took_counts_against_the_budget(llm, explore, adaexplore):
    message = {"role": "assistant", "content": MODULE.format(times=3)}
    dear = {
        "id": "chat-1",
        "object": "chat.completion",
        "created": 1,
        "model": "local",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 50_000, "completion_tokens": 20, "total_tokens": 50_020},
    }
    llm.script.append(JSONResponse(dear))
    _, path = explore("--model", LOCAL, "--steps", 1, "--budget", "30ktok", *QUIET)
    assert len(kept(path)[1]) == 1
    resumed = adaexplore("resume", path, "--steps", 3)
    assert resumed.code == 0
    assert "the budget is used up: 50020 of 30000 tokens" in resumed.out
    assert len(llm.conversations) == 1


class TestAnotherKindOfRun:
    def test_resume_of_a_run_answered_by_hand_evaluates_what_is_queued(
        self, adaexplore, problem, tmp_path
    ):
        path = tmp_path / "run"
        adaexplore("explore", problem, "--proposer", "manual", "--device", "cpu", "--run", path)
        resumed = adaexplore("resume", path, "--steps", 50)
        assert resumed.code == 0
        assert "nothing waits for its evaluation" in resumed.out
        assert kept(path)[0].steps == 50

    def test_a_searched_run_takes_no_asks(self, llm, explore, adaexplore, tmp_path):
        _, path = explore("--model", LOCAL, "--budget", "1tok", *QUIET)
        line = adaexplore("ask", path, "-o", tmp_path / "asks").complaint
        assert f"is searched by {LOCAL}: go on with `adaexplore resume`" in line
        (tmp_path / "1.1.reply.md").write_text("Hello.")
        assert "is searched by" in adaexplore("tell", path, tmp_path).complaint


class TestBadInput:
    @pytest.fixture(autouse=True)
    def no_processes(self, adaexplore, monkeypatch):
        """All of it is said before any worker starts."""

        def start(preload=()):
            raise AssertionError("a process was started")

        monkeypatch.setattr(ForkServer, "start", staticmethod(start))
        keys = [variable for variables in KEY_VARIABLES.values() for variable in variables]
        for variable in {*keys, "ADAEXPLORE_BASE_URL"}:
            monkeypatch.delenv(variable, raising=False)

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--model", "openai:gpt-5-mini"], "set OPENAI_API_KEY in the environment"),
            (["--model", "anthropic:claude-haiku-4-5"], "set ANTHROPIC_API_KEY"),
            (["--model", "opnai:gpt-5-mini"], "did you mean openai:gpt-5-mini"),
            (["--model", "gpt-5-mini"], "did you mean openai:gpt-5-mini?"),
            (["--model", "openai:"], "is not the name of a model"),
            (["--model", ""], "is not the name of a model"),
            (["--model", "compiler"], "write --proposer compiler"),
            (["--model", "manual"], "write --proposer manual"),
            (["--model", LOCAL], "no base URL; give one or set ADAEXPLORE_BASE_URL"),
            (["--model", LOCAL, "--base-url", "localhost"], "looks like http://localhost:8000/v1"),
            (["--budget", "plenty"], "budget 'plenty' is not understood; write it as 2usd"),
            (["--budget", "0usd"], "budget '0usd' has to be more than nothing"),
            (["--budget", "-1usd"], "budget '-1usd' is not understood"),
            (["--budget", "2usd,3usd"], "limits usd twice"),
            (["--budget", "2usd"], "a budget in usd or tokens goes with --model; there is none"),
            (["--prompts", "."], "--prompts goes with --model; there is none"),
            (["--set", "temperature=1"], "--set temperature=1.0 goes with --model; there is none"),
            (["--set", "temperature=3"], "--set temperature=3: Input should be less than or equal"),
            (["--set", "reasoning=hard"], "--set reasoning=hard: Input should be 'minimal', 'low'"),
            (["--record", "replies"], "--record goes with --model; there is none"),
            (["--base-url", "http://localhost/v1"], "--base-url goes with --model; there is none"),
        ],
    )
    def test_of_names_and_limits(self, explore, words, said):
        result, path = explore(*words)
        assert said in result.complaint
        assert not path.exists()

    def test_a_base_url_for_another_provider(self, llm, explore):
        result, _ = explore("--model", "openai:gpt-5-mini", "--base-url", "http://localhost/v1")
        assert "--base-url goes with --model openai-compatible:MODEL" in result.complaint

    def test_a_budget_in_dollars_for_a_model_without_a_price(self, llm, explore):
        result, _ = explore("--model", LOCAL, "--budget", "2usd")
        assert f"no price is known for {LOCAL}: give its budget in tokens" in result.complaint

    @pytest.mark.parametrize(
        ("name", "text", "said"),
        [
            (None, "", "prompts: no such folder of prompt templates"),
            ("poool.j2", "", "no such prompt template; did you mean pool.j2"),
            ("pool.j2", "\n{% for %}", "pool.j2, line 2: "),
            ("pool.j2", "{{ hardwear }}", "no such variable: hardwear; did you mean hardware"),
        ],
    )
    def test_prompts(self, llm, explore, file, tmp_path, name, text, said):
        if name:
            (tmp_path / "prompts").mkdir()
            file(f"prompts/{name}", text)
        result, _ = explore("--model", LOCAL, "--prompts", tmp_path / "prompts")
        assert said in result.complaint

    def test_replays(self, explore, tmp_path):
        words = ["--model", LOCAL, "--replay", tmp_path / "gone"]
        assert "gone: no such folder of recorded calls" in explore(*words)[0].complaint
        words = ["--model", LOCAL, "--replay", tmp_path]
        assert f"no calls of {LOCAL} are recorded there" in explore(*words)[0].complaint
        words += ["--record", tmp_path]
        assert "a replay has nothing new to record" in explore(*words)[0].complaint

    def test_a_place_to_record_that_is_a_file(self, llm, explore, problem):
        result, _ = explore("--model", LOCAL, "--record", problem)
        assert "cannot record there: File exists" in result.complaint


class TestProvider:
    def test_one_that_refuses_the_key(self, llm, explore):
        llm.script.append(status(401, "bad key"))
        result, path = explore("--model", "openai:gpt-5-mini", *QUIET)
        assert result.code == 2
        [line] = result.err.splitlines()
        assert "the provider refuses the key in OPENAI_API_KEY (401); set a valid one" in line
        assert f"adaexplore resume {path}" in result.out

    @pytest.mark.parametrize(
        "fault",
        [
            pytest.param(status(500), id="500"),
            pytest.param(html(), id="html", marks=pytest.mark.slow),
        ],
    )
    def test_one_that_is_down_for_good(self, llm, explore, adaexplore, fault):
        llm.answer = lambda _: fault
        words = ["--set", "outage_patience_s=0", "--steps", 1, *QUIET]
        result, path = explore("--model", LOCAL, *words)
        assert result.code == 3
        [line] = result.err.splitlines()
        assert f"{LOCAL} gave no answer in 8 attempts" in line
        assert f"adaexplore resume {path}" in result.out
        assert kept(path)[1] == []
