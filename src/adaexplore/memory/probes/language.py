"""Triton's language: what Python and PyTorch have and a kernel has not."""

from __future__ import annotations

from adaexplore.memory.probes.base import Probe, elementwise, with_body


def _probe(
    name: str, statement: str, topics: tuple[str, ...], wrong: str, right: str, of: str = "x * x"
) -> Probe:
    reference, candidate = elementwise(of)
    return Probe(
        name=name,
        kind="compile",
        statement=statement,
        topics=topics,
        reference=reference,
        witness=with_body(candidate, wrong),
        remedy=with_body(candidate, right),
    )


LANGUAGE: tuple[Probe, ...] = (
    _probe(
        "no-power-operator",
        "Blocks have no `**`: multiply, or use `tl.exp2` and `tl.log2` for powers that vary.",
        ("**", "pow"),
        "y = x ** 2",
        "y = x * x",
    ),
    _probe(
        "no-torch-in-kernels",
        "A kernel cannot call torch functions: use those of `triton.language`.",
        ("torch", "tl.exp"),
        "y = torch.exp(x)",
        "y = tl.exp(x)",
        of="torch.exp(x)",
    ),
    _probe(
        "arange-power-of-two",
        "The length of `tl.arange` is a power of two: round it up and mask what is too much.",
        ("tl.arange",),
        """
        j = tl.arange(0, 100)
        y = x * x + tl.sum(j) * 0.0
        """,
        """
        j = tl.arange(0, 128)
        y = x * x + tl.sum(tl.where(j < 100, j, 0)) * 0.0
        """,
    ),
)
