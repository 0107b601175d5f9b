"""A record of the operations that compute constants from weights, so that a candidate can repeat
it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode


class Tape(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records, while active, every operation whose tensors all come from `roots`.

    Fake tensors, random numbers and uninitialised memory are ignored: a compiler's work beside
    folding (propagating shapes, timing kernels on random inputs) is not recorded.
    """

    def __init__(self, roots: Iterable[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._known = {id(root): root for root in roots}
        self._steps: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run the operation and record it if it belongs on the tape."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        made = _tensors(result)
        if (
            made
            and not any(isinstance(tensor, FakeTensor) for tensor in made)
            and not _arbitrary(func)
            and all(id(tensor) in self._known for tensor in _tensors((args, kwargs)))
        ):
            self._steps.append((func, args, kwargs, result))
            self._known.update((id(tensor), tensor) for tensor in made)
        return result

    def knows(self, tensor: Tensor) -> bool:
        """Return True if `tensor` is a root or was computed on the tape."""
        return id(tensor) in self._known

    def recipe(self, names: dict[int, str], wanted: list[Tensor]) -> tuple[list[str], list[str]]:
        """Return source lines that compute `wanted`, and an expression for each of them.

        `names` maps `id(root)` to the expression for that root.
        """
        names = dict(names)
        lines = []
        for func, args, kwargs, result in self._needed(wanted):
            call = _call(func, args, kwargs, names)
            if isinstance(result, Tensor):
                target = names.setdefault(id(result), f"v{len(names)}")
            else:
                target = f"v{len(names)}"
                for index, part in enumerate(result):
                    if isinstance(part, Tensor):
                        names[id(part)] = f"{target}[{index}]"
            lines.append(f"{target} = {call}")
        return lines, [names[id(tensor)] for tensor in wanted]

    def roots_of(self, wanted: list[Tensor]) -> set[int]:
        """Return the ids of every tensor that `wanted` depend on, roots among them."""
        reached = {id(tensor) for tensor in wanted}
        for _, args, kwargs, _ in self._needed(wanted):
            reached |= {id(tensor) for tensor in _tensors((args, kwargs))}
        return reached

    def _needed(self, wanted: list[Tensor]) -> list[Any]:
        needed = {id(tensor) for tensor in wanted}
        steps = []
        for step in reversed(self._steps):
            if any(id(tensor) in needed for tensor in _tensors(step[3])):
                needed |= {id(tensor) for tensor in _tensors(step[1:3])}
                steps.append(step)
        return steps[::-1]


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, Tensor)]


def _arbitrary(func: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in func.tags or func._opname.startswith(
        ("empty", "new_empty")
    )


def _call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], names: dict[int, str]) -> str:
    texts = [literal(arg, names) for arg in args]
    texts += [f"{key}={literal(value, names)}" for key, value in kwargs.items()]
    return f"torch.ops.{func}({', '.join(texts)})"


def literal(value: Any, names: dict[int, str]) -> str:
    """Return Python source for an argument of a torch operator; `names` has tensors by id."""
    match value:
        case Tensor():
            return names[id(value)]
        case list():
            return f"[{', '.join(literal(item, names) for item in value)}]"
        case tuple():
            return f"({', '.join(literal(item, names) for item in value)},)" if value else "()"
        case float() if not math.isfinite(value):
            return f'float("{value}")'
        case torch.device():
            return f'torch.device("{value}")'
        case _:  # numbers, strings, None, and dtypes, layouts and memory formats of torch
            return repr(value)
