"""Counting failures as published: each once, whenever the process is killed."""

import json
from pathlib import Path

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.client import Reply
from adaexplore.core.verdict.evaluation import Failed
from adaexplore.memory.extract import Failure
from adaexplore.memory.files import load_memory, save_memory
from adaexplore.run.learning.learn_published import learn_published

WORDS = ("a", "b", "a", "none", "a", "b")
FAILURES = [
    Failure("p", "class Model: ...", f"kernel {word}", Failed("compile_error", f"no {word}"), step)
    for step, word in enumerate(WORDS, 1)
]
COUNTS = {"You cannot do a.": 3, "You cannot do b.": 2}


def answer(prompt):
    text = prompt.messages[-1].text
    if prompt.label == "sentence":
        word = text.partition("compile_error: no ")[2].partition("\n")[0]
        return Reply("no guidance" if word == "none" else f"You cannot do {word}.", "m")
    rules = text.partition("# The list\n")[2].partition("\n\n")[0].splitlines()
    sentence = text.partition("# The new rule\n")[2].partition("\n")[0]
    same = next((i for i, rule in enumerate(rules, 1) if rule.endswith(sentence)), None)
    found = {"is_duplicate": same is not None, "matched_index": same, "confidence": 0.9}
    return Reply(json.dumps(found), "m")


@pytest.fixture
def learning(tmp_path):
    def run(failures=FAILURES, ask=answer):
        told = []
        memory = tmp_path / "memory.toml"
        learned = learn_published(failures, memory, tmp_path / "rules", ask=ask, tell=told.append)
        return learned, told

    return run


def counts(folder):
    return {rule.statement: rule.support for rule in load_memory(folder / "memory.toml")}


def test_failures_are_counted_in_their_order(learning, tmp_path):
    learned, told = learning()
    assert counts(tmp_path) == COUNTS
    assert [rule.statement for rule in learned.rules] == list(COUNTS)
    assert [rule.statement for rule in learned.counted] == [
        "You cannot do a.",
        "You cannot do a.",
        "You cannot do b.",
    ]
    assert learned.dropped == {"p.4": "no guidance"}
    assert len(told) == 5
    assert all("unchecked" in line for line in told)


def test_later_failures_are_added_to_earlier_ones(learning, tmp_path):
    learning(FAILURES[:2])
    asked = []
    _, told = learning(ask=lambda prompt: asked.append(prompt) or answer(prompt))
    assert counts(tmp_path) == COUNTS
    assert len(asked) == 4 + 3
    assert len(told) == 3


class Killed(BaseException):
    pass


def test_a_kill_at_any_write_loses_and_doubles_nothing(learning, tmp_path, monkeypatch):
    replace, kills = Path.replace, 0
    writes = {"left": 0}

    def replaced(self, target):
        writes["left"] -= 1
        if writes["left"] == 0:
            raise Killed
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", replaced)
    for number in range(1, 200):
        for path in sorted(tmp_path.rglob("*")):
            if path.is_file():
                path.unlink()
        writes["left"] = number
        try:
            learning()
            break
        except Killed:
            kills += 1
        writes["left"] = -1
        learning()
        assert counts(tmp_path) == COUNTS, f"killed at write {number}"
    assert kills > 20


def test_two_writers_count_in_one_memory(learning, tmp_path):
    """Another process adds rules while a sentence waits for the reply about its like."""
    other = [Failure("q", "", "kernel c", Failed("compile_error", "no c"), 1)]

    def ask(prompt):
        if prompt.label == "sentence.same" and other:
            mine = other.pop()
            learn_published([mine], tmp_path / "memory.toml", tmp_path / "other", ask=answer)
        return answer(prompt)

    learning(ask=ask)
    assert counts(tmp_path) == COUNTS | {"You cannot do c.": 1}


def test_a_person_answers_in_files(learning, tmp_path):
    learned, _ = learning(ask=None)
    assert [path.name for path in learned.open] == [f"p.{step}.1.md" for step in range(1, 7)]
    rounds = 0
    while learned.open:
        rounds += 1
        for path in learned.open:
            text, label = path.read_text(), "sentence" if ".1.md" in path.name else "like"
            prompt = type("P", (), {"messages": [type("M", (), {"text": text})], "label": label})
            path.with_name(f"{path.stem}.reply.md").write_text(answer(prompt).text)
        learned, _ = learning(ask=None)
    assert counts(tmp_path) == COUNTS
    assert rounds == 1 + 4  # the first rule has nothing to be compared with


def test_rules_of_the_published_memory_are_counted_on_once_they_are_a_memory(learning, tmp_path):
    lines, memory = tmp_path / "memory.txt", tmp_path / "memory.toml"
    lines.write_text("You cannot do b.||7.0\nYou cannot do x.||2.0\n")
    with pytest.raises(BadInputError, match="stay as they are"):
        learn_published(FAILURES, lines, tmp_path / "other", ask=answer)
    save_memory(memory, load_memory(lines))
    learning()
    expected = {"You cannot do b.": 9, "You cannot do x.": 2, "You cannot do a.": 3}
    assert list(counts(tmp_path).items()) == list(expected.items())


def test_a_record_that_is_none_is_named(learning, tmp_path):
    learning()
    (tmp_path / "rules" / "p.1.json").write_text("{")
    with pytest.raises(BadInputError, match=r"p\.1\.json is no record of a failure"):
        learning()
