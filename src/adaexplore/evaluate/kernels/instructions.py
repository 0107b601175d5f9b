"""The instructions and the hash of a compiled kernel's machine code."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

_IN_PTX = {
    "tensor-core": r"\b(?:mma\.sync|wgmma\.mma_async|tcgen05\.mma)",
    "atomic": r"\b(?:atom|red)\.",
    "tma": r"\bcp\.async\.bulk\.tensor",
    "async-copy": r"\bcp\.async\.c[ag]\b",
}
_IN_TTGIR = {
    "dot": r"\b(?:tt\.dot|ttng\.warp_group_dot|ttng\.tc_gen5_mma)\b",
    "inline-asm": r"\btt\.elementwise_inline_asm\b",
    "reduction": r"\btt\.reduce\b",
    "scan": r"\btt\.scan\b",
}
_IN_SOURCE = {
    "tensor-core": r"\b(?:w?mma_sync|wgmma|tcgen05|warpgroup_mma|mma_v2|tcgen05_mma)\b|\bmma\.sync",
    "dot": r"\b(?:tl|hl)\.dot\b|\b(?:warpgroup_mma|mma_v2|tcgen05_mma|dot_fma)\b",
    "atomic": r"\b(?:tl|hl|t*gl)\.atomic_|\batomic[A-Z]\w+\s*\(|#pragma omp atomic|\bstd::atomic",
    "tma": r"\bmake_tensor_descriptor\b|\bTensorDescriptor\b|\bcp\.async\.bulk|\bCUtensorMap\b",
    "async-copy": r"\bcp\.async\.c[ag]\b|\b(?:__pipeline_)?memcpy_async\b|\basync_copy\.",
    "inline-asm": r"\binline_asm_elementwise\b|\b(?:__)?asm(?:__)?\s*(?:volatile|__volatile__|\()",
    "reduction": r"\b(?:tl|t*gl)\.(?:sum|max|min|reduce|argmax|argmin)\b|__shfl_|\breduction\(",
    "scan": r"\b(?:tl|t*gl)\.(?:cumsum|cumprod|associative_scan)\b",
    "vector": r"\b_mm(?:256|512)?_|\bat::vec\b|#pragma omp (?:\w+ )*simd|\bfloat4\b",
}

_DEBUG = re.compile(r"^\s*\.section\s+\.debug", re.MULTILINE)
_OPTIONS = (
    "num_warps",
    "num_ctas",
    "cluster_dims",
    "shared",
    "launch_cooperative_grid",
    "launch_pdl",
)


def of_kernel(asm: Mapping[str, str]) -> set[str]:
    """Return the instructions of a compiled Triton kernel, from its "ptx" and "ttgir".

    A "dot" is a product in the source, on whichever unit it is computed.
    """
    return of_ptx(asm["ptx"]) | _found(_IN_TTGIR, asm["ttgir"])


def of_ptx(ptx: str) -> set[str]:
    """Return the instructions of a kernel in PTX."""
    return _found(_IN_PTX, ptx)


def of_source(source: str) -> set[str]:
    """Return the instructions that a source names, in any language; for sources not compiled."""
    return _found(_IN_SOURCE, source)


def code_of(ptx: str, metadata: Mapping[str, Any]) -> str:
    """Return a sha256 of a kernel's PTX and of its launch options.

    The kernel's name and debug information are left out; `metadata` is Triton's.
    """
    lines = []
    for line in _DEBUG.split(ptx, maxsplit=1)[0].splitlines():
        code = line.partition("//")[0].strip()
        if code and not code.startswith((".loc", ".file", "$L__tmp", "$L__func")):
            lines.append(code)
    name = re.escape(metadata["name"])
    plain = re.sub(rf"\b{name}(?=\b|_param_)", "kernel", "\n".join(lines))
    options = [(option, metadata.get(option)) for option in _OPTIONS]
    return hashlib.sha256(f"{options}\n{plain}".encode()).hexdigest()


def _found(signs: Mapping[str, str], text: str) -> set[str]:
    return {name for name, sign in signs.items() if re.search(sign, text)}
