"""An evaluation: passed with its measurements, or why not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from adaexplore.core.problem import Precision
from adaexplore.core.verdict.descriptor import Descriptor
from adaexplore.core.verdict.uses import Use

FailureStatus = Literal[
    "compile_error",
    "runtime_error",
    "timeout",
    "out_of_memory",
    "wrong_output",
    "rejected",
    "infra_error",
    "reported",
    "not_run",
]
Status = Literal["passed"] | FailureStatus

QUOTED = ("eager", "compile")
"""The baselines that users quote: PyTorch as it is, and `torch.compile` with its defaults."""

WIDE = 1.25
"""The ratio of an interval's ends from which it is wide."""

UNSEEN_US = 3.0
"""Microseconds of a call on a GPU which a candidate that forges its clock may hide."""

NOT_COMPILED: frozenset[str] = frozenset({"compile_error", "rejected", "infra_error"})
"""Statuses of a candidate that never ran."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The state of the device during a measurement, at its worst.

    `load` is the machine's load average, `clock_mhz` the lowest clock and `temperature_c` the
    highest in degrees Celsius, both None where nobody tells. `throttled` says what held it back.
    """

    load: float
    clock_mhz: int | None = None
    temperature_c: int | None = None
    throttled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Paired:
    """Another candidate measured in the same rounds: `speedup` is over it, with 95 % interval."""

    time_us: float
    speedup: float
    speedup_ci: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Timing:
    """Measured times, all from one interleaved session.

    `time_us` is the median of `samples` calls in microseconds and `time_ci_us` its 95 % interval.
    `baselines_us` holds the medians of the baselines that were timed beside it, in the requested
    precision class. `speedup` is like for like: the baseline `strongest` over the candidate, paired
    round by round (no other has a smaller speedup), with the interval `speedup_ci` that claims are
    made by. `speedup_eager` is over eager and `speedup_compile` over `torch.compile` with its
    defaults, as papers quote; the latter is None where that is no baseline. `parent` compares with
    the candidate this one was made from, where that was asked for. `waited` is 0, or the share of
    the time for which other programs kept the party that waited most from a processor; then the
    interval is that much wider. `allowance` has the factors by which the ends of `speedup_ci` are
    further out than those of the 95 % interval of the noise: the upper one for what the clocks of
    two processes differ by, the lower one for what a candidate could hide as well. Where no
    strongest baseline is named, it is the one with the smallest median.
    """

    time_us: float
    time_ci_us: tuple[float, float]
    baselines_us: Mapping[str, float]
    speedup: float
    speedup_ci: tuple[float, float]
    speedup_eager: float
    samples: int
    parent: Paired | None = None
    conditions: Conditions | None = None
    speedup_compile: float | None = None
    waited: float = 0.0
    allowance: tuple[float, float] = (1.0, 1.0)
    strongest: str = ""

    def __post_init__(self) -> None:
        """Name the strongest baseline."""
        if not self.strongest:
            fastest = min(self.baselines_us, key=lambda name: self.baselines_us[name], default="")
            object.__setattr__(self, "strongest", fastest)

    @property
    def noise_ci(self) -> tuple[float, float]:
        """The 95 % interval of the speedup by the noise alone, which candidates are compared by."""
        (low, high), (below, above) = self.speedup_ci, self.allowance
        return low / below, high / above

    @property
    def is_noisy(self) -> bool:
        """True where the interval of the noise is wide, or the load of other programs is in it."""
        return is_wide(self.noise_ci) or self.waited > 0

    @property
    def is_unproven(self) -> bool:
        """True where calls are so short that a quiet measurement leaves a wide interval."""
        return not self.is_noisy and is_wide(self.speedup_ci)

    @property
    def is_under_load(self) -> bool:
        """True for a gain that was measured while other programs kept processors busy."""
        return self.waited > 0 and self.speedup_ci[0] > 1

    @property
    def is_too_noisy(self) -> bool:
        """True where noise or load leaves open if the candidate is faster or slower."""
        low, high = self.speedup_ci
        return self.is_under_load or (self.is_noisy and low <= 1 <= high)

    @property
    def at_least(self) -> float:
        """The speedup by which candidates rank: the lower end of the noise where there is much."""
        return self.noise_ci[0] if self.is_noisy else self.speedup

    @property
    def claim(self) -> float:
        """The speedup that may be claimed: what candidates rank by, less what a candidate may hide.

        No gain that was measured under load: how much that did to each party is known too little.
        """
        return 1.0 if self.is_under_load else self.at_least * self.allowance[0]


