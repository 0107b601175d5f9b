"""A candidate: source that claims to be a faster `Model`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from adaexplore.core.problem import Language


@dataclass(frozen=True, slots=True)
class Candidate:
    """A Python module that defines `ModelNew`, written with kernels in `language`.

    Two candidates with the same text are the same candidate: identity is `digest`.
    """

    source: str
    language: Language

    @property
    def digest(self) -> str:
        """Content hash: sha256 over the language and the source."""
        return hashlib.sha256(f"{self.language}\0{self.source}".encode()).hexdigest()
