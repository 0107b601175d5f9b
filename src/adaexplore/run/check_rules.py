"""The loop that makes a memory: try, see what fails, keep what is true."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing
from itertools import groupby
from queue import SimpleQueue
from threading import Event, Lock

from adaexplore.core.rule import Rule
from adaexplore.memory.check import Checked, Checker

Tell = Callable[[Checked], None]
"""Is told of every rule that was tried, one at a time, as soon as it was."""

NewChecker = Callable[[], Checker]
"""Makes a checker with processes of its own; all of them check in one place."""

_MOST_TOGETHER = 12
"""Rules of one reference that are tried by one judge: enough to pay for it, few enough to share."""


def probe(rules: Iterable[Rule], new_checker: NewChecker, tell: Tell, parallel: int = 1) -> None:
    """Tries rules whose signatures are not known yet, so many at once; see `Checker.observe`."""
    _try_all(rules, Checker.observe, new_checker, tell, parallel)


def check(rules: Iterable[Rule], new_checker: NewChecker, tell: Tell, parallel: int = 1) -> None:
    """Checks rules, so many at once; see `Checker.check`."""
    _try_all(rules, Checker.check, new_checker, tell, parallel)


def _try_all(
    rules: Iterable[Rule],
    attempt: Callable[[Checker, Rule], Checked],
    new_checker: NewChecker,
    tell: Tell,
    parallel: int,
) -> None:
    """Has each of so many threads, with a checker each, try group after group.

    What ends it early (Ctrl-C, lost machinery) lets those that are being tried come to their end,
    and `tell` is told of them too.
    """
    groups = _groups(rules)
    stopped, one_at_a_time = Event(), Lock()
    free: SimpleQueue[Checker] = SimpleQueue()

    def work(group: Sequence[Rule]) -> None:
        checker = free.get()
        try:
            for rule in group:
                if stopped.is_set():
                    return
                checked = attempt(checker, rule)
                with one_at_a_time:
                    tell(checked)
        finally:
            free.put(checker)

    with ExitStack() as checkers, ThreadPoolExecutor(parallel) as threads:
        try:
            starting = [threads.submit(new_checker) for _ in groups[:parallel]]
            for started in starting:
                free.put(checkers.enter_context(closing(started.result())))
            for finished in as_completed([threads.submit(work, group) for group in groups]):
                finished.result()
        finally:
            stopped.set()


def _groups(rules: Iterable[Rule]) -> list[Sequence[Rule]]:
    """Rules of one reference together, in a fixed order; the largest groups first, in parts."""
    ordered = sorted(rules, key=lambda rule: (rule.reference, rule.name))
    whole = [list(group) for _, group in groupby(ordered, key=lambda rule: rule.reference)]
    return [
        group[start : start + _MOST_TOGETHER]
        for group in sorted(whole, key=len, reverse=True)
        for start in range(0, len(group), _MOST_TOGETHER)
    ]
