"""The catalogue of optimization strategies from which a model chooses before it writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from adaexplore.core.problem import LANGUAGES
from adaexplore.languages import DIALECTS

_GPU = tuple(name for name, dialect in DIALECTS.items() if dialect.on_gpu)


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy: its name, when it helps, how to apply it, and the languages that can express it.

    `details` holds advice for single languages. `since` is the first GPU generation (major compute
    capability) on which a language can express it.
    """

    name: str
    when: str
    how: str
    languages: tuple[str, ...] = LANGUAGES
    details: Mapping[str, str] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)


CATALOGUE: tuple[Strategy, ...] = (
    Strategy(
        "fusion",
        "results pass through memory between operations",
        "Compute the chain in one kernel: producers before the loads' consumers, element-wise work "
        "as the epilogue of a product, convolution or reduction, on values in registers.",
    ),
    Strategy(
        "algebraic rewrite",
        "the same function has a cheaper form for all inputs and weights",
        "Take sums before products, merge linear layers and normalisation constants, drop terms "
        "that cancel, reorder reductions. Derive folded weights in the constructor.",
    ),
    Strategy(
        "tiling",
        "data is read from memory or the outer cache several times",
        "Choose tiles so that reused data stays in registers, shared memory or L1. Order tiles "
        "(grouped or swizzled) so that neighbours share data in the outer cache.",
    ),
    Strategy(
        "one-pass reduction",
        "softmax, normalisation or a loss reads its input twice or more",
        "Keep a row in registers if it fits; else reduce online with a running maximum and a "
        "rescaled sum, or Welford's update. Short rows: several per program.",
    ),
    Strategy(
        "split reduction",
        "a reduction (also K of a product) is long and there are too few independent outputs to "
        "fill the device",
        "Split it into parts for separate programs. Combine them by a second small kernel or "
        "fp32 atomics (split-K). Combining in fp32 keeps the precision.",
    ),
    Strategy(
        "persistent kernel",
        "tiles are many and short, the last wave is partly empty, or phases depend on each other",
        "Launch as many programs as fit on the device at once. Each loops over tiles in a fixed "
        "order and overlaps the next tile's loads with this tile's epilogue.",
        _GPU,
        {"helion": '`pid_type="persistent_blocked"` or `"persistent_interleaved"`.'},
    ),
    Strategy(
        "software pipelining",
        "a loop over tiles waits for its loads",
        "Load tile i + 1 while computing tile i; watch the shared memory.",
        _GPU,
        {
            "triton": "`num_stages` 3 to 5 on loops with `tl.dot`.",
            "cuda": "`cp.async` or TMA with a ring of buffers.",
            "helion": "`range_num_stages` or `num_stages` 3 to 5 on loops with products.",
        },
    ),
    Strategy(
        "warp specialisation",
        "a product on compute capability 9.0 or newer is bound by issue slots, not by tensor cores",
        "Let some warps only load (TMA) and others only multiply, with barriers between them.",
        _GPU,
        {
            "triton": "`tl.range(..., warp_specialize=True)`.",
            "helion": "`range_warp_specializes=[None, True]`.",
        },
        since={"cuda": 9, "triton": 10, "helion": 10},
    ),
    Strategy(
        "vectorized access",
        "a memory-bound kernel stays well below the measured bandwidth",
        "Give each thread 16 neighbouring bytes, and keep enough accesses in flight.",
        details={
            "triton": "Larger contiguous blocks with aligned strides.",
            "helion": "Larger blocks of the innermost dimension.",
            "cuda": "`float4`, several per thread.",
            "cpp": "Unit-stride inner loops that the compiler vectorises.",
        },
    ),
    Strategy(
        "layout change",
        "accesses are strided, or a transposition or copy is a kernel of its own",
        "Pack weights once in the constructor, in the order of reading. Read transposed instead of "
        "transposing. Use channels-last for convolutions. Return suitable strides.",
    ),
    Strategy(
        "recomputation",
        "an intermediate result is large and cheap to compute",
        "Recompute it where it is used instead of storing and loading it. Store only statistics.",
    ),
    Strategy(
        "precision emulation",
        "fp32 products bound the time and the class is fp32",
        "Multiply high and low parts on tensor cores in three products, as accurate as fp32: TF32 "
        "products, or fp16 products at twice the rate if rows are scaled into fp16's range.",
        _GPU,
        {
            "triton": '`input_precision="tf32x3"` splits into TF32; split into fp16 yourself.',
            "helion": '`dot_precision="tf32x3"` splits into TF32; split into fp16 yourself.',
        },
    ),
    Strategy(
        "tuned configurations",
        "the structure is right and the time depends on tile sizes, warps and stages",
        "Choose tiles, warps and stages for these sizes among a few distinct ones.",
        _GPU,
        {
            "triton": "`@triton.autotune` on four to eight configurations, keyed by the sizes.",
            "cuda": "Template parameters.",
            "helion": "`configs=[...]` of four to eight in place of `config`.",
        },
    ),
    Strategy(
        "launch reduction",
        "kernels take microseconds each, and launches and Python take as long",
        "Use one or few launches, without views, copies or allocations between them. Where many "
        "launches must stay, use a CUDA graph (inputs copied in, outputs cloned).",
        _GPU,
    ),
    Strategy(
        "thread balance",
        "the cores share the work unevenly, or parallel regions are entered often",
        "Enter one parallel region over collapsed outer loops with equal parts for all threads. No "
        "two threads write the same cache line. For little work, one thread is faster.",
        ("cpp",),
    ),
    Strategy(
        "library with fused remainder",
        "a large product or convolution dominates, and a library runs it near its roofline",
        "Leave it to the library, in its best layout and dtype. Put everything else into one "
        "kernel before it and one after it.",
    ),
)


def strategies_for(language: str, generation: int = 0) -> tuple[Strategy, ...]:
    """Return the strategies for `language` on a GPU of this generation; 0 means no GPU."""
    fitting = (s for s in CATALOGUE if language in s.languages)
    return tuple(s for s in fitting if generation >= s.since.get(language, 0))


def find_strategy(reply: str) -> str | None:
    """Return the first strategy that a reply names, None if it names none of the catalogue."""
    found = [
        (match.start(), -len(s.name), s.name)
        for s in CATALOGUE
        if (match := re.search(rf"\b{_words(s.name)}\b", reply, re.IGNORECASE))
    ]
    return min(found)[2] if found else None


def _words(name: str) -> str:
    """Return a pattern for a name, with any separators between its words."""
    return r"[\s_-]+".join(map(re.escape, re.split(r"[ -]", name)))
