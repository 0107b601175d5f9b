"""adapt and explore --memory-update: over real HTTP, with real evaluations."""

import pytest

from adaexplore.memory.files import load_memory
from adaexplore.run.learning import learn
from adaexplore.store import read_run
from elementwise import candidate, reference
from llm_server import LlmServer

LOCAL = "openai-compatible:local"
REFERENCE = reference("torch.tanh(x)")
WRONG = candidate("y = tl.tanh(x)")
RIGHT = candidate("y = 2 * tl.sigmoid(2 * x) - 1")
RULE = f"""NAME: no tanh
KIND: compile
STATEMENT: There is no `tl.tanh`: take `tl.sigmoid`.
TOPICS: tl.tanh
```python
{RIGHT}```
"""


def answer(messages):
    """A model that errs, does not mend it, and knows why."""
    if "STATEMENT:" in messages[-1]["text"]:
        return RULE
    return f"Again.\n```python\n{WRONG}```\n"


@pytest.fixture
def model(monkeypatch):
    with LlmServer(answer) as server:
        server.use(monkeypatch)
        yield server


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Reduce little: reduction is tested elsewhere."""
    monkeypatch.setattr(learn, "MAX_EVALUATIONS", 4)


def test_adapt_attempts_tasks_and_learns_and_does_nothing_twice(adaexplore, model, file, tmp_path):
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "tanh.py").write_text(REFERENCE)
    memory = tmp_path / "memory.toml"
    words = ("adapt", "--model", LOCAL, "--problems", folder, "-o", memory, "--target", "sm_90")
    words += ("--memory", "none")

    result = adaexplore(*words)
    assert result.code == 0, result
    assert "0 of 1 tasks came out right" in result.out
    assert "1 new rules" in result.out
    [rule] = load_memory(memory)
    assert rule.tasks == ("tanh",)
    with read_run(tmp_path / "memory.learning" / "runs" / "tanh") as run:
        assert [node.step_kind for node in run.store.nodes()] == ["large", "small"]

    asked = len(model.conversations)
    again = adaexplore(*words)
    assert "0 new rules, 1 known ones counted" in again.out
    assert len(model.conversations) == asked
    assert load_memory(memory) == [rule]

    run = tmp_path / "memory.learning" / "runs" / "tanh"
    other, work = tmp_path / "other.toml", tmp_path / "work"
    by_hand = ("adapt", run, "-o", other, "--work", work, "--target", "sm_90")
    assert "answer in" in adaexplore(*by_hand).out
    [question] = (work / "rules").glob("*.1.md")
    question.with_name(f"{question.stem}.reply.md").write_text(RULE)
    assert "1 new rules" in adaexplore(*by_hand).out
    assert [r.statement for r in load_memory(other)] == [rule.statement]


def say(messages):
    """A model that errs; as published, it says what cannot be done, in the same words."""
    text = messages[-1]["text"]
    if "You cannot" in text.partition("# Your answer")[2]:
        return "You cannot call tl.tanh."
    if "# The new rule" in text:
        return '{"is_duplicate": true, "matched_index": 1, "confidence": 0.9}'
    if "<<<<<<< OLD" in text:
        return "<<<<<<< OLD\n    y = tl.tanh(x)\n=======\n    y = tl.tanh(x + 0)\n>>>>>>> NEW"
    return answer(messages)


@pytest.mark.parametrize(
    ("way", "lines"),
    [
        pytest.param(
            "published",
            (
                "t2: (1 of 2) 2 steps, 0 correct, 2 failed (2 compile_error); 1 new rules, "
                "unchecked, 1 counted; 1 rules in memory, 1 of them in prompts",
                "2 of 2 tasks, 4 steps: 0 correct, 4 failed (4 compile_error)",
                "1 rules learned, unchecked; 3 counted for known rules, 0 without a rule",
            ),
            id="published",
        ),
        pytest.param(
            "checked",
            (
                "t10: (2 of 2) 2 steps, 0 correct, 2 failed (2 compile_error); 0 new rules, "
                "checked, 1 counted; 1 rules in memory, 1 of them in prompts",
                "1 rules learned, checked; 1 counted for known rules, 0 without a rule",
            ),
            id="checked",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_memory_grows_from_task_to_task(adaexplore, monkeypatch, tmp_path, way, lines):
    folder, memory = tmp_path / "tasks", tmp_path / "memory.toml"
    folder.mkdir()
    for name in ("t2", "t10"):
        (folder / f"{name}.py").write_text(REFERENCE)
    words = ("adapt", "--preset", "adaexplore-adapt", "--steps", 2, "--set", "memory_threshold=1")
    words += ("--set", f"learning={way}", "--model", LOCAL, "--problems", folder, "-o", memory)
    with LlmServer(say) as server:
        server.use(monkeypatch)
        result = adaexplore(*words, "--target", "sm_90")
        assert result.code == 0, result
        for line in lines:
            assert line in result.out
        [rule] = load_memory(memory)
        assert (rule.is_checked, rule.tasks) == (way == "checked", ("t2", "t10"))
        assert rule.support == 4
        for name, shown in (("t2", False), ("t10", True)):
            with read_run(tmp_path / "memory.learning" / "runs" / name) as run:
                calls = run.store.calls()
            assert {rule.statement in c.prompt.messages[-1].text for c in calls} == {shown}
        asked = len(server.conversations)
        again = adaexplore(*words, "--target", "sm_90")
        assert lines[-1] in again.out
        assert "2 steps" not in again.out.replace("2 of 2 tasks", "")
        assert len(server.conversations) == asked
        assert load_memory(memory) == [rule]


@pytest.mark.slow
def test_without_a_model_prompts_wait_in_files_and_the_same_command_goes_on(adaexplore, tmp_path):
    folder, memory = tmp_path / "tasks", tmp_path / "memory.toml"
    folder.mkdir()
    (folder / "tanh.py").write_text(REFERENCE)
    words = ("adapt", "--problems", folder, "-o", memory, "--target", "sm_90", "--memory", "none")
    asks = tmp_path / "memory.learning" / "asks" / "tanh"

    assert "1 prompt waits" in adaexplore(*words).out
    first = (asks / "1.1.md").read_text()
    assert "Every kernel must also do this" in first
    assert "1 prompt waits" in adaexplore(*words).out
    assert [path.name for path in asks.iterdir()] == ["1.1.md"]

    (asks / "1.1.reply.md").write_text(f"Try.\n```python\n{WRONG}```\n")
    failed = adaexplore(*words).out
    assert "1 prompt waits" in failed
    assert "answer in" in failed  # about the rule: it need not wait for the repair
    repair = (asks / "2.1.md").read_text()
    assert "tl.tanh(x)" in repair
    assert "Every kernel must also do this" in repair

    (asks / "2.1.reply.md").write_text(f"Mended.\n```python\n{RIGHT}```\n")
    result = adaexplore(*words)
    assert "tanh: right" in result.out
    assert "1 of 1 tasks came out right" in result.out
    assert "prompts wait" not in result.out


def test_a_reply_that_is_none_is_named(adaexplore, tmp_path):
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "tanh.py").write_text(REFERENCE)
    memory = tmp_path / "memory.toml"
    words = ("adapt", "--problems", folder, "-o", memory, "--target", "sm_90", "--memory", "none")
    words += ("--no-techniques",)
    adaexplore(*words)
    asks = tmp_path / "memory.learning" / "asks" / "tanh"
    assert "Every kernel must also do this" not in (asks / "1.1.md").read_text()
    (asks / "first.reply.md").write_text("hello")
    assert "name it after its prompt" in adaexplore(*words).complaint


@pytest.mark.slow
def test_a_search_updates_a_memory_at_its_end(adaexplore, model, file, tmp_path):
    problem, memory = file("tanh.py", REFERENCE), tmp_path / "memory.toml"
    result = adaexplore(
        *("explore", problem, "--model", LOCAL, "--target", "sm_90", "--memory", "none"),
        *("--memory-update", memory, "--steps", 1, "--run", tmp_path / "run"),
    )
    assert result.code == 0, result
    [rule] = load_memory(memory)
    assert (rule.source, rule.tasks) == ("failure", ("tanh",))
    assert rule.matcher.code == ("tl.tanh",)


@pytest.fixture
def campaign(adaexplore, monkeypatch, tmp_path):
    """A function that runs a campaign of two problems, with turns of one step, or resumes it."""
    for name in ("t1", "t2"):
        (tmp_path / f"{name}.py").write_text(REFERENCE)
    folder, problems = tmp_path / "night", [tmp_path / "t1.py", tmp_path / "t2.py"]
    words = ("--memory-update", tmp_path / "memory.toml", "--memory", "none", "--run", folder)
    words += ("--model", LOCAL, "--target", "sm_90", "--steps", 2, "--allocation", "uniform")
    for pair in ("turn_steps=1", "first_steps=1", "memory_threshold=1", "confirm=false"):
        words += ("--set", pair)

    def run(way):
        with LlmServer(say) as server:
            server.use(monkeypatch)
            begin = ("campaign", *problems, *words, "--set", f"learning={way}")
            result = adaexplore(*(("resume", folder) if folder.exists() else begin))
        assert result.code == 0, result
        return result.out, len(server.conversations)

    return run


@pytest.mark.parametrize("way", ["published", pytest.param("checked", marks=pytest.mark.slow)])
def test_a_campaign_learns_after_every_turn(campaign, tmp_path, way):
    folder, memory = tmp_path / "night", tmp_path / "memory.toml"
    out, _ = campaign(way)
    assert f"{memory}: 1 rules" in out
    [rule] = load_memory(memory)
    seen = 4 if way == "published" else 3  # one kernel failed in two steps
    assert (rule.is_checked, rule.support, rule.tasks) == (way == "checked", seen, ("t1", "t2"))
    shown = {}
    for name in ("t1", "t2"):
        with read_run(folder / name) as run:
            assert run.store.run().config.memory_update == ""
            for call in run.store.calls():
                text = "".join(message.text for message in call.prompt.messages)
                shown.setdefault((name, call.ask_id), set()).add(rule.statement in text)
    assert shown == {("t1", 1): {False}, ("t2", 1): {True}, ("t1", 2): {True}, ("t2", 2): {True}}

    assert campaign(way)[1] == 0
    assert load_memory(memory) == [rule]
    if way == "published":
        (folder / "rules" / "t2.2.json").unlink()  # as after a kill before the lessons of a turn
        memory.write_text(memory.read_text().replace("support = 4", "support = 3"))
        assert campaign(way)[1] == 0
        assert load_memory(memory) == [rule]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("adapt",), "say what to learn from"),
        (("adapt", "--model", LOCAL), "say what to learn from"),
        (("adapt", "--problems", "nowhere"), "nowhere holds no problems"),
        (("adapt", "--problems", __file__), "is a file; name the folder"),
        (("adapt", "--problems", ".", "-o", "none/m.toml"), "there is no folder"),
        (("adapt", "--problems", "nowhere", "--budget", "1usd"), "--budget goes with --model"),
        (("adapt", "nowhere", "--problems", "tasks"), "say what to learn from"),
        (("adapt", "nowhere"), "nowhere"),
        (("adapt", "nowhere", "-o", "PROBLEM"), "is no memory"),
        (("adapt", "nowhere", "--set", "proposer=compiler"), "--proposer compiler: rules come"),
        (
            ("adapt", "nowhere", "--set", "learning=published", "--least-tasks", "2"),
            "--least-tasks goes with --set learning=checked",
        ),
        (("adapt", "nowhere", "--budget", "1usd"), "--budget goes with --model"),
        (("explore", "PROBLEM", "--memory-update", "m.toml"), "--memory-update goes with --model"),
        (
            (
                *("campaign", "PROBLEM", "--device", "cpu", "--model", LOCAL),
                *("--base-url", "http://localhost:1/v1", "--memory-update", "m.toml"),
            ),
            "--memory-update: rules are about Triton",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_said_in_one_line(adaexplore, problem, words, complaint):
    words = [problem if word == "PROBLEM" else word for word in words]
    assert complaint in adaexplore(*words).complaint
