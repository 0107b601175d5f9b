"""Checking many rules at once: every witness and remedy, on one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing
from itertools import groupby
from queue import SimpleQueue
from threading import Event, Lock
from typing import Protocol

from adaexplore.core.rule import Platform, Rule
from adaexplore.memory.check import CheckedRule, Checker
from adaexplore.run.learning.machine import default_parallel

_GROUP_SIZE = 12
"""Rules of one reference that share a judge: enough to repay its start, few enough to spread."""

_Check = Callable[[Checker, Rule], CheckedRule]


class CheckerSource(Protocol):
    """The part of a `Machine` that checking rules needs."""

    @property
    def platform(self) -> Platform:
        """The version of Triton, the target and the GPU."""
        ...

    def checker(self) -> Checker:
        """Return a checker with processes of its own."""
        ...


def check_rules(
    rules: Iterable[Rule],
    machine: CheckerSource,
    report: Callable[[CheckedRule], None],
    *,
    parallel: int | None = None,
    observe: bool = False,
) -> None:
    """Run the programs of rules; call `report` with each result as soon as it is known.

    With `observe`, a rule's signature becomes that of its witness here (see `Checker.observe`).
    `parallel` checkers work at once, by default one for each processor. Speed rules are timed one
    at a time on a GPU, after the others: processes that start and end beside them disturb a
    measurement. An exception, such as Ctrl-C, lets the rules in flight finish first; `report` is
    called for them too.
    """
    check: _Check = Checker.observe if observe else Checker.check
    on_gpu = bool(machine.platform.gpu)
    ordered = list(rules)
    timed = [rule for rule in ordered if on_gpu and rule.kind == "speed"]
    others = [rule for rule in ordered if rule not in timed]
    _check_all(others, check, machine, report, parallel or default_parallel(gpu=on_gpu))
    _check_all(timed, check, machine, report, 1)


def _check_all(
    rules: Sequence[Rule],
    check: _Check,
    machine: CheckerSource,
    report: Callable[[CheckedRule], None],
    parallel: int,
) -> None:
    """Let each thread, with a checker of its own, take one group of rules after the other."""
    groups = _groups(rules)
    stopped, one_at_a_time = Event(), Lock()
    free: SimpleQueue[Checker] = SimpleQueue()

    def work(group: Sequence[Rule]) -> None:
        checker = free.get()
        try:
            for rule in group:
                if stopped.is_set():
                    return
                checked = check(checker, rule)
                with one_at_a_time:
                    report(checked)
        finally:
            free.put(checker)

    with ExitStack() as checkers, ThreadPoolExecutor(parallel) as threads:
        try:
            starting = [threads.submit(machine.checker) for _ in groups[:parallel]]
            for started in starting:
                free.put(checkers.enter_context(closing(started.result())))
            for finished in as_completed([threads.submit(work, group) for group in groups]):
                finished.result()
        finally:
            stopped.set()


def _groups(rules: Sequence[Rule]) -> list[Sequence[Rule]]:
    """Return the rules by reference, the largest groups first, large groups in parts."""
    ordered = sorted(rules, key=lambda rule: (rule.reference, rule.name))
    whole = [list(group) for _, group in groupby(ordered, key=lambda rule: rule.reference)]
    return [
        group[start : start + _GROUP_SIZE]
        for group in sorted(whole, key=len, reverse=True)
        for start in range(0, len(group), _GROUP_SIZE)
    ]
