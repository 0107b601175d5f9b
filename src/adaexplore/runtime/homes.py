"""The modules of a model whose forwards have the run of operations that the kernel is for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from adaexplore.runtime.cuts import CutForward, OperationRun, place_in_model
from adaexplore.runtime.interface import difference, layers_of
from adaexplore.runtime.loaded import SPEC


def forwards_with_run(
    modules: Iterable[tuple[str, nn.Module]],
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return cut forwards for modules by their names, and the reasons to leave others alone.

    One that another package has put there serves both; a new one is not in its place yet.
    """
    found: dict[str, Any] = {}
    left: dict[str, str] = {}
    kinds = {cut.layers[0].kind for cut in SPEC.cuts}
    for name, module in modules:
        if type(module).__qualname__ in kinds:
            forward, left[name] = _forward_of(module, name)
            if forward is not None:
                found[name] = forward
                del left[name]
    return found, left


def run_in(attributes: Mapping[str, Any]) -> Any:
    """Return the run that the kernel is for among the attributes of a module, or None."""
    for value in attributes.values():
        if type(value).__qualname__ == OperationRun.__qualname__ and value.text == _TEXT:
            return value
    return None


def is_cut(forward: Any) -> bool:
    """Return whether a forward is one with runs, of this package or another."""
    return type(forward).__qualname__ == CutForward.__qualname__


def _forward_of(module: nn.Module, name: str) -> tuple[Any, str]:
    """Return the cut forward for a module, or None and the reason."""
    own = vars(module).get("forward")
    if own is not None and not is_cut(own):
        return None, "it has a forward of its own"
    layers, place = layers_of(module), place_in_model(module)
    reasons = []
    for cut in SPEC.cuts:
        why = difference(layers, cut.layers, name)
        if not why and place not in cut.places:
            why = f"it has {place or 'no number'}, its forward was cut for {'; '.join(cut.places)}"
        if not why and own is not None and own.to_json() != cut.forward:
            why = "its forward has other runs"
        if not why:
            return own or CutForward.from_json(module, cut.forward), ""
        reasons.append(why)
    return None, reasons[0]


_TEXT = SPEC.interface.layers[0].constants.get("text")
