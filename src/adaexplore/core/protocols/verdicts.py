"""The Protocol of a cache of verdicts that several runs and machines share."""

from __future__ import annotations

from typing import Protocol

from adaexplore.core.verdict.evaluation import Evaluation


class SharedVerdicts(Protocol):
    """Verdicts by a key that names all they depend on; thread-safe, for many processes at once.

    A cache may forget anything at any time. A cache that is lost finds nothing and keeps nothing.
    """

    def find(self, key: str) -> Evaluation | None:
        """Return the verdict under a key with its origin (`taken_over`), None if there is none."""
        ...

    def keep(self, key: str, evaluation: Evaluation) -> None:
        """Keep a verdict; of two under one key the first stays."""
        ...

    def close(self) -> None:
        """Release the database."""
        ...
