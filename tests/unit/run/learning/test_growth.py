"""Searches of tasks with a memory that grows, against an independent writing-down of the published
loop: which rules each prompt shows, and every count after each task.

`Published` below is written from the publication alone. The model and the judge are scripts: what a
step's kernel does depends on the task and the step, so that both sides know it.
"""

import itertools
import json
import random
import re
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from adaexplore.core.environment import Environment
from adaexplore.core.problem import Problem
from adaexplore.core.protocols.client import BudgetSpentError, Reply
from adaexplore.core.settings.config import Config
from adaexplore.core.verdict.evaluation import Failed, Mismatch, Passed, Timing
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.memory.files import load_memory
from adaexplore.run import job
from adaexplore.run.learning.adaptation import task_config
from adaexplore.run.learning.attempts import TaskRun
from adaexplore.run.learning.growth import grow
from adaexplore.run.learning.lessons import Lessons
from adaexplore.run.proposers import Plan
from adaexplore.run.session import Session
from adaexplore.store import read_run

MODEL = "test:model"
THRESHOLD = 3
TASKS, STEPS = 3, 8
REFERENCE = "class Model:\n    pass\n"
ERRORS = ("alpha", "beta", "gamma")
OUTCOMES = (*ERRORS, "alpha", "alpha", "beta", "vague", "form", "late", "wrong", "cheat", "right")


def outcome(task, step):
    """What the kernel of a step does: an error, a wrong output, a cheat, or all right."""
    return random.Random(f"2/{task}/{step}").choice(OUTCOMES)


def verdict(fate):
    match fate:
        case "right":
            timing = Timing(1.0, (1.0, 1.0), {"eager": 2.0}, 2.0, (2.0, 2.0), 2.0, 100)
            return Passed("fp32", 1e-7, timing)
        case "wrong":
            mismatch = Mismatch("output", "first", 1.0, (0,), 1.0, 2.0, 0)
            return Failed("wrong_output", "off by 1", feedback=mismatch)
        case "form":
            return Failed("wrong_output", "output has shape (3,); the reference's has (4,)")
        case "late":
            return Failed("timeout", "no result in 180 s")
        case "cheat":
            return Failed("rejected", "it reads the judge's memory")
    return Failed("runtime_error", f"there is no {fate}", loaded=True)


NUMBERS = itertools.count()
"""Every kernel is another."""

SENTENCES = {name: f"You cannot call {name}." for name in ERRORS} | {
    "form": "You cannot return another shape.",
    "late": "You cannot run for three minutes.",
}
"""The model's rule for each error; for a vague one it has none."""


@dataclass
class Published:
    """The published loop: after a task, each of its errors is a new rule, or one more of a rule."""

    threshold: int
    counts: dict[str, int] = field(default_factory=dict)

    def shown(self):
        return [rule for rule, count in self.counts.items() if count >= self.threshold]

    def end(self, fates):
        for fate in fates:
            if rule := SENTENCES.get(fate):
                self.counts[rule] = self.counts.get(rule, 0) + 1


class Model:
    """A client that plays all roles; it may stop at a call, as where a process is killed there."""

    model = MODEL

    def __init__(self, stop_at=None, error=None):
        self.asked, self._stop_at, self._error = [], stop_at, error

    def ask(self, prompt):
        self.asked.append(prompt)
        if len(self.asked) == self._stop_at:
            raise self._error or Killed
        return Reply(answer(prompt), MODEL)

    def close(self):
        pass


class Killed(BaseException):
    pass


def answer(prompt):
    text = prompt.messages[-1].text
    if prompt.label == "sentence":
        return f"Let me see.\n{SENTENCES.get(fate_in(text), 'No guidance')}"
    if prompt.label == "sentence.same":
        rules = re.findall(r"^(\d+)\. (.*)$", text, re.MULTILINE)
        sentence = re.search(r"# The new rule\n(.*)", text)[1]
        same = [int(number) for number, rule in rules if rule == sentence]
        found = {"is_duplicate": bool(same), "matched_index": same[0] if same else None}
        return json.dumps(found | {"confidence": 0.9, "reason": "so it says"})
    number = f"    number = {next(NUMBERS)}"
    if prompt.label == "small.tuner":
        old = re.findall(r"^    number = .*$", text, re.MULTILINE)[-1]
        return f"Change.\n<<<<<<< OLD\n{old}\n=======\n{number}\n>>>>>>> NEW"
    return f"New.\n```python\nclass ModelNew:\n{number}\n```"


