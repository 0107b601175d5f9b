"""The command lift: over real HTTP and by hand, with real evaluations."""

import json
import re

import pytest

from adaexplore.core.verdict.evaluation import Failed
from adaexplore.evaluate.offline.evaluator import OfflineEvaluator
from adaexplore.memory.files import BUNDLED, load_memory, memory_path, save_memory
from adaexplore.run import processes
from adaexplore.store import read_run
from elementwise import candidate, reference
from llm_server import LlmServer, status

LOCAL = "openai-compatible:local"
NAMES = ("no-break", "no-tl-log1p")
RULES = "# Rules, each verified"
TASKS = {"doubled": "x + x", "halved": "x / 2"}


def right_or_wrong(prompt, *, right):
    """A reply to the prompt of one of the tasks."""
    expression = next(e for e in TASKS.values() if f"return {e}" in prompt)
    body = f"y = {expression}" if right else "y = tl.mean(x)"
    return f"One kernel.\n```python\n{candidate(body)}```\n"


def believer(messages):
    """A model that errs without rules."""
    prompt = messages[-1]["text"]
    return right_or_wrong(prompt, right=RULES in prompt)


@pytest.fixture
def model(monkeypatch):
    with LlmServer(believer) as server:
        server.use(monkeypatch)
        yield server


@pytest.fixture(scope="module")
def rules():
    return [rule for rule in load_memory(memory_path(BUNDLED)) if rule.name in NAMES]


@pytest.fixture
def memory(tmp_path, rules):
    path = tmp_path / "mine.toml"
    save_memory(path, rules)
    return path


@pytest.fixture
def tasks(tmp_path):
    folder = tmp_path / "tasks"
    folder.mkdir()
    for name, expression in TASKS.items():
        (folder / f"{name}.py").write_text(reference(expression))
    return folder


@pytest.fixture
def lift(lab, memory, tasks):
    def lift(*words):
        return lab("lift", memory, "--problems", tasks, "--target", "sm_90", *words)

    return lift


def runs(tmp_path):
    """Return the nodes of each run, by arm and task."""
    found = {}
    for path in sorted(tmp_path.glob("mine.lift/runs/*/*")):
        with read_run(path) as run:
            found[path.parent.name, path.name] = run.store.nodes()
    return found


def without_rules(messages):
    rules = re.compile(rf"{RULES}.*?\n\n", re.DOTALL)
    return [rules.sub("", message["text"]) for message in messages]


def test_tries_with_and_without_differ_in_the_rules_alone(lift, model, memory, tmp_path):
    out = tmp_path / "lift.json"
    result = lift("--model", LOCAL, "--json", out, "--tasks", 1)
    assert result.code == 0, result
    assert "2 of 2 first tries are judged, on Triton" in result.out
    assert "mine against none: +100 points" in result.out
    assert "at 1 tasks; better at 1, worse at 0 (p = 1)" in result.out
    none, mine = model.conversations
    assert without_rules(none) == without_rules(mine)
    assert none[:-1] == mine[:-1]
    assert [RULES in messages[-1]["text"] for messages in (none, mine)] == [False, True]

    assert {rule.name: (rule.lift, rule.lift_tries) for rule in load_memory(memory)} == {
        "no-break": (1.0, 1),
        "no-tl-log1p": (1.0, 1),
    }
    data = json.loads(out.read_text())
    none, mine = data["arms"]
    assert (none["right"], none["failures"]) == (0, {"compile_error": 1})
    assert (mine["right"], mine["tries"]) == (1, 1)
    statements = sum(len(rule.statement) for rule in load_memory(memory))
    assert statements / 5 < mine["tokens_added"] < statements
    assert {tuple(row["rules"]) for row in data["tries"]} == {(), NAMES}

    again = lift("--model", LOCAL, "--tasks", 1)
    assert again.code == 0, again
    assert len(model.conversations) == 2


@pytest.mark.slow
def test_techniques_and_templates_are_the_same_in_all_arms(lift, model, file, tmp_path):
    (tmp_path / "mine").mkdir()
    folder = file("mine/triton.j2", "No notes on Triton.").parent
    assert lift("--model", LOCAL, "--techniques", "--prompts", folder).code == 0
    asked = [conversation[-1]["text"] for conversation in model.conversations]
    wanted = [re.search("Every kernel must also do this: (.+)", prompt)[1] for prompt in asked]
    assert len(asked) == 4
    assert len(set(wanted)) == 2
    assert all("No notes on Triton." in prompt for prompt in asked)


@pytest.mark.slow
def test_what_stopped_goes_on_and_is_asked_for_once(lift, model, memory, tmp_path):
    model.script.extend([None, status(401)])
    stopped = lift("--model", LOCAL, "--parallel", 1)
    assert stopped.code == 2
    assert "refuses" in stopped.err
    (tmp_path / "mine.lift" / "runs" / "none" / ".halved.new").mkdir()  # a kill leaves such

    result = lift("--model", LOCAL, "--parallel", 1)
    assert "4 of 4 first tries" in result.out, result
    assert len(model.conversations) == 5
    assert all(len(nodes) == 1 for nodes in runs(tmp_path).values())

    more = lift("--model", LOCAL, "--repeats", 2)
    assert "8 of 8 first tries" in more.out, more
    assert len(model.conversations) == 9


