"""The gradients that a training step computes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gradients:
    """The gradients of a training step.

    They lead from `outputs`, numbers among the tensors that the module returns, to `inputs`,
    numbers among the tensors of a call (`input_names` has their names), and to `parameters`. No
    gradient reaches the floating-point inputs and the parameters named in `unreached`.
    """

    outputs: tuple[int, ...]
    inputs: tuple[int, ...]
    input_names: tuple[str, ...]
    parameters: tuple[str, ...]
    unreached: tuple[str, ...] = ()
