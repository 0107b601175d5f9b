"""A whole model with faster modules: the replacements that were kept, and their measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Ratio:
    """A speedup of a model: the median of paired rounds and its 95 % interval."""

    median: float
    low: float
    high: float

    @property
    def is_gain(self) -> bool:
        """True for an interval that is clear of 1."""
        return self.low > 1.0


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """A call of the model before and after, each run in the way that is fastest for it.

    `before_us` has the times of the original in every way, `after_us` those of the model with all
    kernels that were right, kept or not; `way` is that of the result. `error` is the relative error
    of the outputs on unseen inputs against a wider type, `own_error` that of the original. Of the
    `steps` in which a decoder generates, `agreeing` have the original's tokens.
    """

    name: str
    before_us: Mapping[str, float]
    time_us: float
    way: str
    error: float
    own_error: float
    agreeing: int = 0
    steps: int = 0
    after_us: Mapping[str, float] = field(default_factory=dict)

    @property
    def strongest(self) -> str:
        """The fastest way to run the original."""
        return min(self.before_us, key=lambda way: self.before_us[way])


@dataclass(frozen=True, slots=True)
class Replacement:
    """The kernel of a group: how much faster the model is with it than without it.

    `brought` is None where it was not measured; `reason` says why the original modules stay, and is
    empty where they were replaced.
    """

    name: str
    modules: int
    brought: Ratio | None = None
    reason: str = ""

    @property
    def is_kept(self) -> bool:
        """True where the modules were replaced."""
        return not self.reason


@dataclass(frozen=True, slots=True)
class ModelOutcome:
    """The result for a model; `speedup` is over the strongest way to run the original."""

    speedup: Ratio
    calls: tuple[CallOutcome, ...]
    replacements: tuple[Replacement, ...]

    @property
    def kept(self) -> tuple[Replacement, ...]:
        """The replacements that stay."""
        return tuple(one for one in self.replacements if one.is_kept)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)