def is_wide(interval: tuple[float, float]) -> bool:
    """Return True for an interval of a ratio that says little."""
    low, high = interval
    return high > WIDE * low


BoundBy = Literal["memory", "compute", "overhead"]
Origin = Literal["custom", "cublas", "cudnn", "aten", "inductor", "other"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A roofline estimate for a candidate that was verified without a GPU; never a speedup.

    `time_us` is microseconds on `target` (such as "sm_90"), `bound_by` what they are spent on.
    `partial` marks one for which not all the work was seen: it is no less than the least time of
    the problem, and may be far below the truth.
    """

    time_us: float
    bound_by: BoundBy
    target: str
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """A GPU kernel's launch and resources, as the profiler saw them first.

    `grid` is counted in blocks and `block` in threads; `registers` is per thread, `shared_bytes`
    per block. `occupancy` is the share of a multiprocessor's warps that fit, `spills_bytes` per
    thread what registers did not hold; both None where nobody says.
    """

    grid: tuple[int, ...]
    block: tuple[int, ...]
    registers: int
    shared_bytes: int
    occupancy: float | None = None
    spills_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class KernelUse:
    """One kernel's share (on the CPU: one operator's) of a call of the candidate.

    `launches` and `time_us` are per call, the latter over all its launches. `origin` "custom" is
    the candidate's own source. `launch` is None for what is no GPU kernel. `given_bytes` are those
    of the tensors that a call's launches get, each counted once a launch; None if not all are seen.
    """

    name: str
    origin: Origin
    launches: float
    time_us: float
    launch: Launch | None = None
    given_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class TriedConfiguration:
    """A configuration that an autotuner timed: the values of its parameters, and microseconds."""

    values: tuple[str, ...]
    time_us: float


@dataclass(frozen=True, slots=True)
class Autotuning:
    """A kernel's configurations that an autotuner timed, fastest first.

    `arguments` names the arguments that it tuned for, such as "M=1024"; `parameters` names the
    values of a configuration. It tried `tried`, of which `refused` could not run. The times are the
    autotuner's own, each kernel alone.
    """

    kernel: str
    arguments: str
    parameters: tuple[str, ...]
    configurations: tuple[TriedConfiguration, ...]
    tried: int
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Profile:
    """The time of a call by kernel, most expensive first.

    `device_us` is the time of all kernels per call, listed or not, `custom_share` the candidate's
    own kernels' share of it. `autotunings` are the searches of its autotuners. All of it comes from
    the candidate's process.
    """

    kernels: tuple[KernelUse, ...]
    device_us: float
    custom_share: float
    autotunings: tuple[Autotuning, ...] = ()


@dataclass(frozen=True, slots=True)
class Roofline:
    """The distance of a measured candidate from the limit of the device.

    `floor_us` is the least time of the problem (see `evaluate.roofline`), `bound_by` what sets it
    and `share` its ratio to the measured time. `bytes_per_s` and `flops_per_s` are the problem's
    least traffic and its operations over the measured time.
    """

    floor_us: float
    bound_by: BoundBy
    share: float
    bytes_per_s: float
    flops_per_s: float


@dataclass(frozen=True, slots=True)
class WorkloadTiming:
    """The timing of one workload; `roofline` is None where the device gives none."""

    name: str
    timing: Timing | Estimate
    roofline: Roofline | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """An exception or compile error and where in the candidate's source it arose.

    `line` counts from 1 and `source_line` is its text; 0 and empty where the source has no part in
    it. `frame` names the function or kernel.
    """

    type: str
    message: str
    line: int = 0
    source_line: str = ""
    frame: str = ""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The difference of an output from the truth.

    `output` is its place in the returned value and `inputs` the input set. `share` of the elements
    are wrong; `first_index` is the first of them, where `got` stands instead of `expected`. `nans`
    counts NaN where there should be none. `pattern` says in words what the wrong elements have in
    common, empty where nothing was recognised.
    """

    output: str
    inputs: str
    share: float
    first_index: tuple[int, ...]
    got: float
    expected: float
    nans: int
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of an evaluation: wall time, and time the device was held.

    `took_s` has the parts of the wall time by what the candidate was doing, `WAITING` for the
    device among them; it is empty where nobody measured them.
    """

    wall_s: float = 0.0
    device_s: float = 0.0
    took_s: Mapping[str, float] = field(default_factory=dict, hash=False)

    @staticmethod
    def total(costs: Iterable[Cost]) -> Cost:
        """Return the sum of costs."""
        wall_s = device_s = 0.0
        took_s: dict[str, float] = {}
        for cost in costs:
            wall_s += cost.wall_s
            device_s += cost.device_s
            for what, seconds in cost.took_s.items():
                took_s[what] = took_s.get(what, 0.0) + seconds
        return Cost(wall_s, device_s, took_s)


WAITING = "waiting for the device"
"""The part of an evaluation's wall time in which others had the device."""