def fate_in(text):
    """The fate that an error tells of."""
    told = re.search(r"there is no (\w+)|(has shape)|(180 s)", text)
    return told[1] or ("form" if told[2] else "late")


class Judge:
    """Judges the steps of one task in their order, whatever their kernels are."""

    def __init__(self, path):
        self._path = path

    def prepare(self):
        return ReferenceFacts()

    def evaluate(self, candidate, parent=None, *, again=False):
        with read_run(self._path) as run:
            step = run.store.node_count() + 1
        return verdict(outcome(self._path.name, step))

    def close(self):
        pass


@pytest.fixture
def growing(tmp_path, monkeypatch):
    """A function that runs the command once more and returns the results by task.

    `after` has the counts of the memory after each task.
    """

    class Growing:
        memory = tmp_path / "memory.toml"

        def __call__(self, client=None, tasks=TASKS, parallel=1, **settings):
            given = {"model": (MODEL,), "preset": "adaexplore-adapt", "steps": STEPS, **settings}
            config = Config(**given).over(Config(confirm=False))
            plan = Plan((MODEL,) if client else ("manual",))
            made = [
                TaskRun(
                    Problem(f"t{number}", REFERENCE, "triton", "cpu", target="sm_90"),
                    tmp_path / "runs" / f"t{number}",
                    config,
                    plan,
                    "adaexplore adapt",
                    tmp_path / "asks" / f"t{number}",
                )
                for number in range(1, tasks + 1)
            ]
            lessons = Lessons(
                self.memory,
                tmp_path / "rules",
                unused,
                way=config.learning,
                ask=client.ask if client else None,
            )
            clients = {MODEL: client} if client else {}
            found, self.after = {}, {}
            for grown in grow(made, lessons, clients, tmp_path / "tasks", parallel):
                name = grown.task.problem.name
                found[name], self.after[name] = grown, self.counts()
            return found

        def counts(self):
            rules = load_memory(self.memory) if self.memory.exists() else []
            assert {rule.kind for rule in rules} <= {"unchecked"}
            return {rule.statement: rule.support for rule in rules}

        def shown(self, task):
            """The rules in each prompt of a task's search, by the number of the step."""
            with read_run(tmp_path / "runs" / task) as run:
                calls = run.store.calls()
            return [
                (call.ask_id, re.findall(r"^- (You cannot.*)$", m.text, re.MULTILINE))
                for call in calls
                for m in call.prompt.messages[-1:]
            ]

    @contextmanager
    def session_on(server, problem, settings, parallel=1, problems=1):
        evaluator = Judge(tmp_path / "runs" / problem.name)
        yield Session(None, evaluator, Environment(triton="3.9.0"))

    class NoServer:
        def close(self):
            pass

    monkeypatch.setattr(job, "session_on", session_on)
    monkeypatch.setattr(job, "start_server", lambda problem: NoServer())
    return Growing()


def unused():
    raise AssertionError("published rules are not checked")


def fates(task):
    return [outcome(task, step) for step in range(1, STEPS + 1)]


@pytest.mark.parametrize("threshold", [THRESHOLD, 1])
def test_each_task_is_the_published_one(growing, threshold):
    changed = {} if threshold == THRESHOLD else {"memory_threshold": threshold}
    published, seen = Published(threshold), []
    found = growing(Model(), **changed)
    for number in range(1, TASKS + 1):
        task = f"t{number}"
        assert_shown(growing, task, published)
        before = dict(published.counts)
        published.end(fates(task))
        assert growing.after[task] == published.counts, task
        assert list(growing.after[task]) == list(published.counts), "in the order of their making"
        record = found[task].record
        assert record.steps == STEPS
        assert record.correct == fates(task).count("right")
        assert sum(record.failures.values()) == STEPS - record.correct
        assert len(record.learned) == len(published.counts) - len(before)
        counted = sum(published.counts.values()) - sum(before.values())
        assert record.counted == counted - len(record.learned)
        assert record.dropped == fates(task).count("vague")
        seen += fates(task)
    assert set(OUTCOMES) <= set(seen)
    assert len(published.shown()) > 0
    assert (len(published.shown()) < len(published.counts)) == (threshold == THRESHOLD)


