"""The descriptor of a candidate: the make-up of its call, by which kernels differ beside speed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The make-up of a correct candidate.

    `own` and `library` are the shares of a call's device time that each of its own kernels and each
    kernel of a library takes, largest first: they show the fusion. `launches` counts all kernels of
    a call. `grid` (in blocks) and `block` (in threads) are those of the own kernel that takes most
    time. `bytes_per_s` is the memory traffic: the problem's least over the measured time (see
    `evaluation.Roofline`), or the captured traffic over the estimate. `instructions` are sorted
    names (see `evaluate.kernels.instructions`). An unknown value is empty or 0.

    Candidates with equal `form` or equal `code` do the same work. `form` is the fingerprint of the
    source (`languages.fingerprint`); in `code` the machine code of Triton kernels replaces their
    bodies. An empty value equals none.
    """

    own: tuple[float, ...] = ()
    library: tuple[float, ...] = ()
    launches: float = 0.0
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    bytes_per_s: float = 0.0
    instructions: tuple[str, ...] = ()
    form: str = ""
    code: str = ""
