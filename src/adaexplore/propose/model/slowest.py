"""The kernel that takes most of a candidate's time, and what limits it, as small steps are told."""

from __future__ import annotations

import math

from adaexplore.core.problem import Precision
from adaexplore.core.text.units import amount, duration_us, plural, share
from adaexplore.core.verdict.evaluation import Evaluation, KernelUse, Launch, Passed
from adaexplore.core.verdict.facts import ReferenceRoofline
from adaexplore.propose.model.hardware import Hardware

_WARP = 32
_REGISTERS = 65536  # of a multiprocessor
_REGISTER_UNIT = 8  # of a thread: registers are given to warps in units of 256
_RESERVED_BYTES = 1024  # of shared memory, for each block
_KERNELS = 0.7  # of a call's time: if kernels take less, launching may take the rest


def slowest_kernel(
    evaluation: Evaluation,
    roofline: ReferenceRoofline | None,
    hardware: Hardware,
    precision: Precision,
) -> str:
    """Return two lines at most: the slowest kernel's share and rates, and its occupancy's limit.

    Empty for a candidate without a profile of a GPU. Rates are shares of those that `roofline`
    measured. The profile is of one workload: what is known of a whole call is told if it is the
    only one.
    """
    if not isinstance(evaluation, Passed) or not hardware.is_gpu:
        return ""
    profile, timing = evaluation.profile, evaluation.measured
    if profile is None or not profile.kernels:
        return ""
    use, alone = profile.kernels[0], len(evaluation.workloads) < 2
    first = [
        f"Slowest kernel: `{use.name}`, {share(use.time_us / profile.device_us)} of the kernels' "
        f"time ({duration_us(use.time_us)}, caches warm)"
    ]
    if alone and timing and profile.device_us < _KERNELS * timing.time_us:
        part = share(profile.device_us / timing.time_us)
        first.append(f"all kernels take {part} of a call; gaps and cold caches take the rest")
    if roofline and use.given_bytes:
        rate = use.given_bytes / use.time_us * 1e6
        part = share(rate / roofline.bytes_per_s)
        first.append(f"{part} of the bandwidth if it moves each tensor that it gets once")
    if roofline and alone and (part := _of_products(use, roofline, precision)):
        first.append(f"{part} of the FLOP/s if all of the reference's products are in it")
    second = _occupancy(use.launch, hardware) if use.launch else ""
    return "\n".join(f"{line}." for line in ("; ".join(first), second) if line)


def _of_products(use: KernelUse, roofline: ReferenceRoofline, precision: Precision) -> str:
    """Return the share of the measured FLOP/s; empty without products, or if they do not fit."""
    peak = roofline.flops_per_s.get(precision)
    part = roofline.flops / use.time_us * 1e6 / peak if peak else 0.0
    return share(part) if 0 < part <= 1 else ""


def _occupancy(launch: Launch, hardware: Hardware) -> str:
    """Return what keeps more of its blocks from a multiprocessor; empty if threads do."""
    limits = hardware.limits
    if limits is None or not hardware.multiprocessors:
        return ""
    grid, warps = math.prod(launch.grid), math.ceil(math.prod(launch.block) / _WARP)
    registers = math.ceil(launch.registers / _REGISTER_UNIT) * _REGISTER_UNIT
    most_bytes = limits.shared_bytes + _RESERVED_BYTES
    shared = f"shared memory ({amount(launch.shared_bytes, 'B')} a block)"
    fitting = {
        "": limits.threads // (_WARP * warps),
        "the number of blocks": limits.blocks,
        f"registers ({launch.registers} a thread)": _REGISTERS // max(_WARP * warps * registers, 1),
        shared: most_bytes // (launch.shared_bytes + _RESERVED_BYTES),
        f"its grid ({grid} blocks)": math.ceil(grid / hardware.multiprocessors),
    }
    resource, blocks = min(fitting.items(), key=lambda pair: pair[1])
    if not resource:
        return ""
    return (
        f"At most {blocks * warps} of the {limits.threads // _WARP} warps of a multiprocessor are "
        f"its own ({plural(blocks, 'block')}), limited by {resource}"
    )
