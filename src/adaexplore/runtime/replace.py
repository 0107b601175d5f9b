"""The kernel in the place of modules of a model, and the way back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from adaexplore.runtime import ops
from adaexplore.runtime.compare import relative_error
from adaexplore.runtime.counts import log, note
from adaexplore.runtime.guards import Verified, guarded
from adaexplore.runtime.homes import forwards_with_run, is_cut, run_in
from adaexplore.runtime.inputs import inputs_of
from adaexplore.runtime.interface import call_of, code_of, difference, layers_of, library_of
from adaexplore.runtime.kernel import UnusableKernelError, tensors_in
from adaexplore.runtime.loaded import SPEC, versions_in_words
from adaexplore.runtime.values import rebuild

_TOP = SPEC.interface.layers[0]


@dataclass(frozen=True, slots=True)
class Applied:
    """The names of the modules that have the kernel now, and the reason for each one left alone."""

    modules: tuple[str, ...]
    left: Mapping[str, str]


class Forward:
    """The forward of one module: the kernel, or the original for calls that the guards refuse.

    `otherwise` is, in the place of the original, the forward for another kind of calls.
    It lies among the module's own attributes, so copies and pickles of the module have their own.
    """

    def __init__(self, module: nn.Module, name: str) -> None:
        self.module = module
        self.name = name
        self.otherwise: Forward | None = None
        self.verified = Verified.of(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the kernel where it was verified, else the original."""
        why, inputs, state = guarded(self.module, self.verified, args, kwargs)
        if why:
            if self.otherwise is not None:
                return self.otherwise(*args, **kwargs)
            self.refuse(why)
            return type(self.module).forward(self.module, *args, **kwargs)
        return rebuild(SPEC.interface.returned, ops.call(inputs, state))

    def refuse(self, why: str) -> None:
        """Count a call that runs the original."""
        note(self.name, why)

    def __getstate__(self) -> dict[str, Any]:
        found = self.verified
        return {**self.__dict__, "verified": (found.kinds, found.functions, found.place)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        kinds, functions, place = state["verified"]
        if not _has_verified_code(kinds):  # of another version of the user's library
            kinds, functions = (), ()
        self.verified = Verified.of_kinds(kinds, functions, place)


def apply(model: nn.Module, only: Collection[str] | None = None) -> Applied:
    """Put the kernel in the place of every module of a model that it was verified for.

    A kernel for a run of operations goes into the forwards of the modules that have the run. With
    `only`, modules with these names alone are looked at. Each is tried once on the package's own
    inputs: raises `UnusableKernelError`, with the model as it was, where the kernel cannot run here
    or gives other outputs than the module, `ValueError` for a name that no module has, and
    `TypeError` for what is no module.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"apply takes a torch.nn.Module, not {type(model).__name__}")
    done: dict[str, nn.Module] = {}
    found = _modules_of(model, only)
    cuts, left = forwards_with_run(found)
    if SPEC.cuts:
        found = [(name, run_in(cut.runs)) for name, cut in cuts.items()]
    for name, module in found:
        if any(name.startswith(f"{outer}.") or not outer for outer in done):
            continue
        if isinstance(module.__dict__.get("forward"), Forward):
            done[name] = module
        elif type(module).__qualname__ == _TOP.kind:
            why = _why_not(module, name)
            if not why:
                done[name] = module
            elif not library_of(type(module)):
                left[name] = why
    new = {n: m for n, m in done.items() if "forward" not in m.__dict__}
    for name, module in new.items():
        _try(module, name)
    for name, module in new.items():
        module.__dict__["forward"] = Forward(module, name)
        if name in cuts:
            cuts[name].put()
    for name, why in left.items():
        log.warning("%s: not replaced: %s", name or SPEC.class_name, why)
    if not done:
        log.warning("no module of the model is the %s that was verified", SPEC.class_name)
    return Applied(tuple(done), left)


def _modules_of(model: nn.Module, only: Collection[str] | None) -> list[tuple[str, nn.Module]]:
    """Return the modules of a model with their names, outer ones first."""
    if only is None:
        return list(model.named_modules())
    found, unknown = [], []
    for name in sorted(only, key=lambda name: name.count(".")):
        try:
            found.append((name, model.get_submodule(name)))
        except AttributeError:
            unknown.append(repr(name))
    if unknown:
        raise ValueError(f"the model has no module {', '.join(sorted(unknown))}")
    return found


def undo(model: nn.Module) -> tuple[str, ...]:
    """Give every module of a model its own forward again; return the names of those that had not.

    A forward with runs of operations stays for the kernels of other packages in it.

    Raises `RuntimeError` where another library has put its own forward around the kernel.
    """
    found = []
    for name, module in model.named_modules():
        forward = module.__dict__.get("forward")
        place = run_in(module.__dict__) if SPEC.cuts else module
        if place is None:
            continue
        own = place.__dict__.get("forward")
        if isinstance(own, Forward) and (place is module or is_cut(forward)):
            del place.__dict__["forward"]
            if is_cut(forward) and not forward.kernels():
                forward.take_out()
            found.append(name)
        elif own is not None and _wraps_kernel(place):
            raise RuntimeError(
                f"{name}: its forward was replaced after apply(); undo that replacement first"
            )
    return tuple(found)


def _wraps_kernel(module: nn.Module) -> bool:
    return any(isinstance(value, Forward) for value in module.__dict__.values())


def _why_not(module: nn.Module, name: str) -> str:
    """Return why a module is not one that the kernel was verified for."""
    if "forward" in module.__dict__:
        return "it has a forward of its own"
    return difference(layers_of(module), SPEC.interface.layers, name) or _why_not_now(module)


def _why_not_now(module: nn.Module) -> str:
    """Return why the kernel cannot be tried on a module in its present place."""
    tensors = [*module.parameters(), *module.buffers()]
    elsewhere = {t.device.type for t in tensors} - {form[-1] for form in SPEC.state_forms}
    if elsewhere:
        return f"it lies on {elsewhere.pop()}; move it to {SPEC.device} first"
    return ""


def _try(module: nn.Module, name: str) -> None:
    """Compare the kernel with a module on the package's own inputs."""
    forward = Forward(module, name)
    tensors = [*module.parameters(), *module.buffers()]
    device = next((t.device for t in tensors if t.device.type == SPEC.device), None)
    given = inputs_of(SPEC.workloads[0], device or torch.device(SPEC.device))
    place = forward.verified.place
    own = [t.clone() for t in given]  # the module may write to them
    args, kwargs = call_of(SPEC.interface, own, place=place)
    with torch.no_grad():
        why, inputs, state = guarded(module, forward.verified, args, kwargs)
        if why:
            return  # nothing to compare: calls like this run the original
        mine = [t.clone() for t in inputs]
        found = ops.call(mine, state)
        expected = tensors_in(type(module).forward(module, *args, **kwargs))
    for index, _ in SPEC.interface.writes:
        found.append(mine[index])
        expected.append(own[index])
    error = relative_error(found, expected)
    if error > SPEC.error:
        raise UnusableKernelError(
            f"{name or SPEC.class_name}: the kernel's output is off by {error:.1e}, more than "
            f"{SPEC.error:.1e}; {versions_in_words()}"
        )


def _has_verified_code(kinds: tuple[type[nn.Module], ...]) -> bool:
    return [code_of(kind) for kind in kinds] == [layer.code for layer in SPEC.interface.layers]
