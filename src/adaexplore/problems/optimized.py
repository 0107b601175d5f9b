"""A captured module, and the winner of its search as a module in its place."""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from adaexplore.core.problem import Problem
from adaexplore.problems.graph_source import state_of
from adaexplore.problems.value_tree import ValueTree, bound
from adaexplore.sandbox.user.user_code import Instance, Stored


@dataclass(frozen=True, slots=True)
class Captured:
    """A live module as a problem, with what turns the winner into a module again.

    `given` and `returned` are the structures of a call's arguments and of its result; `shapes` are
    those of the tensors of each example call.
    """

    problem: Problem
    module: nn.Module
    given: ValueTree
    returned: ValueTree
    shapes: tuple[tuple[torch.Size, ...], ...]

    def optimized(self, source: str, folder: Path) -> Optimized:
        """Return the candidate in `source` (class `ModelNew`) as a module like the captured one.

        It holds the weights that the captured module has now. `source` is written to `folder` and
        imported into this process: it must be a candidate that the judge has verified.
        """
        stored = Stored(self.problem.weights, self.problem.weights_digest).load()
        with own_randomness():
            instance = Instance.load(
                source,
                "ModelNew",
                device=self.problem.device,
                seed=self.problem.seed,
                mode=self.problem.mode,
                folder=folder,
                name="winner",
                access=self.problem.access,
            )
        own = instance.model.state_dict()
        with torch.no_grad():
            for name, tensor in (stored | state_of(self.module)).items():
                if name in own and own[name].shape == tensor.shape:  # as the judge gives weights
                    own[name].copy_(tensor)
        return Optimized(instance.model, self)


class Optimized(nn.Module):
    """A verified candidate in the place of the module that it was found for, for inference.

    It takes the same arguments and returns the same structure. A call with other arguments than the
    example calls, or with tensors of other shapes, raises `ValueError`: nobody verified the
    candidate on them.
    """

    def __init__(self, model: nn.Module, captured: Captured) -> None:
        super().__init__()
        self.model = model
        self._signature = inspect.signature(captured.module.forward)
        self._given = captured.given
        self._returned = captured.returned
        self._shapes = captured.shapes

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the candidate as the module is called."""
        tensors, given = ValueTree.split(bound(self._signature, args, kwargs))
        if given != self._given:
            raise ValueError("verified for the arguments of the example calls, not for these")
        shapes = tuple(t.shape for t in tensors)
        if shapes not in self._shapes:
            verified = " or ".join(map(_in_words, self._shapes))
            raise ValueError(f"verified for tensors of {verified}, not of {_in_words(shapes)}")
        with torch.no_grad():
            outputs = self.model(*tensors)
        return self._returned.join([outputs] if isinstance(outputs, Tensor) else outputs)


@contextmanager
def own_randomness() -> Iterator[None]:
    """Put the random generators of this process back afterwards."""
    numpy = sys.modules.get("numpy")
    python, drawn = random.getstate(), numpy.random.get_state() if numpy else None
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(python)
            if numpy:
                numpy.random.set_state(drawn)


def _in_words(shapes: tuple[torch.Size, ...]) -> str:
    return ", ".join("x".join(map(str, shape)) or "scalar" for shape in shapes)
