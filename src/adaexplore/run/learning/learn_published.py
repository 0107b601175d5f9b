"""Learning as published: a sentence for each failure, counted where the memory has it already.

Everything is in a folder, a few files for each failure: `TASK.STEP.json`, what came of it so far;
`TASK.STEP.1.md` and `.2.md`, the prompts for the sentence and for its like in the memory, with
their replies. Each failure counts once, however often it is learned from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from adaexplore.core.errors import BadInputError
from adaexplore.core.files import write_whole
from adaexplore.core.rule import Rule, unchecked_rule
from adaexplore.memory.extract import Failure
from adaexplore.memory.files import load_memory
from adaexplore.memory.unchecked.sentences import (
    new_rule,
    read_same,
    read_sentence,
    same_prompt,
    sentence_prompt,
)
from adaexplore.memory.update import updating
from adaexplore.run.learning.learn import Learned, Tell
from adaexplore.run.learning.prompt_files import Ask, PromptFiles


def learn_published(
    failures: Iterable[Failure],
    memory: Path,
    folder: Path,
    *,
    ask: Ask | None = None,
    tell: Tell = lambda _: None,
) -> Learned:
    """Count failures in a memory as unchecked rules, in their order.

    Without `ask`, prompts are left in the folder for somebody to answer: first all for sentences,
    then one after the other for their likes, since each sees the rules before it. Raises
    `BadInputError` for a memory or a folder that cannot be used, and what `ask` raises; what was
    learned until then stays.
    """
    files = PromptFiles(folder, ask)
    learned = Learned(open=files.open)
    entries = [_Entry(failure, files) for failure in failures]
    for entry in entries:
        entry.put_into_words()
    for entry in entries:
        if not files.open and not entry.settled:
            entry.look_for_its_like(memory)
        if entry.settled:
            entry.count(memory, learned, tell)
    return learned


class _Entry:
    """A failure and what came of it.

    Its file gets `sentence` ("" where the model gives none), the names of the rules that the
    sentence was compared with (`against`), then `rule`, its `support` and whether it is `new`, and
    at last `counted`.
    """

    def __init__(self, failure: Failure, files: PromptFiles) -> None:
        self._failure = failure
        self._files = files
        self.id = f"{failure.task}.{failure.step}"
        self._path = files.folder / f"{self.id}.json"
        self._data = _read(self._path) if self._path.exists() else {}

    @property
    def settled(self) -> bool:
        """True once it is known which rule counts the failure, or that none does."""
        return "rule" in self._data

    def put_into_words(self) -> None:
        """Get the sentence, unless it waits for a person."""
        if "sentence" in self._data:
            return
        reply = self._files.reply(f"{self.id}.1", sentence_prompt(self._failure))
        if reply is None:
            return
        if reply.finish != "complete":
            self._keep(sentence="", rule="", why=f"the model's reply is {reply.finish}")
        elif sentence := read_sentence(reply.text):
            self._keep(sentence=sentence)
        else:
            self._keep(sentence="", rule="", why="no guidance")

    def look_for_its_like(self, memory: Path) -> None:
        """Find the rule that says the sentence, or make a new one, and write down its new count.

        The count is written down here before the memory has it: a kill between the two counts
        neither twice nor not at all.
        """
        known = _unchecked(memory)
        if "against" not in self._data:
            self._keep(against=[rule.name for rule in known])
        by_name = {rule.name: rule for rule in known}
        against = [by_name[name] for name in self._data["against"] if name in by_name]
        same = None
        if against:
            prompt = same_prompt(self._data["sentence"], against)
            reply = self._files.reply(f"{self.id}.2", prompt)
            if reply is None:
                return
            same = read_same(reply.text, against)
        with updating(memory) as rules:
            if same:
                now = {rule.name: rule.support for rule in rules}
                support = now.get(same.name, same.support) + 1
                self._keep(rule=same.name, statement=same.statement, support=support, new=False)
            else:
                made = new_rule(self._data["sentence"], rules, self._failure.task)
                self._keep(rule=made.name, statement=made.statement, support=1, new=True)
            self._count(rules)

    def count(self, memory: Path, learned: Learned, tell: Tell) -> None:
        """Make sure that the memory has the failure, and add it to what was learned."""
        name = self._data["rule"]
        if not name:
            learned.dropped[self.id] = self._data["why"]
            return
        if not self._data.get("counted"):
            with updating(memory) as rules:
                self._count(rules)
            self._keep(counted=True)
            support, statement = self._data["support"], self._data["statement"]
            tell(f"{self.id}: {name} (unchecked, seen {support} times): {statement}")
        into = learned.rules if self._data["new"] else learned.counted
        into += [rule for rule in _unchecked(memory) if rule.name == name]

    def _count(self, rules: list[Rule]) -> None:
        """Count this failure in the rules; change nothing where it is counted."""
        name, support = self._data["rule"], self._data["support"]
        known = {rule.name: rule for rule in rules}
        rule = known.get(name) or unchecked_rule(
            name, self._data["statement"], support=support, source="failure"
        )
        tasks = tuple(dict.fromkeys((*rule.tasks, self._failure.task)))
        known[name] = replace(rule, support=max(rule.support, support), tasks=tasks)
        rules[:] = known.values()

    def _keep(self, **more: Any) -> None:
        self._data |= more
        write_whole(self._path, json.dumps(self._data, indent=1, ensure_ascii=False) + "\n")


def _unchecked(memory: Path) -> list[Rule]:
    """Return the unchecked rules of a memory, in the order of their making."""
    rules = load_memory(memory) if memory.exists() else []
    return [rule for rule in rules if not rule.is_checked]


def _read(path: Path) -> dict[str, Any]:
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return data
    except (OSError, ValueError) as error:
        raise BadInputError(f"{path} is no record of a failure: {error}; remove it") from None
