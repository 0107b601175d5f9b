"""What the fork server does once so that no candidate's process has to."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.compiler import ASTSource

from adaexplore.evaluate.offline.capture import Kernel
from adaexplore.evaluate.offline.resources import compile_for
from adaexplore.evaluate.offline.targets import TARGETS


@triton.jit  # type: ignore[untyped-decorator]
def _trivial(out, count: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(out + tl.arange(0, count), 1.0)


def warm_triton_compiler() -> None:
    """Compiles a kernel for every target: the first compilation of a process takes a second."""
    source = ASTSource(_trivial, {"out": "*fp32", "count": "constexpr"}, {"count": 128})
    for target in TARGETS.values():
        compile_for(Kernel(source, {}, "trivial"), target)
