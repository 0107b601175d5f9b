"""Trying mutants: each alone, in a copy, against the tests that run its module."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from adaexplore_lab.mutate.copies import Copy
from adaexplore_lab.mutate.mutants import Mutant
from adaexplore_lab.mutate.outcomes import Fate, Outcome, Outcomes
from adaexplore_lab.mutate.which_tests import WhichTests

_FATES: dict[str, Fate] = {"passed": "survived", "failed": "killed", "late": "late"}


class Trial:
    """Tries mutants of the repository at `root`, `jobs` at a time."""

    def __init__(
        self, root: Path, tests: WhichTests, outcomes: Outcomes, *, jobs: int, limit_s: float
    ) -> None:
        self._root = root
        self._tests = tests
        self._outcomes = outcomes
        self._jobs = jobs
        self._limit_s = limit_s
        self._adding = threading.Lock()

    def run(
        self, mutants: Sequence[Mutant], until: float, report: Callable[[Outcome], None]
    ) -> None:
        """Try mutants in order until the clock `time.monotonic` reaches `until`.

        A failed test counts only if it passes without the defect, and a late one only if the tests
        end in time without it; this is tried at the end, once for all.
        """
        if not mutants:
            return
        with TemporaryDirectory(prefix="mutants-") as folder:
            copies: SimpleQueue[Copy] = SimpleQueue()
            for job in range(self._jobs):
                copies.put(Copy(self._root, Path(folder) / str(job)))

            def attempt(mutant: Mutant) -> None:
                if time.monotonic() > until:
                    return
                copy = copies.get()
                try:
                    outcome = self._attempt(copy, mutant)
                finally:
                    copies.put(copy)
                with self._adding:
                    self._outcomes.add(outcome)
                    report(outcome)

            with ThreadPoolExecutor(self._jobs) as pool:
                list(pool.map(attempt, mutants))
            self._verify(copies.get(), mutants)

    def _attempt(self, copy: Copy, mutant: Mutant) -> Outcome:
        since = time.monotonic()
        tested = copy.try_out(mutant, self._tests.of(mutant.path), self._limit_s)
        fate = _FATES[tested.outcome]
        return Outcome.of(mutant, fate, tested.by, time.monotonic() - since)

    def _verify(self, copy: Copy, mutants: Sequence[Mutant]) -> None:
        """Take back the outcomes that tests have without a defect too."""
        known = self._outcomes.of(mutants)
        doubted = [
            (outcome, tuple([outcome.by] if outcome.by else self._tests.of(mutant.path)))
            for mutant in mutants
            if (outcome := known.get(mutant.identity)) and outcome.fate in ("killed", "late")
        ]
        passing = self._passing(copy, {tests for _, tests in doubted})
        for outcome, tests in doubted:
            if tests not in passing:
                self._outcomes.add(replace(outcome, fate="undecided"))

    def _passing(self, copy: Copy, selections: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
        """Return the selections of tests that pass without a defect: all at once, or one by one."""
        together = sorted({test for tests in selections for test in tests})
        limit_s = self._limit_s * max(len(selections), 1)
        if not together or copy.run(together, limit_s).outcome == "passed":
            return selections
        return {t for t in selections if copy.run(t, self._limit_s).outcome == "passed"}
