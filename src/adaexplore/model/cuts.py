"""Cut forwards in their places in a model, and the runs of operations in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from torch import nn

from adaexplore.runtime.cuts import CutForward


def modules_in(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield the modules of a model with their names, and the runs that are in place."""
    for path, module in model.named_modules():
        yield path, module
        forward = vars(module).get("forward")
        if isinstance(forward, CutForward):
            for name, run in forward.runs.items():
                yield f"{path}.{name}".lstrip("."), run


@contextmanager
def in_place(cuts: Iterable[CutForward]) -> Iterator[None]:
    """Put cut forwards in their places, and take them out afterwards."""
    cuts = list(cuts)
    for cut in cuts:
        cut.put()
    try:
        yield
    finally:
        for cut in cuts:
            cut.take_out()
