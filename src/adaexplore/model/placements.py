"""The kernels for groups of a model's modules, put there and taken out again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from torch import nn

from adaexplore.core.errors import BadInputError
from adaexplore.model.cuts import in_place
from adaexplore.runtime.cuts import CutForward


class Placements:
    """The packages of kernels for groups of modules of a model, by the names of the groups."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._packages: dict[str, ModuleType] = {}
        self._forwards: dict[str, list[Any]] = {}
        self._cuts: dict[str, list[CutForward]] = {}

    def add(self, name: str, package: ModuleType, paths: Sequence[str]) -> None:
        """Add the kernel of a group, for those modules at `paths` that it was verified for.

        The kernel is not in the model yet. Raises `BadInputError` where it fits none of them.
        """
        with in_place(self._all_cuts()):  # two runs of a module are in one cut forward
            applied = package.apply(self._model, only=paths)
            if not applied.modules:
                raise BadInputError("; ".join(applied.left.values()) or "its modules are gone")
            own = [vars(self._model.get_submodule(path))["forward"] for path in applied.modules]
            cuts = [each for each in own if isinstance(each, CutForward)]
            kernels = [kernel for cut in cuts for kernel in cut.kernels()]
            package.undo(self._model)
        self._packages[name] = package
        self._forwards[name] = kernels or own
        self._cuts[name] = cuts

    def drop(self, name: str) -> None:
        """Forget the kernel of a group."""
        self._packages.pop(name, None)
        self._forwards.pop(name, None)
        self._cuts.pop(name, None)

    @property
    def names(self) -> tuple[str, ...]:
        """The groups that have kernels."""
        return tuple(self._packages)

    def count(self, name: str) -> int:
        """Return the number of modules that the kernel of a group is for."""
        return len(self._forwards.get(name, ()))

    @property
    def runs(self) -> int:
        """The number of runs of kernels so far."""
        return sum(int(package.runs()) for package in self._packages.values())

    @property
    def refusals(self) -> dict[str, int]:
        """The number of calls that ran the original instead, by reason."""
        found: dict[str, int] = {}
        for package in self._packages.values():
            for reason, count in package.refusals().items():
                found[reason] = found.get(reason, 0) + count
        return found

    def put(self, names: Collection[str]) -> None:
        """Put the kernels of these groups into the model, and take all others out."""
        mine = [each for forwards in self._forwards.values() for each in forwards]
        for forward in mine:
            own = vars(forward.module)
            if own.get("forward") is forward:
                del own["forward"]
        for name, forwards in self._forwards.items():
            for forward in forwards if name in names else ():
                own = vars(forward.module)
                before = own.get("forward")  # the kernel for another kind of calls
                forward.otherwise = before if any(before is each for each in mine) else None
                own["forward"] = forward
        wanted = {id(cut) for name in names for cut in self._cuts.get(name, ())}
        for cut in self._all_cuts():
            if id(cut) in wanted:
                cut.put()
            else:
                cut.take_out()

    def _all_cuts(self) -> list[CutForward]:
        return list({id(cut): cut for cuts in self._cuts.values() for cut in cuts}.values())

    @contextmanager
    def only(self, names: Collection[str]) -> Iterator[None]:
        """Put the kernels of these groups into the model, and take them out afterwards."""
        self.put(names)
        try:
            yield
        finally:
            self.put(())
