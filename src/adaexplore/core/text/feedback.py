"""Text of an evaluation: one line for a verdict, and a page for the proposer of the next kernel.

The command line, the report and prompts use the same text, made from the fields that
`evaluation_to_json` gives to programs.
"""

from __future__ import annotations

from collections.abc import Sequence

from adaexplore.core.text.units import amount, duration_us, interval, relative_error, share, speedup
from adaexplore.core.text.uses import describe_uses
from adaexplore.core.verdict.evaluation import (
    UNSEEN_US,
    Autotuning,
    Estimate,
    Evaluation,
    Failed,
    Fault,
    KernelUse,
    Launch,
    Mismatch,
    Passed,
    Profile,
    Roofline,
    Timing,
    WorkloadTiming,
    is_wide,
)
from adaexplore.core.verdict.labels import (
    ALGEBRA,
    CONSTANT_WEIGHTS,
    WAITS_BY_LEAVE,
    WAITS_FOR_BLOCKS,
)

LABELS = {
    "no-custom-kernel": "its source defines no kernel of its own",
    "own-kernels-not-launched": "the kernels in its source are never launched",
    "own-kernels-negligible": "its own kernels take hardly any of the device time",
    "decoy": "the result is the same without its own kernels",
    "library:cublas": "part of the work is cuBLAS's",
    "library:cudnn": "part of the work is cuDNN's",
    "library:aten": "part of the work is done by PyTorch's own kernels",
    "library:inductor": "part of the work is done by kernels that torch.compile makes at run time",
    ALGEBRA: "clearly beyond the roofline of the reference's work: it needs less work, by algebra",
    CONSTANT_WEIGHTS: "it does not follow other values of weights that begin as constants",
    WAITS_FOR_BLOCKS: "its blocks wait for other blocks of their launch, and hang where not all "
    "run at once: nothing is claimed unless it is launched cooperatively "
    "(launch_cooperative_grid=True in Triton, cudaLaunchCooperativeKernel in CUDA C++)",
    WAITS_BY_LEAVE: "its blocks wait for other blocks of their launch, which the user allows",
    "sets-global-flags": "it sets global flags of PyTorch's, which were put back",
}
"""Explanations of an evaluation's labels; a label that is missing here explains itself."""

_WAYS = {"eager": "PyTorch eager", "compile": "torch.compile"}
_KERNELS = 12
_NAME = 48


def verdict(evaluation: Evaluation) -> str:
    """Return the verdict in one line, or the reason of a failure in one line."""
    if isinstance(evaluation, Failed):
        return f"{evaluation.status}: {evaluation.reason}"
    if isinstance(evaluation.timing, Estimate):
        return f"correct, {evaluation.precision}-accurate, not measured: " + estimate(
            evaluation.timing
        )
    timing = evaluation.timing
    against = f"{baseline_name(timing.strongest)}, the strongest baseline"
    noise = "too noisy to tell: " if timing.is_too_noisy else ""
    noise = "measured under load: " if timing.is_under_load else noise
    parts = [
        f"{noise}{claim(timing)}, {evaluation.precision}-accurate",
        f"against {against}",
        f"{measured_speedup(timing)}95 % interval {interval(timing.speedup_ci)}",
    ]
    if evaluation.roofline:
        parts.append(f"{share(evaluation.roofline.share)} of the roofline")
    return ", ".join(parts)


def claim(timing: Timing) -> str:
    """Return the speedup that may be claimed, such as `1.32×`, or `≥ 1.01×` for a lower end."""
    if timing.is_under_load:
        return "no claim"
    at_least = "≥ " if timing.is_noisy or timing.is_unproven else ""
    return f"{at_least}{speedup(timing.claim)}"


def measured_speedup(timing: Timing) -> str:
    """Return `measured 1.60×, ` where a quiet measurement claims less; empty for any other."""
    measured = speedup(timing.speedup)
    return "" if timing.is_noisy or speedup(timing.claim) == measured else f"measured {measured}, "


