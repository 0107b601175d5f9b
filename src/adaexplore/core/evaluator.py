"""What a search needs of an evaluator."""

from __future__ import annotations

from typing import Any, Protocol

from adaexplore.core.candidate import Candidate
from adaexplore.core.evaluation import Evaluation


class Evaluator(Protocol):
    """Judges candidates of one problem.

    A failing candidate is an `Evaluation`; `InfrastructureError` means that the machinery is gone.
    One is for one thread, but for `close`, which ends what goes on in another.
    """

    def prepare(self) -> dict[str, Any]:
        """Runs the reference and its baselines once; returns facts about it as plain data.

        Raises `BadProblemError` for a reference that cannot be verified against. Must be called
        before `evaluate`; a second call returns the same facts at no cost.
        """
        ...

    def evaluate(
        self, candidate: Candidate, parent: Candidate | None = None, *, again: bool = False
    ) -> Evaluation:
        """The verdict on a candidate, in a fresh process.

        With `parent`, the two are compared in the same measurement where that is possible. One that
        is right and compiles to what another candidate did gets that one's measurement; `again` has
        it measured all the same.
        """
        ...

    def close(self) -> None:
        """Ends the processes behind it."""
        ...
