"""The state of a candidate's process that its candidate must not change.

Checked in that very process, so a determined cheat can silence the check; the judge's own clock and
the outputs in the judge's own memory stand behind it. This check names the cheat.
"""

from __future__ import annotations

import builtins
import gc
import json
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import torch

_PACKAGE = __name__.partition(".")[0]
_WATCHED: tuple[ModuleType | type, ...] = (
    builtins,
    gc,
    json,
    os,
    random,
    socket,
    socket.socket,
    sys,
    threading,
    time,
    torch,
    torch.Tensor,
    torch.autograd,
    torch.cuda,
    torch.cuda.Event,
    torch.cuda.Stream,
    torch.nn.Module,
    torch.nn.functional,
)
_DEVICE_KEYS = ("CPU", "CUDA")
_HOOKS = ("gettrace", "getprofile")
_PYTORCH_REPLACES = frozenset(  # itself, when torch.compile is first used
    {
        "torch.nn.modules.module.Module.__init__",
        "torch.nn.modules.module.Module.__setstate__",
        "adaexplore.sandbox.user.training.TrainingStep.__setstate__",  # inherited
    }
)


@dataclass(frozen=True, slots=True)
class Flag:
    """A global setting of PyTorch's, with functions that read it and put it back."""

    name: str
    get: Callable[[], Any]
    set: Callable[[Any], None]


def _attribute(owner: Any, name: str, label: str) -> Flag:
    return Flag(
        f"{label}.{name}", lambda: getattr(owner, name), lambda value: setattr(owner, name, value)
    )


FLAGS: tuple[Flag, ...] = (
    Flag("the default dtype", torch.get_default_dtype, torch.set_default_dtype),
    Flag(
        "the default device",
        torch.get_default_device,
        lambda _: torch.set_default_device(None),  # which is what it was
    ),
    Flag("the number of threads", torch.get_num_threads, torch.set_num_threads),
    Flag("grad mode", torch.is_grad_enabled, lambda on: torch._C._set_grad_enabled(on)),
    Flag(
        "float32 matmul precision",
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    Flag(
        "deterministic algorithms",
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
    ),
    *(
        _attribute(torch.backends.cudnn, name, "cudnn")
        for name in ("enabled", "benchmark", "deterministic", "allow_tf32")
    ),
    *(
        _attribute(torch.backends.cuda.matmul, name, "cuda.matmul")
        for name in (
            "allow_fp16_reduced_precision_reduction",
            "allow_bf16_reduced_precision_reduction",
        )
    ),
)
"""`set_flags` of `precision` chooses the two about TF32; these are the state it leaves."""


class ProcessState:
    """The state of a candidate's process before the candidate's code has run."""

    def __init__(self) -> None:
        self._functions = dict(_functions())
        self._kernels = _registered_kernels()
        self._flags = _settings()

    def replaced(self) -> list[str]:
        """Name the functions that were replaced, and hooks into the interpreter.

        New names are allowed; only functions and classes count, since modules keep all kinds of
        state in their attributes.
        """
        now = dict(_functions())
        changed = [
            name
            for name, was in self._functions.items()
            if not _same(now.get(name, ()), was) and name not in _PYTORCH_REPLACES
        ]
        hooks = [f"sys.{name}" for name in _HOOKS if getattr(sys, name)() is not None]
        changed += sorted(_registered_kernels() - self._kernels)
        modes = torch._C._len_torch_function_stack() + torch._C._len_torch_dispatch_stack()
        return changed + hooks + (["a torch function or dispatch mode"] if modes else [])

    def changed_flags(self) -> list[str]:
        """Name the global settings that have changed."""
        now = _settings()
        return [name for name, was in self._flags.items() if now[name] != was]

    def restore_flags(self) -> None:
        """Put the global settings back."""
        changed = self.changed_flags()
        for flag in FLAGS:
            if flag.name in changed:
                flag.set(self._flags[flag.name])

    def keep_flags(self) -> None:
        """Make the present settings the state to keep."""
        self._flags = _settings()


def _registered_kernels() -> set[str]:
    """Name the kernels in Python that stand for PyTorch's own, such as "aten/copy_/CPU"."""
    names = {name for name in torch.library._impls if name.startswith("aten/")}
    return {name for name in names if name.rpartition("/")[2] in _DEVICE_KEYS}


def _settings() -> dict[str, Any]:
    return {flag.name: _read(flag) for flag in FLAGS}


def _read(flag: Flag) -> Any:
    try:
        return flag.get()
    except RuntimeError as error:  # set through PyTorch's newer interface, beside which this fails
        return str(error)


def _functions() -> Iterator[tuple[str, tuple[Any, ...]]]:
    own = [m for name, m in sys.modules.items() if name.partition(".")[0] == _PACKAGE]
    classes = [c for m in own for c in vars(m).values() if isinstance(c, type)]
    ours = [c for c in classes if c.__module__.partition(".")[0] == _PACKAGE]
    for owner in (*_WATCHED, *own, *ours):
        module = "" if isinstance(owner, ModuleType) else f"{owner.__module__}."
        for name, value in _attributes(owner).items():
            if callable(value) or isinstance(value, property | staticmethod | classmethod):
                yield f"{module}{owner.__name__}.{name}", _parts(value)


def _parts(value: Any) -> tuple[Any, ...]:
    """Return a function and, if it is written in Python, its replaceable parts."""
    function = getattr(value, "__func__", value)
    if not isinstance(function, FunctionType):
        return (value,)
    return (value, function.__code__, function.__defaults__, function.__kwdefaults__)


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _attributes(owner: ModuleType | type) -> dict[str, Any]:
    """Return an owner's attributes; for a class the inherited ones too, which it could override."""
    if isinstance(owner, ModuleType):
        return dict(vars(owner))
    found: dict[str, Any] = {}
    for base in reversed(owner.__mro__):
        found.update(vars(base))
    return found