def unproven(timing: Timing) -> str:
    """Return why a quiet measurement leaves a wide interval; empty for any other."""
    if not timing.is_unproven:
        return ""
    return f"calls of {duration_us(timing.time_us)}: {UNSEEN_US:g} µs of each are not proven"


def baseline_name(key: str) -> str:
    """Return the full name of a baseline: `compile-max-autotune` is torch.compile (max-autotune).

    An unknown key is its own name.
    """
    way, _, variant = key.partition("-")
    name = _WAYS.get(way)
    if name is None:
        return key
    return f"{name} ({variant})" if variant else name


def render(evaluation: Evaluation) -> str:
    """Return the whole evaluation as a few lines of plain text, the verdict first."""
    return "\n".join([without_autotunings(evaluation), *autotunings(evaluation)])


def without_autotunings(evaluation: Evaluation) -> str:
    """Return the evaluation as `render` does, without `autotunings`."""
    lines = [verdict(evaluation)]
    if isinstance(evaluation, Failed):
        match evaluation.feedback:
            case Fault() as fault:
                lines += _fault(fault)
            case Mismatch() as mismatch:
                lines += _mismatch(mismatch)
    else:
        lines += _passed(evaluation)
    return "\n".join(lines)


def autotunings(evaluation: Evaluation) -> list[str]:
    """Return a line for each search of a candidate's autotuners, the fastest first in each."""
    profile = evaluation.profile if isinstance(evaluation, Passed) else None
    return [_autotuning(each) for each in profile.autotunings] if profile else []


def _autotuning(search: Autotuning) -> str:
    given = f" for {search.arguments}" if search.arguments else ""
    tried = ", ".join(
        f"({', '.join(each.values)}) {duration_us(each.time_us)}" for each in search.configurations
    )
    slower = search.tried - search.refused - len(search.configurations)
    others = [f"{slower} slower"] if slower else []
    others += [f"{search.refused} could not run"] if search.refused else []
    more = f"; of {search.tried}, {' and '.join(others)}" if others else ""
    return (
        f"the autotuner of {search.kernel} tried{given} ({', '.join(search.parameters)}): "
        f"{tried}{more}"
    )


def estimate(guess: Estimate) -> str:
    """Return an estimate, labelled as such: `≈ 12.0 µs on sm_90, an estimate (memory-bound)`."""
    time = duration_us(guess.time_us)
    if guess.partial:
        return f"≥ {time} on {guess.target}, an estimate of a part ({guess.bound_by}-bound)"
    return f"≈ {time} on {guess.target}, an estimate ({guess.bound_by}-bound)"


def _passed(passed: Passed) -> list[str]:
    lines = [f"error {relative_error(passed.error)} against float64"]
    if passed.measured:
        lines += _times(passed.measured)
    lines += map(_workload, passed.workloads)
    if passed.roofline:
        lines.append(_roofline(passed.roofline))
    lines += [f"{label}: {LABELS[label]}" if label in LABELS else label for label in passed.labels]
    lines += [line for _, line in describe_uses(passed.uses)]
    if passed.profile:
        lines += _profile(passed.profile)
    return lines


def _times(timing: Timing) -> list[str]:
    baselines = ", ".join(f"{name} {duration_us(t)}" for name, t in timing.baselines_us.items())
    lines = [
        f"{duration_us(timing.time_us)} (median of {timing.samples} calls); {baselines}; "
        f"{quoted_speedups(timing)}"
    ]
    if timing.parent:
        parent = timing.parent
        lines.append(
            f"{speedup(parent.speedup)} over its parent candidate "
            f"(95 % interval {interval(parent.speedup_ci)})"
        )
    if timing.waited:
        lines.append(
            "other programs kept the processors busy: threads waited for "
            f"{share(timing.waited)} of the time, and the interval is that much wider; measure "
            "again on a quiet machine"
        )
    if timing.is_unproven:
        lines.append(f"{unproven(timing)}; the claim assumes that they were spent")
    elif is_wide(timing.speedup_ci):
        lines.append("the interval is wide: its lower end is all that may be claimed")
    if timing.conditions and timing.conditions.throttled:
        causes = ", ".join(timing.conditions.throttled)
        lines.append(f"measured while the device was throttled: {causes}")
    return lines


