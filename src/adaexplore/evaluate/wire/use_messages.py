"""Messages about the uses of a candidate outside the judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from adaexplore.core.problem import Mode
from adaexplore.evaluate.wire.messages import Done, OutputDescription, Request, TensorHandle

Whose = Literal["own", "other", "moved"]
"""Weights of the reference: under its seed, under another, and as constructed on the CPU."""

Part = Literal[
    "call",
    "load_state_dict",
    "deepcopy",
    "pickle",
    "save",
    "state_dict",
    "first_of_two",
    "second_of_two",
    "assigned",
    "through_data",
    "gapped",
    "transposed",
    "moved",
    "stream",
]
"""A trial that ends in one call, whose outputs are compared."""


@dataclass(frozen=True)
class Tried:
    """The outputs of a trial, which stand in their buffers.

    `applies` is false where the candidate has no weights of the reference's names.
    """

    outputs: tuple[OutputDescription, ...]
    applies: bool = True


@dataclass(frozen=True)
class GradientsTried:
    """The outputs of a call with gradients, and for each leaf whether it got one.

    `attached` is true if an output has a graph. A leaf is "absent" where the candidate has none of
    that name.
    """

    outputs: tuple[OutputDescription, ...]
    attached: bool
    leaves: tuple[Literal["given", "missing", "absent"], ...]


@dataclass(frozen=True)
class TakeWeights(Request[Done]):
    """Keep these weights of the reference, by name."""

    whose: Whose
    names: tuple[str, ...]
    handles: tuple[TensorHandle, ...]


@dataclass(frozen=True)
class TakePlaces(Request[Done]):
    """Keep these places for gradients, after those that came before."""

    handles: tuple[TensorHandle, ...]


@dataclass(frozen=True)
class HowToBuild(Request[Done]):
    """Build the models of all trials so.

    The constructor runs under `seed`, or `other_seed` for other weights. With `give_weights`, the
    reference's weights are then copied in by name.
    """

    seed: int
    other_seed: int
    mode: Mode
    give_weights: bool


@dataclass(frozen=True)
class TryUse(Request[Tried]):
    """Make a trial on an input set; deliver the outputs at once."""

    part: Part
    input_set: int


@dataclass(frozen=True)
class TryGradients(Request[GradientsTried]):
    """Call with gradients and go backward; deliver outputs, and the gradients to their places.

    The leaves are `inputs`, by their number among the floating-point ones, then the parameters of
    these names. Without `inputs`, none requires a gradient.
    """

    input_set: int
    inputs: tuple[int, ...]
    parameters: tuple[str, ...]

    def accepts(self, reply: GradientsTried) -> bool:
        """Return True if the reply is about every leaf."""
        return len(reply.leaves) == len(self.inputs) + len(self.parameters)
