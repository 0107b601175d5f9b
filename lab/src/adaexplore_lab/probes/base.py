"""How a probe is written: a pair of kernels that differ in what the rule is about."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from adaexplore.core.rule import Kind, Matcher, Rule, Signature

_UNKNOWN = Signature("runtime_error")
"""Until the witness has been run: `Checker.observed` says how it fails."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A rule in the making: it is true where its witness fails and its remedy passes."""

    name: str
    kind: Kind
    statement: str
    topics: tuple[str, ...]
    reference: str
    witness: str
    remedy: str
    matcher: Matcher | None = None

    def rule(self) -> Rule:
        """As a rule whose signature is not known yet."""
        return Rule(
            name=self.name,
            kind=self.kind,
            statement=self.statement,
            reference=self.reference,
            witness=self.witness,
            remedy=self.remedy,
            signature=_UNKNOWN,
            source="probe",
            topics=self.topics,
            matcher=self.matcher,
        )


def elementwise(
    expression: str, *, inputs: str = "torch.randn(1000)", before: str = ""
) -> tuple[str, str]:
    """A reference `expression` of x, and a candidate of which only the kernel's body is missing.

    The body computes `y` from the block `x` (its places `i`, its mask `m`, its length `B`, the
    pointers `x_ptr` and `y_ptr`, the number of elements `n`).
    """
    reference = f"""
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return {expression}


def get_inputs():
    return [{inputs}]
"""
    candidate = f"""
import torch
import triton
import triton.language as tl
from torch import nn

{textwrap.dedent(before).strip()}

@triton.jit
def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=0.0)
BODY
    tl.store(y_ptr + i, y, mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        kernel[(triton.cdiv(n, 256),)](x, y, n, B=256)
        return y
"""
    return reference.lstrip(), candidate.lstrip()


def with_body(candidate: str, body: str) -> str:
    """The candidate with a kernel's body in its place."""
    return candidate.replace("BODY", textwrap.indent(textwrap.dedent(body).strip("\n"), "    "))