def quoted_speedups(timing: Timing) -> str:
    """Return the speedups that users quote: over eager, and over torch.compile's defaults."""
    over_eager = f"{speedup(timing.speedup_eager)} over eager"
    if timing.speedup_compile is None:
        return over_eager
    return f"{over_eager}, {speedup(timing.speedup_compile)} over torch.compile"


def _workload(workload: WorkloadTiming) -> str:
    """Return one line about one of several workloads."""
    timing = workload.timing
    if isinstance(timing, Estimate):
        return f"workload {workload.name}: {estimate(timing)}"
    line = (
        f"workload {workload.name}: {speedup(timing.speedup)} "
        f"(95 % interval {interval(timing.speedup_ci)}), {duration_us(timing.time_us)}"
    )
    if workload.roofline:
        line += f", {share(workload.roofline.share)} of the roofline"
    return line


def _roofline(roofline: Roofline) -> str:
    achieved = [amount(roofline.bytes_per_s, "B/s")]
    if roofline.flops_per_s:
        achieved.append(amount(roofline.flops_per_s, "FLOP/s"))
    return (
        f"roofline: at least {duration_us(roofline.floor_us)} ({roofline.bound_by}); "
        f"it achieves {', '.join(achieved)}"
    )


def _profile(profile: Profile) -> list[str]:
    """Return a line for each kernel: its share and time of a call, and its launch."""
    shown = profile.kernels[:_KERNELS]
    head = ("share", "per call", "launches", "whose", "kernel", "(of one call, profiled apart)")
    rows = [head, *(_kernel(use, profile.device_us) for use in shown)]
    rest = len(profile.kernels) - len(shown)
    more = [f"and {rest} more"] if rest else []
    return [*_columns(rows), *more]


def _kernel(use: KernelUse, device_us: float) -> tuple[str, ...]:
    name = use.name if len(use.name) <= _NAME else f"{use.name[: _NAME - 1]}…"
    return (
        share(use.time_us / device_us),
        duration_us(use.time_us),
        f"{use.launches:g}",
        use.origin,
        name,
        _launch(use.launch) if use.launch else "",
    )


def _launch(launch: Launch) -> str:
    parts = [
        f"grid {'x'.join(map(str, launch.grid))}",
        f"block {'x'.join(map(str, launch.block))}",
        f"{launch.registers} registers",
    ]
    if launch.spills_bytes:
        parts.append(f"{launch.spills_bytes} B spilled")
    if launch.shared_bytes:
        parts.append(f"{amount(launch.shared_bytes, 'B')} shared")
    if launch.occupancy:  # unknown for some kernels of libraries
        parts.append(f"occupancy {share(launch.occupancy)}")
    return ", ".join(parts)


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the rows with aligned columns, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    numbers = 3
    return [
        "  ".join(
            cell.rjust(width) if i < numbers else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _fault(fault: Fault) -> list[str]:
    if not fault.source_line:
        return []
    place = f"line {fault.line}" if fault.line else fault.frame
    inside = f" in {fault.frame}" if fault.line and fault.frame else ""
    return [f"{place}{inside}: {fault.source_line}"]


def _mismatch(found: Mismatch) -> list[str]:
    index = ", ".join(map(str, found.first_index))
    what = "first wrong" if found.share else "worst"
    lines = [
        f"{found.output} on the inputs {found.inputs!r}: {share(found.share)} of its elements are "
        f"wrong; the {what} is [{index}]: got {found.got:.6g}, expected {found.expected:.6g}"
    ]
    if found.nans:
        lines.append(f"{found.nans} elements are NaN and should not be")
    if found.pattern:
        lines.append(f"pattern: {found.pattern}")
    return lines
