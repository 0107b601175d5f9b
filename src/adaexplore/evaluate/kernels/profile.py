"""What a candidate spends its time on, and whose kernels those are.

The profile is taken in the candidate's process (see `profiler`), so it advises and labels; that
own kernels matter to the result is tested by leaving them out (see `verdict`).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adaexplore.core.evaluation import KernelUse, Launch, Origin, Profile
from adaexplore.core.problem import Language
from adaexplore.evaluate.kernels.profiler import OUTSIDE
from adaexplore.languages import DIALECTS

MOST_KERNELS = 24
"""Kernels a profile lists; the times of the rest are in its sums."""

LIBRARY_SHARE = 0.1
"""A library that takes at least this share of the device time is labelled."""

DECOY_SHARE = 0.02
"""Own kernels that take less than this beside a library do not do the work."""

_NAME_CHARS = 200
_PATTERNS: tuple[tuple[Origin, re.Pattern[str]], ...] = (
    ("cudnn", re.compile(r"cudnn|implicit_convolve|winograd|fft2d_|_(fprop|dgrad|wgrad)_")),
    ("aten", re.compile(r"\bat::|at_cuda_detail|^aten::|\bc10::|pytorch_flash|fmha_cutlass")),
    (
        "cublas",
        re.compile(r"cublas|^nvjet_|xmma_gemm|gemmk1|gemvNSP|^(void )?cutlass|splitKreduce|sgemm"),
    ),
    ("cublas", re.compile(r"^(ampere|volta|turing|hopper|sm\d+)_\w*gemm|\bgemv2[NT]_|gemvx::")),
    ("inductor", re.compile(r"^triton_(poi|red|per|for|tem|mm|spl)_|^triton_\w*fused_")),
)
_CPU_PATTERNS: tuple[tuple[Origin, re.Pattern[str]], ...] = (
    ("custom", re.compile(re.escape(OUTSIDE))),
    ("aten", re.compile(r"^(aten|mkldnn|onednn|quantized)::")),
    ("inductor", re.compile(r"^inductor::|torch_compile|CompiledFunction")),
)


@dataclass(frozen=True, slots=True)
class Found:
    """A profile, and what a reader must know of it."""

    profile: Profile
    labels: tuple[str, ...]


def read_profile(reply: Mapping[str, Any], source: str, language: Language) -> Found | None:
    """The profile that the candidate's process reports; None where that makes no sense.

    `source` tells which kernels are the candidate's own. A kernel that TorchInductor generated
    counts as own where its text stands in the source, as in a compiler's proposal.
    """
    calls, kernels = reply.get("calls"), reply.get("kernels")
    if not isinstance(calls, int) or calls < 1 or not isinstance(kernels, list):
        return None
    triton = {t["name"]: t for t in reply.get("triton", ()) if _is_triton(t)}
    own = own_kernels(source) | {name for name, t in triton.items() if t["own"]}
    on_cpu = not DIALECTS[language].on_gpu
    uses = [
        _use(k, calls, triton, _CPU_PATTERNS if on_cpu else _PATTERNS, own)
        for k in kernels
        if _is_kernel(k)
    ]
    total = sum(use.time_us for use in uses)
    if total <= 0:
        return None
    uses.sort(key=lambda use: use.time_us, reverse=True)
    share = sum(use.time_us for use in uses if use.origin == "custom") / total
    profile = Profile(tuple(uses[:MOST_KERNELS]), total, share)
    return Found(profile, () if on_cpu else _labels(uses, total, share, own))


def own_kernels(source: str) -> set[str]:
    """Names of the GPU kernels a source defines, in any of the languages."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    return set().union(*(dialect.own_kernels(tree) for dialect in DIALECTS.values()))


def origin_of(
    name: str, own: set[str], patterns: Sequence[tuple[Origin, re.Pattern[str]]] = _PATTERNS
) -> Origin:
    """Whose kernel a name is. `own` holds the plain names of the candidate's kernels."""
    plain = re.match(r"(?:void\s+)?((?:(?:\w+|\(anonymous namespace\))::)*)(\w+)", name)
    if name in own or (plain and plain[2] in own and not plain[1].startswith(("at::", "c10::"))):
        return "custom"
    return next((origin for origin, pattern in patterns if pattern.search(name)), "other")


def _labels(
    uses: Sequence[KernelUse], total: float, share: float, own: set[str]
) -> tuple[str, ...]:
    labels = []
    if not any(use.origin == "custom" for use in uses):
        labels.append("own-kernels-not-launched" if own else "no-custom-kernel")
    elif share < DECOY_SHARE:
        labels.append("own-kernels-negligible")
    shares = dict.fromkeys(("cublas", "cudnn", "aten", "inductor"), 0.0)
    for use in uses:
        if use.origin in shares:
            shares[use.origin] += use.time_us / total
    labels += [f"library:{name}" for name, taken in shares.items() if taken >= LIBRARY_SHARE]
    return tuple(labels)


def _use(
    kernel: Mapping[str, Any],
    calls: int,
    triton: Mapping[str, Mapping[str, Any]],
    patterns: Sequence[tuple[Origin, re.Pattern[str]]],
    own: set[str],
) -> KernelUse:
    name = kernel["name"]
    spills = triton[name]["spills_bytes"] if name in triton else None
    return KernelUse(
        name=name[:_NAME_CHARS],
        origin=origin_of(name, own, patterns),
        launches=kernel["launches"] / calls,
        time_us=kernel["time_us"] / calls,
        launch=_launch(kernel["launch"], spills),
    )


def _launch(data: Any, spills: int | None) -> Launch | None:
    match data:
        case {
            "grid": [*grid],
            "block": [*block],
            "registers": int(registers),
            "shared_bytes": int(shared),
            "occupancy": occupancy,
        } if all(isinstance(n, int) for n in (*grid, *block)):
            known = float(occupancy) if isinstance(occupancy, int | float) else None
            return Launch(tuple(grid), tuple(block), registers, shared, known, spills)
    return None


def _is_kernel(kernel: Any) -> bool:
    match kernel:
        case {"name": str(), "launches": int(), "time_us": int() | float() as time_us, "launch": _}:
            return math.isfinite(time_us) and time_us >= 0
    return False


def _is_triton(kernel: Any) -> bool:
    match kernel:
        case {"name": str(), "own": bool(), "spills_bytes": int() | None}:
            return True
    return False
