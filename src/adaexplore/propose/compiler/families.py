"""The choices of the compiler proposer: option families for large steps, knobs for small ones.

Knobs are plain JSON. `KNOBS` explains the names with a meaning of their own; any other name is an
option of Inductor. The order of the families was measured: on two cores of an AMD EPYC (Zen 4) for
the CPU, and from the figures of an H200 for the GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adaexplore.core.problem import Precision

Knobs = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Family:
    """A set of knobs, tried on graphs with every feature in `needs`.

    `change` describes the difference from the parent's knobs for the note; it is empty if all knobs
    are new.
    """

    name: str
    knobs: Knobs = field(default_factory=dict)
    needs: frozenset[str] = frozenset()
    change: str = ""


@dataclass(frozen=True, slots=True)
class Knob:
    """Values to try, the default first, on graphs with every feature in `needs`."""

    values: tuple[Any, ...]
    needs: frozenset[str] = frozenset()


def _needs(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FAST = {
    "fast_exp": True,
    "reciprocal": True,
    "cpp.use_two_step_variance_threshold": 2**40,
}
_PACKED = {"fold": True, "pack": "onednn", **_FAST}

_CPU_FAMILIES = (
    Family("packed", _PACKED, _needs("weights gemm")),
    Family("fast-math", _FAST),
    Family("default"),
    Family("fold", {"fold": True, **_FAST}, _needs("weights many")),
    Family("layout", {**_PACKED, "layout_optimization": False}, _needs("weights conv")),
    Family("workspace", {**_PACKED, "workspace": True}, _needs("many")),
    Family("mkl", {**_PACKED, "pack": "mkl"}, _needs("weights matmul")),
    Family("decomposed-tanh", {**_FAST, "cpp.use_decompose_tanh": True}, _needs("tanh")),
    Family("autotune", {**_PACKED, "max_autotune": True}, _needs("weights matmul")),
    Family("unfused", {**_PACKED, "max_fusion_size": 1}, _needs("many")),
    Family("small-chunks", {**_PACKED, "cpp.min_chunk_size": 64}, _needs("many")),
)

_CPU_KNOBS: dict[str, Knob] = {
    "fold": Knob((False, True), _needs("weights")),
    "pack": Knob(("none", "onednn", "mkl"), _needs("weights gemm")),
    "fast_exp": Knob((False, True), _needs("exp")),
    "reciprocal": Knob((False, True)),
    "workspace": Knob((False, True), _needs("many")),
    "layout_optimization": Knob((True, False), _needs("conv")),
    "conv_1x1_as_mm": Knob((False, True), _needs("conv1x1")),
    "cpp.use_two_step_variance_threshold": Knob((1024, 1, 2**40), _needs("variance")),
    "cpp.min_chunk_size": Knob((512, 64, 4096)),
    "cpp.enable_tiling_heuristics": Knob((True, False)),
    "cpp.max_horizontal_fusion_size": Knob((16, 1, 64), _needs("many")),
    "cpp.enable_concat_linear": Knob((False, True), _needs("weights matmul many")),
    "realize_cpu_opcount_threshold": Knob((50, 10, 500), _needs("many")),
    "max_fusion_size": Knob((64, 1, 8), _needs("many")),
    "inplace_buffers": Knob((True, False), _needs("many")),
    "permute_fusion": Knob((False, True), _needs("matmul many")),
    "split_reductions": Knob((True, False), _needs("reduction")),
    "online_softmax": Knob((True, False), _needs("exp reduction")),
}

_AUTOTUNE = {"max_autotune": True, "coordinate_descent_tuning": True}

_CUDA_FAMILIES = (
    Family("default"),
    Family("fold", {"fold": True}, _needs("weights many")),
    Family("autotune", {"fold": True, **_AUTOTUNE}, _needs("gemm")),
    Family("tuned", {"fold": True, "coordinate_descent_tuning": True}),
    Family("layout", {"fold": True, "force_layout_optimization": True}, _needs("conv")),
    Family("no-layout", {"fold": True, "layout_optimization": False}, _needs("conv")),
    Family("workspace", {"fold": True, "workspace": True}, _needs("many")),
    Family("cooperative", {"triton.cooperative_reductions": True}, _needs("reduction")),
    Family("multi-pass", {"triton.persistent_reductions": False}, _needs("reduction")),
    Family("unsplit", {"split_reductions": False}, _needs("reduction")),
    Family("fusion", {"fold": True, "aggressive_fusion": True}, _needs("many")),
    Family("conv-as-mm", {"fold": True, "conv_1x1_as_mm": True, **_AUTOTUNE}, _needs("conv1x1")),
    Family("combined", {"combo_kernels": True, "benchmark_combo_kernel": True}, _needs("many")),
    Family("decomposed", {"decompose_mem_bound_mm": True}, _needs("matmul")),
)

_EMULATED = Family(
    "emulated",
    {"fold": True, "max_autotune": True, "dot_precision": "tf32x3"},
    _needs("gemm"),
)
"""fp32 products on tensor cores in three parts: faster than strict cuBLAS, and more accurate."""

_CUDA_KNOBS: dict[str, Knob] = {
    "fold": Knob((False, True), _needs("weights")),
    "workspace": Knob((False, True), _needs("many")),
    "coordinate_descent_tuning": Knob((False, True)),
    "max_autotune": Knob((False, True), _needs("gemm")),
    "layout_optimization": Knob((True, False), _needs("conv")),
    "conv_1x1_as_mm": Knob((False, True), _needs("conv1x1")),
    "epilogue_fusion": Knob((True, False), _needs("gemm many")),
    "shape_padding": Knob((True, False), _needs("matmul")),
    "permute_fusion": Knob((False, True), _needs("matmul many")),
    "split_reductions": Knob((True, False), _needs("reduction")),
    "triton.persistent_reductions": Knob((True, False), _needs("reduction")),
    "triton.cooperative_reductions": Knob((False, True), _needs("reduction")),
    "unroll_reductions_threshold": Knob((8, 1, 32), _needs("reduction")),
    "online_softmax": Knob((True, False), _needs("exp reduction")),
    "realize_opcount_threshold": Knob((30, 8, 200), _needs("many")),
    "max_fusion_size": Knob((64, 4, 256), _needs("many")),
    "loop_ordering_after_fusion": Knob((True, False), _needs("many")),
    "triton.max_tiles": Knob((None, 1, 3), _needs("many")),
}


def families(device: str, precision: Precision) -> list[Family]:
    """Return the families for a device (`"cpu"` or `"cuda:<index>"`) and a class, best first."""
    if not device.startswith("cuda"):
        found = list(_CPU_FAMILIES)
    elif precision == "fp32":
        found = [_EMULATED, *_CUDA_FAMILIES]
    else:
        found = list(_CUDA_FAMILIES)
    if precision != "half":
        return found
    halves = [Family(f"half-{f.name}", {**f.knobs, "autocast": True}, f.needs) for f in found]
    return [*halves, *found]


def knobs(device: str, precision: Precision) -> dict[str, Knob]:
    """Return the knobs that a small step may change."""
    found = dict(_CUDA_KNOBS if device.startswith("cuda") else _CPU_KNOBS)
    if device.startswith("cuda") and precision == "fp32":
        found["dot_precision"] = Knob(("", "tf32x3", "bf16x3"), _needs("gemm"))
    if precision == "half":
        found["autocast"] = Knob((False, True))
    return found


OWN = frozenset(
    {"fold", "pack", "fast_exp", "reciprocal", "workspace", "autocast", "dot_precision"}
)
"""Knobs that are not options of Inductor."""


def effective(chosen: Knobs) -> dict[str, Any]:
    """Return the knobs without those that have no effect: packed weights are folded first."""
    if chosen.get("pack", "none") != "none" and not chosen.get("fold"):
        return {key: value for key, value in chosen.items() if key != "pack"}
    return dict(chosen)
