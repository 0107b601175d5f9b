"""The Protocol of an evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from adaexplore.core.candidate import Candidate
from adaexplore.core.verdict.evaluation import Evaluation
from adaexplore.core.verdict.facts import ReferenceFacts
from adaexplore.core.verdict.uses import Use


class Evaluator(Protocol):
    """Judges candidates of one problem.

    A failing candidate is an `Evaluation`; `InfrastructureError` means that the machinery is lost.
    Not thread-safe, except `close`, which another thread may call to abort.
    """

    def prepare(self) -> ReferenceFacts:
        """Run the reference and its baselines once; return the facts about it.

        Must be called before `evaluate`; a second call returns the same facts at no cost. Raises
        `BadProblemError` for a reference that cannot be verified against.
        """
        ...

    def evaluate(
        self, candidate: Candidate, parent: Candidate | None = None, *, again: bool = False
    ) -> Evaluation:
        """Return the verdict on a candidate, reached in a fresh process.

        With `parent`, both are compared in the same measurement where that is possible. A correct
        candidate that compiles to the same code as an earlier one gets the earlier measurement,
        unless `again`: that confirms a result, against every baseline.
        """
        ...

    def close(self) -> None:
        """End the evaluator's processes."""
        ...


@runtime_checkable
class TriesUses(Protocol):
    """An evaluator that also tries the uses of a winner outside the judge."""

    def try_uses(self, candidate: Candidate) -> tuple[Use, ...]:
        """Try a correct candidate as users use a module; return the uses that apply.

        Called after `prepare`, for the winner of a search and for `adaexplore evaluate`.
        """
        ...


@runtime_checkable
class TellsNews(Protocol):
    """An evaluator with news of its machines that the user must know."""

    def listen(self, tell: Callable[[str], None]) -> None:
        """Call `tell` with every line of news from now on, in any thread."""
        ...
