"""The modules of a whole model, ranked by the time that faster kernels could save."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from adaexplore.core import codec
from adaexplore.core.problem import Precision
from adaexplore.core.verdict.evaluation import BoundBy


@dataclass(frozen=True, slots=True)
class CallTime:
    """A named call of the model, and its time in eager mode."""

    name: str
    time_us: float


@dataclass(frozen=True, slots=True)
class RankedGroup:
    """Modules of a model that are alike: one problem for all of them.

    `paths` are their names in the model. `share` is the part of the model's time that is spent in
    them, inner modules included, and `own_share` the part without inner modules; both are means
    over the calls of the model. `saves` is the part of the model's time above the roofline of the
    group. `reason` says why the group is no problem of the search, and is empty for one that is:
    then `bound_by` names the limit of its roofline. A group has the calls of one kind: `forms` are
    their forms, by their order among all forms of these modules' calls, the most frequent first.
    """

    name: str
    kind: str
    paths: tuple[str, ...]
    calls: int
    operations: int
    share: float
    own_share: float
    saves: float = 0.0
    bound_by: BoundBy | None = None
    reason: str = ""
    forms: tuple[int, ...] = (0,)

    @property
    def is_chosen(self) -> bool:
        """True for a group that a search can work on."""
        return not self.reason

    @property
    def most(self) -> float:
        """The speedup of the model with this group at its roofline (Amdahl 1967)."""
        return amdahl(self.saves)


@dataclass(frozen=True, slots=True)
class ModelRanking:
    """The groups of a model: those that a search can work on come first, best first."""

    model: str
    device: str
    precision: Precision
    calls: tuple[CallTime, ...]
    groups: tuple[RankedGroup, ...]

    @property
    def chosen(self) -> tuple[RankedGroup, ...]:
        """The groups that a search can work on, best first; no two overlap."""
        return tuple(group for group in self.groups if group.is_chosen)

    @property
    def most(self) -> float:
        """The speedup of the model with every chosen group at its roofline."""
        return amdahl(sum(group.saves for group in self.chosen))

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> ModelRanking:
        """Inverse of `to_json`, after JSON."""
        return codec.read(ModelRanking, data)


def amdahl(saved: float) -> float:
    """Return the speedup of a whole of which the share `saved` of the time is saved."""
    return 1.0 / max(1.0 - saved, 1e-3)