@dataclass(frozen=True, slots=True)
class TakenOver:
    """The origin of a verdict from a shared cache: the machine, and seconds since the epoch."""

    machine: str
    at: float


@dataclass(frozen=True, slots=True)
class PublishedVerdict:
    """Verdict of the published judge (`evaluate.published`), which decides nothing here.

    `why` is empty for a correct candidate, which alone has a time. Times are in microseconds.
    """

    why: str
    time_us: float | None = None
    eager_us: float | None = None

    @property
    def speedup(self) -> float | None:
        """The speedup over eager; None for a wrong candidate."""
        return self.eager_us / self.time_us if self.eager_us and self.time_us else None


@dataclass(frozen=True, slots=True)
class Passed:
    """A correct candidate.

    `precision` is the strictest class it reaches; `error` is the largest ‖out − ref64‖ / ‖ref64‖
    over all verification inputs (for integer and boolean outputs, the share of unequal elements).
    `absolute_error` is the largest of one element, None where an older release evaluated it.
    `timing` is an `Estimate` where no device was there to measure on. `labels` are what a reader
    must know beside the figures, such as "no-custom-kernel". `profile` and `roofline` are None
    where the device or its profiler gives none, `descriptor` where an older release evaluated it.
    `uses` are those outside the judge; empty where none was tried. `published` is None where the
    published judge was not asked. `taken_over` is None where it was judged in this session.
    """

    precision: Precision
    error: float
    timing: Timing | Estimate
    cost: Cost = field(default_factory=Cost)
    detail: str = ""
    labels: tuple[str, ...] = ()
    profile: Profile | None = None
    roofline: Roofline | None = None
    descriptor: Descriptor | None = None
    workloads: tuple[WorkloadTiming, ...] = ()
    uses: tuple[Use, ...] = ()
    absolute_error: float | None = None
    published: PublishedVerdict | None = None
    taken_over: TakenOver | None = None

    @property
    def measured(self) -> Timing | None:
        """The timing if it was measured, None for an estimate."""
        return self.timing if isinstance(self.timing, Timing) else None

    @property
    def status(self) -> Status:
        """Always "passed"."""
        return "passed"


LAUNCHES_NONE = "it launches no kernel of its own"
"""The beginning of the reason for a candidate that PyTorch's kernels work for."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A candidate that is not a result: `reason` in one line, `detail` as long as it needs to be.

    With the status "reported", others found it correct and nobody judged it here. With "not_run",
    its kernels compile for the target, and nothing on this machine can run them.

    `error` is the relative error against float64 where outputs could be compared, else None, and
    `absolute_error` that of the worst element.
    `feedback` is the same for a program: a `Fault` where something was raised, a `Mismatch` where
    an output is wrong, None where the reason is all there is. `loaded` is True where it is known
    that the module was imported and constructed before something was raised. `published` is None
    where the published judge was not asked, `taken_over` where it was judged in this session.
    """

    status: FailureStatus
    reason: str
    detail: str = ""
    error: float | None = None
    cost: Cost = field(default_factory=Cost)
    feedback: Fault | Mismatch | None = None
    absolute_error: float | None = None
    loaded: bool = False
    published: PublishedVerdict | None = None
    taken_over: TakenOver | None = None

    @property
    def measured(self) -> None:
        """Nothing was measured."""
        return


Evaluation = Passed | Failed


def rank(
    evaluation: Evaluation, over: Literal["strongest", "eager"] = "strongest"
) -> tuple[bool, bool, float, float]:
    """Order of candidates, larger is better: (compiled, correct, like-for-like speedup, guess).

    The speedup is the least that the measurement shows (see `Timing.at_least`); with `over` "eager"
    it is the speedup over eager, as measured. A correct candidate that was not measured has the
    speedup 0 and so stands below all that were. Among its like the shorter estimate is better:
    `guess` is minus its microseconds, minus infinity for a partial one, and 0 where there is none.
    """
    if isinstance(evaluation, Failed):
        return (evaluation.status not in NOT_COMPILED, False, 0.0, 0.0)
    timing = evaluation.timing
    if isinstance(timing, Timing):
        return (True, True, timing.speedup_eager if over == "eager" else timing.at_least, 0.0)
    return (True, True, 0.0, -math.inf if timing.partial else -timing.time_us)
