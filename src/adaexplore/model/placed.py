"""Verified candidates in the places of a model's modules, put there and taken out again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from adaexplore.model.groups import has_hooks
from adaexplore.problems.graph_source import state_of
from adaexplore.problems.optimized import Optimized


class Placed:
    """The forward of a module: its candidate where that was verified, else its own.

    Its own runs for calls of other forms, where gradients are asked for, and once a weight, a layer
    or a hook of the module has changed: the candidate has a copy of the weights. `calls` counts the
    calls of the candidate.
    """

    def __init__(self, module: nn.Module, optimized: Optimized) -> None:
        self._module = module
        self._optimized = optimized
        self._parts = _parts_of(module)
        self.calls = 0

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the candidate, or the module's own forward."""
        tensors = self._verified(args, kwargs)
        if tensors is None:
            return type(self._module).forward(self._module, *args, **kwargs)
        self.calls += 1
        return self._optimized.compute(tensors)

    def _verified(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor] | None:
        module = self._module
        if torch.is_grad_enabled() and any(p.requires_grad for p in module.parameters()):
            return None
        if torch.is_autocast_enabled() or module.training or _parts_of(module) != self._parts:
            return None
        try:
            return self._optimized.checked(args, kwargs)
        except (TypeError, ValueError, RuntimeError):
            return None


class Placements:
    """The candidates for groups of modules of a model, by the names of the groups."""

    def __init__(self) -> None:
        self._placed: dict[str, list[tuple[nn.Module, Placed]]] = {}

    def add(self, name: str, module: nn.Module, optimized: Optimized) -> None:
        """Add a candidate for a module; it is not put into the model yet."""
        self._placed.setdefault(name, []).append((module, Placed(module, optimized)))

    def drop(self, name: str) -> None:
        """Forget the candidates of a group."""
        self._placed.pop(name, None)

    @property
    def names(self) -> tuple[str, ...]:
        """The groups that have candidates."""
        return tuple(self._placed)

    @property
    def calls(self) -> int:
        """The number of calls of candidates so far."""
        return sum(placed.calls for pairs in self._placed.values() for _, placed in pairs)

    def put(self, names: Collection[str]) -> None:
        """Put the candidates of these groups into the model, and take all others out."""
        for name, pairs in self._placed.items():
            for module, placed in pairs:
                if name in names:
                    vars(module)["forward"] = placed
                elif isinstance(vars(module).get("forward"), Placed):
                    del vars(module)["forward"]

    @contextmanager
    def only(self, names: Collection[str]) -> Iterator[None]:
        """Put the candidates of these groups into the model, and take them out afterwards."""
        self.put(names)
        try:
            yield
        finally:
            self.put(())


def _parts_of(module: nn.Module) -> tuple[object, ...]:
    """Return the identities of a module's layers, hooks and tensors, and the tensors' versions."""
    layers = tuple((id(layer), has_hooks(layer)) for layer in module.modules())
    tensors = tuple((t.data_ptr(), _version(t)) for t in state_of(module).values())
    return layers, tensors


def _version(tensor: Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version
