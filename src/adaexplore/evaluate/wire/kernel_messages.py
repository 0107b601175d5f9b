"""Messages about the kernels of a candidate: launches, profiles, and runs without launches."""

from __future__ import annotations

from dataclasses import dataclass

from adaexplore.evaluate.wire.messages import Outputs, Request


@dataclass(frozen=True)
class Suppressed:
    """The number of launches that were suppressed."""

    suppressed: int


@dataclass(frozen=True)
class LaunchedKernel:
    """A Triton kernel of the candidate: a hash of its machine code, the instructions in it."""

    name: str
    code: str
    instructions: tuple[str, ...]


@dataclass(frozen=True)
class LaunchedKernels:
    """The candidate's own Triton kernels launched so far."""

    kernels: tuple[LaunchedKernel, ...]


@dataclass(frozen=True)
class LaunchForm:
    """The launch of a GPU kernel, as the profiler saw it."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    registers: int
    shared_bytes: int
    occupancy: float | None


@dataclass(frozen=True)
class ProfiledKernel:
    """A kernel (on the CPU: an operator), with its totals over all profiled calls."""

    name: str
    launches: int
    time_us: float
    launch: LaunchForm | None


@dataclass(frozen=True)
class ProfiledTriton:
    """A launched Triton kernel: whether it is the candidate's own, and the bytes it spills.

    `launches` are those that Triton made, and `given_bytes` those of all tensors that they got.
    """

    name: str
    own: bool
    spills_bytes: int | None
    launches: int = 0
    given_bytes: int = 0


@dataclass(frozen=True)
class TunedConfiguration:
    """A configuration that an autotuner timed: its parameters by name, and microseconds."""

    parameters: dict[str, str]
    time_us: float


@dataclass(frozen=True)
class TunedKernel:
    """An autotuner's search: the configurations that ran, of all that it tried."""

    name: str
    arguments: str
    configurations: tuple[TunedConfiguration, ...]
    tried: int


@dataclass(frozen=True)
class Profiled:
    """The profile of `calls` calls, and the searches of autotuners in all calls so far."""

    calls: int
    kernels: tuple[ProfiledKernel, ...]
    triton: tuple[ProfiledTriton, ...]
    tuned: tuple[TunedKernel, ...] = ()


@dataclass(frozen=True)
class RunUnlaunched(Request[Suppressed]):
    """Call on an input set with no Triton kernel launched, and deliver the outputs at once."""

    input_set: int


@dataclass(frozen=True)
class RunCaptured(Request[Outputs]):
    """Capture a call on an input set in a CUDA graph, replay it, and deliver the outputs at once.

    Before it, a call is made with weights at other addresses.
    """

    input_set: int


@dataclass(frozen=True)
class ProfileCalls(Request[Profiled]):
    """Profile calls on these input sets."""

    device: str
    input_sets: tuple[int, ...]


@dataclass(frozen=True)
class Occupied:
    """Whether a call ended while the GPU was partly held."""

    in_time: bool


@dataclass(frozen=True)
class RunOccupied(Request[Occupied]):
    """Call on an input set while half of the GPU is held for `hold_s` seconds at most."""

    device: str
    input_set: int
    hold_s: float


@dataclass(frozen=True)
class ListLaunched(Request[LaunchedKernels]):
    """Name the candidate's own Triton kernels launched so far."""
