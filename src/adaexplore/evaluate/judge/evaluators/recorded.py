"""An evaluator that knows the verdicts of a run, and measures nothing."""

from __future__ import annotations

from collections.abc import Iterable

from adaexplore.core.candidate import Candidate
from adaexplore.core.errors import BadInputError
from adaexplore.core.node import Node
from adaexplore.core.text.similarity import first_difference, nearest
from adaexplore.core.verdict.evaluation import Evaluation
from adaexplore.core.verdict.facts import ReferenceFacts


class UnseenCandidateError(BadInputError):
    """The candidate was never evaluated; the text names the nearest that was."""


class RecordedEvaluator:
    """Answers with what was recorded, by the candidate's digest.

    `facts` is what was known of the reference. A candidate that was evaluated several times gets
    its evaluations in their order, and then the last again.
    """

    def __init__(self, nodes: Iterable[Node], facts: ReferenceFacts) -> None:
        self._facts = facts
        self._sources: dict[str, str] = {}
        self._steps: dict[str, int] = {}
        self._evaluations: dict[str, list[Evaluation]] = {}
        for node in nodes:
            digest = node.candidate.digest
            if node.proposal.failure or (node.reused and digest in self._evaluations):
                continue  # nobody evaluated it
            self._sources.setdefault(digest, node.candidate.source)
            self._steps.setdefault(digest, node.id)
            told = node.repeats or (node.evaluation,)
            self._evaluations.setdefault(digest, []).extend(told)

    def prepare(self) -> ReferenceFacts:
        """The facts as they were recorded."""
        return self._facts

    def evaluate(
        self,
        candidate: Candidate,
        parent: Candidate | None = None,  # noqa: ARG002 - what was measured is in the verdict
        *,
        again: bool = False,  # noqa: ARG002 - the next is always another
    ) -> Evaluation:
        """The next recorded verdict; raises `UnseenCandidateError` where there is none."""
        evaluations = self._evaluations.get(candidate.digest)
        if evaluations is None:
            raise UnseenCandidateError(self._unseen(candidate))
        return evaluations.pop(0) if len(evaluations) > 1 else evaluations[0]

    def close(self) -> None:
        """Nothing is held."""

    def _unseen(self, candidate: Candidate) -> str:
        if not self._sources:
            return "this candidate was never evaluated; no other was either"
        digest, likeness = nearest(self._sources, candidate.source)
        difference = first_difference(self._sources[digest], candidate.source, "now")
        return (
            f"this candidate was never evaluated; the nearest is step {self._steps[digest]}'s, "
            f"{100 * likeness:.0f} % alike, which differs first in {difference}"
        )
