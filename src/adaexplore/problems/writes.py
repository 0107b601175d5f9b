"""The writes of a module's call to its arguments, as values that a function returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from adaexplore.problems.value_tree import ValueTree, register_dataclasses
from adaexplore.runtime.interface import Write


class _Rows(TorchFunctionMode):
    """Records the calls of `index_copy_` on given tensors."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        super().__init__()
        self._places = {id(t): i for i, t in enumerate(tensors)}
        self.found: dict[int, list[tuple[int, Tensor, Tensor]]] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is Tensor.index_copy_ and id(args[0]) in self._places and len(args) == 4:
            _, dim, index, source = args
            self.found.setdefault(self._places[id(args[0])], []).append((dim, index, source))
        return func(*args, **(kwargs or {}))


def call_flat(
    module: nn.Module, given: ValueTree, tensors: Sequence[Tensor]
) -> tuple[list[Tensor], ValueTree, tuple[Write, ...]]:
    """Call a module on tensors that are its own, and return the tensors of its result.

    New values of those that it writes to come after them: of one that is written to once by
    `index_copy_`, the index and the rows, else the whole. Also returns the structure of the result,
    and the writes.
    """
    versions = [t._version for t in tensors]
    args, kwargs = given.join(tensors)
    with _Rows(tensors) as rows:
        result = module(*args, **kwargs)
    register_dataclasses(result)
    outputs, structure = ValueTree.split(result)
    writes: list[Write] = []
    for i, (tensor, version) in enumerate(zip(tensors, versions, strict=True)):
        if tensor._version == version:
            continue
        copied = rows.found.get(i, [])
        if len(copied) == 1 and tensor._version == version + 1:
            dim, index, source = copied[0]
            writes.append((i, dim))
            outputs += [index, source]
        else:
            writes.append((i, None))
            outputs.append(tensor)
    return outputs, structure, tuple(writes)


def as_functions(tensors: Sequence[Tensor], writes: Sequence[Write]) -> list[Tensor]:
    """Return tensors, copied where a call writes to them."""
    written = {index for index, _ in writes}
    return [torch.clone(t) if i in written else t for i, t in enumerate(tensors)]
