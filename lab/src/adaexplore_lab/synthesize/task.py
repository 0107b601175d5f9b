"""A synthesized task: a reference module to learn on, and what is known about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from adaexplore.core import Language, Problem, TargetName

Style = Literal["self-instruct", "mutation", "creative", "composite"]
Origin = Literal["grammar", "self-instruct", "mutation", "creative", "composite"]

STYLES: tuple[Style, ...] = get_args(Style)


@dataclass(frozen=True, slots=True)
class SyntheticTask:
    """A module in KernelBench form, by whom it was made, and the operations it is made of.

    `ops` are the grammar's names in the order of use, or for a model's task the operators of its
    graph; `seed` is what the grammar grew it from, None for a model's. `outputs` are the shapes and
    dtypes that the grammar inferred, empty for a model's.
    """

    name: str
    source: str
    origin: Origin
    ops: tuple[str, ...] = ()
    seed: int | None = None
    outputs: tuple[tuple[tuple[int, ...], str], ...] = ()

    @property
    def difficulty(self) -> int:
        """Number of operations."""
        return len(self.ops)

    def problem(
        self, *, language: Language, device: str, target: TargetName | None = None
    ) -> Problem:
        """The task as a problem to be solved."""
        return Problem(self.name, self.source, language, device, target=target)

    def to_json(self) -> dict[str, Any]:
        """Return the description as plain data; the source is in a file of its own."""
        known = asdict(self) | {"difficulty": self.difficulty}
        del known["source"]
        return known
