"""Lessons: a memory that grows by the failures of several runs, while searches read it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from adaexplore.core.node import Node
from adaexplore.core.problem import Problem
from adaexplore.core.rule import Rule
from adaexplore.memory.check import Checker
from adaexplore.memory.extract import Failure, FailureGroup, case_id, counted, failures_of, grouped
from adaexplore.memory.files import load_memory
from adaexplore.memory.merge import merge_memories
from adaexplore.memory.unchecked.sentences import errors_of
from adaexplore.run.learning.learn import Tell, learn
from adaexplore.run.learning.learn_published import learn_published
from adaexplore.run.learning.prompt_files import Ask

Way = Literal["checked", "published"]


@dataclass(frozen=True, slots=True)
class Taught:
    """Result of learning from a run: what its failures came to.

    `learned` names the new rules. `counted` failures, or causes of failures where rules are
    checked, have a rule that was known; `dropped` ones have none. `open` are the prompts that wait
    for an answer: until they have it, the rest is not final.
    """

    learned: tuple[str, ...] = ()
    counted: int = 0
    dropped: int = 0
    open: tuple[Path, ...] = ()


class Lessons:
    """Makes rules of failures, in a memory's file; any thread may use it, one learns at a time.

    `way` says how failures become rules, see `Config.learning`. Prompts, replies and cases are in
    `folder`. `checker` opens a checker, when the first rule has to be checked. Without `ask`,
    prompts wait there for a person. `base` are the rules of another memory, shown with the file's.
    """

    def __init__(
        self,
        memory: Path,
        folder: Path,
        checker: Callable[[], Checker],
        *,
        way: Way = "checked",
        ask: Ask | None = None,
        base: Iterable[Rule] = (),
        least_tasks: int = 1,
        tell: Tell = lambda _: None,
    ) -> None:
        self.memory = memory
        self._folder = folder
        self._new_checker = checker
        self._way = way
        self._ask = ask
        self._base = tuple(base)
        self._least_tasks = least_tasks
        self._tell = tell
        self._met: dict[str, list[Failure]] = {}
        self._refused: set[str] = set()
        self._learning = threading.Lock()
        self._resources = ExitStack()
        self._checker: Checker | None = None

    def rules(self) -> tuple[Rule, ...]:
        """Return the rules for the next prompt: those of the base, and the memory's as it is."""
        grown = load_memory(self.memory) if self.memory.exists() else []
        return tuple(merge_memories(self._base, grown))

    def meet(self, run: str, problem: Problem, nodes: Sequence[Node]) -> list[Failure]:
        """Note the failures of a run, as it is so far, without learning from them."""
        if self._way == "published":
            found = [replace(failure, task=run) for failure in errors_of(problem, nodes)]
        else:
            found = failures_of(problem, nodes)
        self._met[run] = found
        return found

    def learn(self, run: str, problem: Problem, nodes: Sequence[Node]) -> Taught:
        """Learn from the failures of a run, as it is so far; nothing is learned twice.

        Counts are those of all runs that were met. Raises as `learn` and `learn_published` do.
        """
        with self._learning:
            failures = self.meet(run, problem, nodes)
            if not failures:
                return Taught()
            if self._way == "published":
                return self._count(failures)
            return self._check(run, failures)

    def close(self) -> None:
        """End the processes of the checker."""
        self._resources.close()

    def _count(self, failures: Sequence[Failure]) -> Taught:
        found = learn_published(failures, self.memory, self._folder, ask=self._ask, tell=self._tell)
        names = tuple(rule.name for rule in found.rules)
        return Taught(names, len(found.counted), len(found.dropped), tuple(found.open))

    def _check(self, run: str, failures: Sequence[Failure]) -> Taught:
        found = learn(
            [failure for met in self._met.values() for failure in met if self._fails_here(failure)],
            self.memory,
            self._folder,
            self._opened(),
            ask=self._ask,
            least_tasks=self._least_tasks,
            tell=self._tell,
            by=run,
        )
        groups = grouped(filter(self._fails_here, failures))
        cases = [self._case(group) for group in groups]
        learned = [case["rule"] for case in cases if case.get("by") == run and _is_new(case)]
        dropped = [case for case in cases if case.get("rule") == ""]
        refused = {g.exemplar.source for g in groups if case_id(g) in found.refused}
        self._refused |= refused
        known = load_memory(self.memory) if self.memory.exists() else []
        explained = [g for g in groups if counted(known, g)]
        return Taught(
            tuple(learned),
            max(len(explained) - len(learned), 0),
            len(dropped) + len(refused),
            tuple(found.open),
        )

    def _fails_here(self, failure: Failure) -> bool:
        """Return False for a failure that was tried here before and did not recur."""
        return failure.source not in self._refused

    def _case(self, group: FailureGroup) -> dict[str, Any]:
        path = self._folder / f"{case_id(group)}.json"
        case: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
        return case

    def _opened(self) -> Checker:
        if self._checker is None:
            self._checker = self._resources.enter_context(closing(self._new_checker()))
        return self._checker


def _is_new(case: Mapping[str, Any]) -> bool:
    """Return True for a case that a new rule was made of."""
    return bool(case["rule"]) and not case["known"]
