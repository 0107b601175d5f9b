"""Candidate: source of a module that claims to be a faster `Model`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from adaexplore.core.problem import Language


@dataclass(frozen=True, slots=True)
class Candidate:
    """Python module that defines `ModelNew`, with kernels written in `language`.

    Two candidates with the same text are the same candidate; `digest` is their identity.
    """

    source: str
    language: Language

    @property
    def digest(self) -> str:
        """Content hash: sha256 over the language and the source."""
        return hashlib.sha256(f"{self.language}\0{self.source}".encode()).hexdigest()