def assert_shown(growing, task, published):
    """Assert that all prompts of a task's search have the rules that the memory showed then."""
    shown = growing.shown(task)
    assert {step for step, _ in shown} == set(range(1, STEPS + 1))
    assert all(rules == published.shown() for _, rules in shown), task


def test_a_rerun_asks_nothing_and_counts_nothing(growing):
    growing(Model())
    counts, again = growing.counts(), Model()
    found = growing(again)
    assert again.asked == []
    assert growing.counts() == counts
    assert all(grown.earlier for grown in found.values())


def all_calls(tasks):
    """The number of the model's calls for so many tasks: steps, sentences and likes."""
    errors = [f for n in range(1, tasks + 1) for f in fates(f"t{n}") if f in (*SENTENCES, "vague")]
    return tasks * STEPS + len(errors) + len([f for f in errors if f in SENTENCES]) - 1


@pytest.mark.parametrize(
    "share", [0.1, *(pytest.param(s, marks=pytest.mark.slow) for s in (0.45, 0.75)), 0.6, 0.95]
)
def test_a_kill_at_a_call_loses_and_doubles_nothing(growing, share):
    tasks = 2
    stop_at = round(share * all_calls(tasks))
    with pytest.raises(Killed):
        growing(Model(stop_at), tasks=tasks)
    client = Model()
    growing(client, tasks=tasks)
    assert len(client.asked) == all_calls(tasks) - stop_at + 1
    published = Published(THRESHOLD)
    for number in range(1, tasks + 1):
        assert_shown(growing, f"t{number}", published)
        published.end(fates(f"t{number}"))
    assert growing.counts() == published.counts


def test_a_budget_that_is_spent_ends_the_tasks_in_flight(growing):
    with pytest.raises(BudgetSpentError):
        growing(Model(9, BudgetSpentError("spent")))
    growing(Model())
    published = Published(THRESHOLD)
    for number in range(1, TASKS + 1):
        published.end(fates(f"t{number}"))
    assert growing.counts() == published.counts


def test_tasks_in_flight_count_each_failure_once(growing):
    growing(Model(), parallel=3)
    published = Published(THRESHOLD)
    for number in range(1, TASKS + 1):
        published.end(fates(f"t{number}"))
    assert growing.counts() == published.counts


def test_a_person_answers_every_prompt_and_the_next_task_waits(growing, tmp_path):
    published, begun, rounds = Published(THRESHOLD), [], 0
    while waits := [path for grown in growing(tasks=2).values() for path in grown.waits]:
        rounds += 1
        for path in waits:
            text = path.read_text()
            label = "sentence" if "You cannot" in text.partition("# Your answer")[2] else ""
            label = "sentence.same" if "# The new rule" in text else label
            label = "small.tuner" if "OLD" in text else label
            path.with_name(f"{path.stem}.reply.md").write_text(reply_to(label, text))
        here = sorted(path.name for path in (tmp_path / "runs").iterdir())
        if here != begun:
            if begun:  # the second task began when the first was learned from
                published.end(fates("t1"))
            begun = here
            assert growing.counts() == published.counts
    published.end(fates("t2"))
    assert begun == ["t1", "t2"]
    assert growing.counts() == published.counts


def reply_to(label, text):
    from adaexplore.core.protocols.client import Message, Prompt

    return answer(Prompt((Message("user", text),), label))


def test_the_preset_makes_published_searches():
    config = task_config(Config(preset="adaexplore-adapt"))
    assert (config.learning, config.grow, config.memory) == ("published", True, "none")
    assert (config.steps, config.memory_threshold, config.confirm) == (25, THRESHOLD, False)
    assert task_config(Config()).learning == "checked"
    changed = Config(preset="adaexplore-adapt", learning="checked")
    assert task_config(changed).learning == "checked"