@pytest.mark.slow
def test_the_budget_is_for_all_of_it(lift, model):
    result = lift("--model", LOCAL, "--budget", "5ktok", "--parallel", 1)
    assert result.code == 0, result
    assert "stopping: the budget" in result.out
    assert "0 of 4 first tries" in result.out
    assert model.conversations == []
    later = lift("--model", LOCAL, "--budget", "9ktok", "--parallel", 1)
    assert "of 4 first tries" in later.out, later
    asked = len(model.conversations)
    assert 0 < asked < 4 or "4 of 4" in later.out


@pytest.mark.slow
def test_other_memories_and_rules_left_out(lift, model, rules, memory, tmp_path):
    other = tmp_path / "other.toml"
    save_memory(other, rules[:1])
    left_out = ("--leave-out", "no-tl-log1p")
    result = lift("--model", LOCAL, "--tasks", 1, "--against", other, *left_out)
    assert result.code == 0, result
    assert set(runs(tmp_path)) == {
        (arm, "doubled") for arm in ("none", "mine", "other", "mine-without-no-tl-log1p")
    }
    assert "mine against other: +0 points" in result.out
    assert "mine against mine-without-no-tl-log1p: +0 points" in result.out
    assert "by itself" in result.out
    lifts = {rule.name: rule.lift for rule in load_memory(memory)}
    assert lifts == {"no-break": 1.0, "no-tl-log1p": 0.0}


def test_a_rule_that_no_prompt_has_is_not_left_out(lift, tmp_path):
    result = lift("--tasks", 1, "--leave-out", "no-break", "--set", "memory_tokens=1")
    assert result.code == 0, result
    assert set(runs(tmp_path)) == {("none", "doubled"), ("mine", "doubled")}


def test_by_hand_what_is_answered_counts(lift, tmp_path):
    begun = lift("--tasks", 1)
    assert "2 prompts wait in" in begun.out, begun
    assert "0 of 2 first tries" in begun.out
    mine, none = sorted(tmp_path.glob("mine.lift/asks/*/doubled/1.1.md"))
    assert (RULES in mine.read_text(), RULES in none.read_text()) == (True, False)

    reply = right_or_wrong(mine.read_text(), right=True)
    mine.with_name("1.1.reply.md").write_text(reply)
    some = lift("--tasks", 1)
    assert "1 prompts wait in" in some.out, some
    assert "doubled: right: mine 1/1" in some.out
    assert "against" not in some.out

    none.with_name("1.1.reply.md").write_text("I cannot.")
    whole = lift("--tasks", 1)
    assert "doubled: right: none 0/1, mine 1/1" in whole.out
    assert "no_module 1" in whole.out
    assert lift("--tasks", 1).out == whole.out


class Stumbling(OfflineEvaluator):
    """Fails so many more times to judge anything."""

    failures = 0

    def evaluate(self, candidate, parent=None, *, again=False):
        if Stumbling.failures:
            Stumbling.failures -= 1
            return Failed("infra_error", "the judge is gone")
        return super().evaluate(candidate, parent, again=again)


@pytest.mark.slow
def test_what_the_machinery_spoils_is_judged_again_and_not_counted(
    lift, model, monkeypatch, tmp_path
):
    monkeypatch.setattr(processes, "OfflineEvaluator", Stumbling)
    words = ("--model", LOCAL, "--tasks", 1, "--parallel", 1)
    Stumbling.failures = 6
    spoiled = lift(*words)
    assert "0 of 2 first tries are judged" in spoiled.out, spoiled
    assert "doubled, none: infra_error: the judge is gone" in spoiled.out
    Stumbling.failures = 1
    result = lift(*words)
    assert "2 of 2 first tries are judged" in result.out, result
    assert len(model.conversations) == 2
    statuses = [node.evaluation.status for node in runs(tmp_path)["none", "doubled"]]
    assert statuses == [*["infra_error"] * 4, "compile_error"]


def test_tasks_that_rules_were_learned_from_are_not_held_out(lift, memory, rules, tasks):
    import dataclasses

    save_memory(memory, [dataclasses.replace(rules[0], tasks=("doubled",))])
    result = lift()
    assert "doubled.py: left out: the rule no-break was learned from it" in result.out, result
    assert "2 prompts wait" in result.out
    (tasks / "halved.py").unlink()
    refused = lift()
    assert refused.code == 2
    assert "holds no task that the rules were not learned from" in refused.err


def test_a_measurement_goes_on_as_it_began(lift, memory, rules, model):
    assert lift("--tasks", 1).code == 0
    assert "was begun with manual as the model" in lift("--model", LOCAL).complaint
    assert "was begun with other settings" in lift("--set", "lint=true").complaint
    save_memory(memory, rules[:1])
    assert "is not what it was when" in lift().complaint


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--budget", "1usd"), "--budget goes with --model"),
        (("--model", LOCAL, "--budget", "2h"), "in usd or tok only"),
        (("--model", "compiler"), "that is no model"),
        (("--set", "policy=uct"), "a first try has it fixed"),
        (("--set", "nothing=1"), "no such setting"),
        (("--leave-out", "no-brake"), "did you mean no-break?"),
        (("--against", "elsewhere/mine.toml"), "two memories are called mine"),
        (("--against", "nowhere.toml"), "nowhere.toml"),
        (("--problems", "nowhere"), "nowhere holds no problems"),
        (("--device", "cuda:7"), "--device cuda:7"),
    ],
)
def test_what_cannot_be_measured_is_said_in_one_line(lift, model, words, complaint):
    assert complaint in lift(*words).complaint


def test_a_memory_without_rules_has_no_lift(lift, memory):
    save_memory(memory, [])
    assert "has no rules" in lift().complaint
