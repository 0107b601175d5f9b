"""Outcomes of mutants, kept in a file of JSON lines so that a run can go on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from adaexplore_lab.mutate.mutants import Mutant

Fate = Literal["killed", "late", "survived", "undecided"]
"""`late`: the tests did not end. `undecided`: they fail or are late without the defect too."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The fate of a mutant, and the test that decided it."""

    identity: str
    fate: Fate
    by: str
    seconds: float
    told: str

    @staticmethod
    def of(mutant: Mutant, fate: Fate, by: str, seconds: float) -> Outcome:
        """Return the outcome of a mutant."""
        return Outcome(mutant.identity, fate, by, round(seconds, 1), mutant.told())


class Outcomes:
    """Outcomes by the identity of their mutants; the last one of a mutant counts."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: dict[str, Outcome] = {}
        if file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                outcome = Outcome(**json.loads(line))
                self._known[outcome.identity] = outcome

    def add(self, outcome: Outcome) -> None:
        """Add an outcome, in the file too."""
        self._known[outcome.identity] = outcome
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")

    def of(self, mutants: Iterable[Mutant]) -> dict[str, Outcome]:
        """Return the known outcomes of some mutants."""
        known = self._known
        return {m.identity: known[m.identity] for m in mutants if m.identity in known}
