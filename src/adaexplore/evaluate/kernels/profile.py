"""The profile of a candidate: the share of each kernel, and its origin.

The profile is taken in the candidate's process (see `profiler`), so it only advises and labels. A
run without the candidate's own kernels tests that they matter to the result (see
`judge.diagnosis.profile`).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adaexplore.core.problem import Language
from adaexplore.core.verdict.evaluation import KernelUse, Launch, Origin, Profile
from adaexplore.evaluate.kernels.autotuned import read_autotunings
from adaexplore.evaluate.kernels.profiler import OUTSIDE
from adaexplore.evaluate.wire.kernel_messages import (
    LaunchForm,
    Profiled,
    ProfiledKernel,
    ProfiledTriton,
)
from adaexplore.languages import DIALECTS

MAX_KERNELS = 24
"""The number of kernels that a profile lists; its sums include the times of all kernels."""

LIBRARY_SHARE = 0.1
"""The least share of the device time for which a library gets a label."""

DECOY_SHARE = 0.02
"""Own kernels with a smaller share of the time, beside a library, do not do the work."""

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
class LabelledProfile:
    """A profile with its labels."""

    profile: Profile
    labels: tuple[str, ...]


def read_profile(reply: Profiled, source: str, language: Language) -> LabelledProfile | None:
    """Return the profile that the candidate's process reports; None if it contains no time.

    The candidate's own kernels are found in `source`. A kernel that TorchInductor generated counts
    as own if its text stands in the source, as in a compiler's proposal.
    """
    if reply.calls < 1:
        return None
    triton = {kernel.name: kernel for kernel in reply.triton}
    own = own_kernels(source) | {name for name, kernel in triton.items() if kernel.own}
    on_cpu = not DIALECTS[language].on_gpu
    uses = [
        _use(kernel, reply.calls, triton, _CPU_PATTERNS if on_cpu else _PATTERNS, own)
        for kernel in reply.kernels
        if math.isfinite(kernel.time_us) and kernel.time_us >= 0
    ]
    total = sum(use.time_us for use in uses)
    if not 0 < total < math.inf:
        return None
    uses.sort(key=lambda use: use.time_us, reverse=True)
    share = sum(use.time_us for use in uses if use.origin == "custom") / total
    profile = Profile(tuple(uses[:MAX_KERNELS]), total, share, read_autotunings(reply.tuned))
    return LabelledProfile(profile, () if on_cpu else _labels(uses, total, share, own))


def own_kernels(source: str) -> set[str]:
    """Return the names of the GPU kernels that a source defines, in any of the languages.

    A name that ends in "*" is the beginning of one.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    return set().union(*(dialect.own_kernels(tree) for dialect in DIALECTS.values()))


def origin_of(
    name: str, own: set[str], patterns: Sequence[tuple[Origin, re.Pattern[str]]] = _PATTERNS
) -> Origin:
    """Return the origin of a kernel; `own` holds the plain names of the candidate's kernels.

    A name in `own` that ends in "*" is the beginning of one.
    """
    if any(one.endswith("*") and name.startswith(one[:-1]) for one in own):
        return "custom"
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
    kernel: ProfiledKernel,
    calls: int,
    triton: Mapping[str, ProfiledTriton],
    patterns: Sequence[tuple[Origin, re.Pattern[str]]],
    own: set[str],
) -> KernelUse:
    name = kernel.name
    known = triton.get(name, ProfiledTriton(name, own=False, spills_bytes=None))
    all_seen = known.launches == kernel.launches  # Triton does not see those of a CUDA graph
    return KernelUse(
        name=name[:_NAME_CHARS],
        origin=origin_of(name, own, patterns),
        launches=kernel.launches / calls,
        time_us=kernel.time_us / calls,
        launch=_launch(kernel.launch, known.spills_bytes),
        given_bytes=known.given_bytes / calls if all_seen else None,
    )


def _launch(seen: LaunchForm | None, spills: int | None) -> Launch | None:
    if seen is None:
        return None
    return Launch(seen.grid, seen.block, seen.registers, seen.shared_bytes, seen.occupancy, spills)
