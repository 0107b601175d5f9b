"""The catalogue of named optimization strategies from which a model chooses before it writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from adaexplore.core.problem import LANGUAGES
from adaexplore.languages import DIALECTS

_GPU = tuple(name for name, dialect in DIALECTS.items() if dialect.on_gpu)


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy: its name, when it helps, how it is done, and the languages that can do it.

    `details` are what there is to say for one language only, `since` the generation of GPUs (the
    major compute capability) from which on a language can do it.
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
        "results travel through memory between operations",
        "Compute the chain in one kernel: producers before the loads' consumers, element-wise work "
        "as the epilogue of a product, convolution or reduction while its values are in registers.",
    ),
    Strategy(
        "algebraic rewrite",
        "the same function has a cheaper form for all inputs and weights",
        "Take sums before products, merge linear layers and normalisation constants, drop what "
        "cancels, reorder reductions; derive folded weights in the constructor.",
    ),
    Strategy(
        "tiling",
        "data is read from memory or the outer cache several times",
        "Choose tiles so that what is reused stays in registers, shared memory or L1, and order "
        "them (grouped or swizzled) so that neighbours share what is in the outer cache.",
    ),
    Strategy(
        "one-pass reduction",
        "softmax, normalisation or a loss reads its input twice or more",
        "Keep a row that fits in registers; else reduce online with a running maximum and rescaled "
        "sum, or Welford's update. Many short rows: several a program.",
    ),
    Strategy(
        "split reduction",
        "a reduction (also the K of a product) is long and there are too few independent outputs "
        "to fill the device",
        "Cut it into parts for separate programs; combine partial results by a second small kernel "
        "or atomics on fp32 (split-K). Combining in fp32 keeps the precision.",
    ),
    Strategy(
        "persistent kernel",
        "tiles are many and short, the last wave is partly empty, or phases depend on each other",
        "Launch as many programs as fit on the device at once; each loops over tiles in a fixed "
        "order and overlaps the next one's loads with this one's epilogue.",
        _GPU,
        {"helion": '`pid_type="persistent_blocked"` or `"persistent_interleaved"`.'},
    ),
    Strategy(
        "software pipelining",
        "a loop over tiles waits for its loads",
        "Load tile i + 1 while computing tile i; mind the shared memory.",
        _GPU,
        {
            "triton": "`num_stages` 3 to 5 on loops with `tl.dot`.",
            "cuda": "`cp.async` or TMA with a ring of buffers.",
            "helion": "`range_num_stages` or `num_stages` 3 to 5 where loops have products.",
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
        "Give each thread 16 neighbouring bytes, and enough of them in flight.",
        details={
            "triton": "Larger contiguous blocks with aligned strides.",
            "helion": "Larger blocks of the innermost dimension.",
            "cuda": "`float4`, several a thread.",
            "cpp": "Unit-stride inner loops that the compiler vectorises.",
        },
    ),
    Strategy(
        "layout change",
        "accesses are strided, or a transposition or copy is a kernel of its own",
        "Pack weights once in the constructor into the order in which they are read; read "
        "transposed instead of transposing; use channels-last for convolutions; return strides "
        "that suit.",
    ),
    Strategy(
        "recomputation",
        "an intermediate result is large and cheap to make",
        "Recompute it where it is used instead of storing and loading it; store statistics only.",
    ),
    Strategy(
        "precision emulation",
        "fp32 products bound the time and the class is fp32",
        "Multiply high and low parts on tensor cores, in three products, which is as accurate as "
        "fp32: of TF32, or, where rows are scaled into fp16's range, of fp16 at twice the rate.",
        _GPU,
        {
            "triton": '`input_precision="tf32x3"` splits into TF32 by itself; fp16 you split.',
            "helion": '`dot_precision="tf32x3"` splits into TF32 by itself; fp16 you split.',
        },
    ),
    Strategy(
        "tuned configurations",
        "the structure is right and the time depends on tile sizes, warps and stages",
        "Choose tiles, warps and stages for these sizes among a few that differ.",
        _GPU,
        {
            "triton": "`@triton.autotune` over four to eight configurations, keyed by the sizes.",
            "cuda": "Template parameters.",
            "helion": "`configs=[...]` of four to eight in place of `config`.",
        },
    ),
    Strategy(
        "launch reduction",
        "kernels take microseconds each, and launching and Python take as long",
        "Do all in one or few launches, without views, copies or allocations between them; a "
        "CUDA graph (inputs copied in, outputs cloned) where many launches must stay.",
        _GPU,
    ),
    Strategy(
        "thread balance",
        "the cores share the work unevenly or regions are entered often",
        "Enter one parallel region over collapsed outer loops with equal parts for all threads; no "
        "two threads write the same cache line; where the work is small, one thread is faster.",
        ("cpp",),
    ),
    Strategy(
        "library with fused remainder",
        "a large product or convolution dominates, and a library does it near its bound",
        "Leave it to the library in the best layout and dtype for it, and put everything around it "
        "into one kernel before and one after.",
    ),
)


def strategies_for(language: str, generation: int = 0) -> tuple[Strategy, ...]:
    """Those that kernels in `language` can follow on a GPU of this generation, 0 for none."""
    fitting = (s for s in CATALOGUE if language in s.languages)
    return tuple(s for s in fitting if generation >= s.since.get(language, 0))


def find_strategy(reply: str) -> str | None:
    """The strategy a reply names first, None if it names none of the catalogue."""
    found = [
        (match.start(), -len(s.name), s.name)
        for s in CATALOGUE
        if (match := re.search(rf"\b{_words(s.name)}\b", reply, re.IGNORECASE))
    ]
    return min(found)[2] if found else None


def _words(name: str) -> str:
    """A pattern for a name, whatever stands between its words."""
    return r"[\s_-]+".join(map(re.escape, re.split(r"[ -]", name)))
