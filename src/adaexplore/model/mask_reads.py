"""Values that `transformers` reads from tensors when it decides whether a call needs a mask.

A read waits for the device, so a CUDA graph cannot have it. Where the tensor comes from constants
alone, such as positions that the model counts itself, the value is the same in every call: it is
noted in one call, and given in the captured call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_MASKS = "transformers.masking_utils"
_aten = torch.ops.aten
_READ = _aten._local_scalar_dense.default
_CONSTANTS = (_aten.arange, _aten.full, _aten.zeros, _aten.ones, _aten.scalar_tensor)
"""Operations whose result without tensors among the arguments is the same in every call."""


def noted_reads(run: Callable[[], object]) -> Sequence[Any] | None:
    """Return the values that masks read in a call; None where an argument or a weight decides them.

    Empty where no module of `transformers` has been imported that makes masks.
    """
    if _MASKS not in sys.modules:
        return ()
    with _MaskReads() as reads:
        run()
    return reads.noted if reads.are_constant else None


def with_reads(run: Callable[[], Any], values: Sequence[Any]) -> Callable[[], Any]:
    """Return a call in which masks get these values, in this order, in place of reading them."""
    if not values:
        return run

    def answered() -> Any:
        with _MaskReads(values):
            return run()

    return answered


class _MaskReads(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Answers the reads of functions that make masks; without answers, notes what they read.

    `are_constant` is True while all that was read comes from constants.
    """

    def __init__(self, answers: Sequence[Any] | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.noted: list[Any] = []
        self.are_constant = True
        self._answers = None if answers is None else iter(answers)
        self._constants: dict[int, torch.Tensor] = {}  # alive, so that no address is used twice

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        is_read = func is _READ and _caller() == _MASKS
        if self._answers is not None:
            return next(self._answers) if is_read else func(*args, **(kwargs or {}))
        result = func(*args, **(kwargs or {}))
        if is_read:
            self.are_constant &= self._is_constant(args[0])
            self.noted.append(result)
        else:
            self._follow(func, _tensors((args, kwargs)), _tensors(result))
        return result

    def _follow(self, func: Any, given: list[torch.Tensor], made: list[torch.Tensor]) -> None:
        """Note which results are constants, and which constants are none any more."""
        from_constants = bool(given) and all(map(self._is_constant, given))
        from_nothing = not given and func.overloadpacket in _CONSTANTS
        is_drawn = torch.Tag.nondeterministic_seeded in func.tags
        if (from_constants or from_nothing) and not is_drawn:
            self._constants |= {_place(tensor): tensor for tensor in made}
        elif func._schema.is_mutable:
            for tensor in given:
                self._constants.pop(_place(tensor), None)

    def _is_constant(self, tensor: torch.Tensor) -> bool:
        return tensor.numel() > 0 and _place(tensor) in self._constants


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _place(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's memory, 0 for none; views have that of their base."""
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0


def _caller() -> str:
    """Return the name of the first module on the stack that is neither this one nor torch's."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name != __name__ and name.partition(".")[0] != "torch":
            return name
        frame = frame.f_back
    return ""
