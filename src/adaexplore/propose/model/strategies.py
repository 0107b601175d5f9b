"""The catalogue of optimization strategies from which a model chooses before it writes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from adaexplore.core.problem import LANGUAGES, Language
from adaexplore.languages import DIALECTS

_GPU = tuple(name for name, dialect in DIALECTS.items() if dialect.on_gpu)


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy: its name, when it helps, how to apply it, and the languages that can express it.

    A language's own advice on it, and the first GPU generation (major compute capability) on which
    the language can express it, are in its `Dialect`.
    """

    name: str
    when: str
    how: str
    languages: tuple[Language, ...] = LANGUAGES


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
        "Keep a row in registers if it fits, also for the variance, of x - mean; else reduce "
        "online with a running maximum and a rescaled sum, or Welford's update (not by sums of "
        "squares). Short rows: several per program.",
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
    ),
    Strategy(
        "software pipelining",
        "a loop over tiles waits for its loads",
        "Load tile i + 1 while computing tile i; watch the shared memory.",
        _GPU,
    ),
    Strategy(
        "warp specialisation",
        "a product on compute capability 9.0 or newer is bound by issue slots, not by tensor cores",
        "Let some warps only load (TMA) and others only multiply, with barriers between them.",
        _GPU,
    ),
    Strategy(
        "vectorized access",
        "a memory-bound kernel stays well below the measured bandwidth",
        "Give each thread 16 neighbouring bytes, and keep enough accesses in flight.",
    ),
    Strategy(
        "layout change",
        "accesses are strided, or a transposition or copy is a kernel of its own",
        "Pack weights once, where they may be kept, in the order of reading. Read transposed "
        "instead of transposing. Use channels-last for convolutions. Return suitable strides.",
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
        "products, or fp16 products at twice the rate if rows are scaled into fp16's range. Begin "
        "a new accumulator every few steps, since tensor cores cut bits off as they add.",
        _GPU,
    ),
    Strategy(
        "tuned configurations",
        "the structure is right and the time depends on tile sizes, warps and stages",
        "Choose tiles, warps and stages for these sizes among a few distinct ones.",
        _GPU,
    ),
    Strategy(
        "launch reduction",
        "kernels take microseconds each, and launches and Python take as long",
        "Use one or few launches, without views, copies or allocations between them. Where many "
        "launches must stay, use a CUDA graph: copy inputs in, clone outputs, capture again when a "
        "weight's address or version changes, leave running statistics to the replays.",
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


def strategies_for(language: Language, generation: int = 0) -> tuple[Strategy, ...]:
    """Return the strategies for `language` on a GPU of this generation; 0 means no GPU."""
    fitting = (s for s in CATALOGUE if language in s.languages)
    since = DIALECTS[language].since if language in DIALECTS else {}
    return tuple(s for s in fitting if generation >= since.get(s.name, 0))


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
