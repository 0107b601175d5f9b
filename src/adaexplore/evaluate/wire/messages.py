"""Every message between a judge and its neighbours: requests, and the reply to each.

A candidate's process answers requests of the judge; it may answer anything, so each reply is read
with every type checked (`codec.read`). Tensors travel beside the JSON, as file descriptors or CUDA
IPC handles. The name of a request's class is its "op".
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_args

from adaexplore.core import codec
from adaexplore.core.problem import Access, Mode, Precision
from adaexplore.core.verdict.gradients import Gradients

Pickled = str
"""A base64-encoded pickle, which only travels from the judge to a candidate's process."""

ReplyT = TypeVar("ReplyT")

_SHORTEST_US, _LONGEST_US = 1e-3, 1e12  # no clock ticks finer; ratios and sums are numbers


def pickled(value: Any) -> Pickled:
    """Return a value as text for a candidate's process."""
    return base64.b64encode(pickle.dumps(value)).decode()


class Request(Generic[ReplyT]):
    """Base of all requests; the type parameter is the reply."""

    def accepts(self, reply: ReplyT) -> bool:  # noqa: ARG002 - most replies need no other check
        """Return True if a well-formed reply fits this request."""
        return True


def encode(request: Request[Any]) -> dict[str, Any]:
    """Return a request as plain data."""
    return {"op": type(request).__name__, **codec.write(request)}


def decode(data: Mapping[str, Any]) -> Request[Any]:
    """Inverse of `encode`; raises `codec.MalformedError`."""
    name = data.get("op")
    kind = next((each for each in Request.__subclasses__() if each.__name__ == name), None)
    if kind is None:
        raise codec.MalformedError(f"unknown request {name!r}")
    return codec.read(kind, {key: value for key, value in data.items() if key != "op"})


def read_reply(request: Request[ReplyT], data: Any) -> ReplyT:
    """Return the reply to a request; raises `codec.MalformedError`."""
    [kind] = get_args(type(request).__orig_bases__[0])  # type: ignore[attr-defined]
    reply: ReplyT = codec.read(kind, data)
    if not request.accepts(reply):
        raise codec.MalformedError(f"no reply to {request!r:.80}")
    return reply


@dataclass(frozen=True)
class RingForm:
    """A ring's tensors: how many, elements from one to the next, shape and strides of each."""

    count: int
    step: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class TensorHandle:
    """A tensor in shared memory, for the process that opens it.

    `kind` is "cpu" (a memory file of `elements`, its descriptor sent beside), "cuda" (`ipc` holds
    the pickled handle), "empty" (no element, on `device`) or "private" (not shared).
    """

    kind: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: str = ""
    elements: int = 0
    ipc: Pickled = ""
    ring: RingForm | None = None


@dataclass(frozen=True)
class Done:
    """A reply that says nothing else."""


@dataclass(frozen=True)
class Place:
    """A line in the candidate's source (`frame`: the function), or in the text `kernel`."""

    line: int
    frame: str = ""
    kernel: str = ""


@dataclass(frozen=True)
class Raised:
    """An exception in the candidate's process, in place of a reply.

    `types` names the classes of the exception and of its root, `type` and `message` are the root's.
    `places` are its lines, innermost first; `excerpt` is the place of a compiler's first error.
    """

    type: str
    message: str
    types: tuple[str, ...] = ()
    traceback: str = ""
    places: tuple[Place, ...] = ()
    excerpt: Place | None = None


@dataclass(frozen=True)
class RaisedReply:
    """The reply of a request that ended in an exception."""

    raised: Raised


@dataclass(frozen=True)
class OutputDescription:
    """An output of the candidate: its place, class and form."""

    path: str
    class_name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: str


@dataclass(frozen=True)
class Outputs:
    """The outputs of the call before, which now stand in their buffers."""

    outputs: tuple[OutputDescription, ...]


@dataclass(frozen=True)
class Loaded:
    """The global settings that importing and constructing changed; they are put back."""

    changed_flags: tuple[str, ...]


@dataclass(frozen=True)
class CallTimes:
    """Microseconds of each timed call."""

    times_us: tuple[float, ...]


@dataclass(frozen=True)
class Inspected:
    """Functions that the candidate replaced, and settings that its calls changed."""

    replaced: tuple[str, ...]
    changed_in_forward: tuple[str, ...]


@dataclass(frozen=True)
class Build(Request[Done]):
    """A call on tensors without data, before the GPU is taken; `capability` is such as (9, 0).

    With `extensions`, C++ and CUDA extensions are built; else Triton kernels are compiled.
    """

    source: str
    capability: tuple[int, ...]
    seed: int
    mode: Mode
    access: Access
    init: Pickled
    inputs: tuple[Pickled, ...]
    extensions: bool
    gradients: Gradients | None = None


@dataclass(frozen=True)
class Load(Request[Loaded]):
    """Import the candidate and construct its model with the arguments `init`.

    With `gradients`, its calls are training steps.
    """

    source: str
    device: str
    seed: int
    mode: Mode
    precision: Precision
    access: Access
    init: Pickled
    gradients: Gradients | None = None


@dataclass(frozen=True)
class TakeParameters(Request[Done]):
    """Copy these values into parameters and buffers of the same name and shape.

    Through `.data` if `uncounted`: their versions stay.
    """

    names: tuple[str, ...]
    handles: tuple[TensorHandle, ...]
    uncounted: bool = False


@dataclass(frozen=True)
class TakeBuffers(Request[Done]):
    """Buffers for the outputs of one more workload, which the next input sets belong to."""

    handles: tuple[TensorHandle, ...]


@dataclass(frozen=True)
class TakeInputs(Request[Done]):
    """One more input set; `form` is its arguments with a `Slot` for each tensor."""

    form: Pickled
    handles: tuple[TensorHandle, ...]


@dataclass(frozen=True)
class TakeSlots(Request[Done]):
    """Rings for `count` more timed calls: first `inputs` for inputs, then those for outputs."""

    form: Pickled
    count: int
    inputs: int
    handles: tuple[TensorHandle, ...]


@dataclass(frozen=True)
class TakeTurnstile(Request[Done]):
    """The end of a turnstile, which the process passes before every timed call."""


@dataclass(frozen=True)
class Rebuild(Request[Done]):
    """Put a second model, made under another seed, in the place of the first.

    With `moved`, its constant weights get other values (see `truth.constants`).
    """

    seed: int
    mode: Mode
    moved: bool = False


@dataclass(frozen=True)
class Restore(Request[Done]):
    """Put the first model back."""


@dataclass(frozen=True)
class RunOn(Request[Outputs]):
    """Call on an input set, and deliver the outputs of the call before."""

    input_set: int


KEPT_CALLS = 3
"""Calls whose delivered outputs the process keeps, the outputs of the latest call besides."""
KEPT_BYTES = 256 << 20
"""Outputs of a call that take more are not kept."""


@dataclass(frozen=True)
class DeliverAgain(Request[Outputs]):
    """Deliver the oldest outputs that are kept once more, and keep none."""


@dataclass(frozen=True)
class Warm(Request[Done]):
    """Call on these input sets until caches, allocator and clocks have settled."""

    input_sets: tuple[int, ...]


@dataclass(frozen=True)
class Time(Request[CallTimes]):
    """Time `count` calls on the slots from `first` on.

    With `telling`, the process tells at which addresses it made the outputs that it delivers.
    """

    first: int
    count: int
    telling: bool = False

    def accepts(self, reply: CallTimes) -> bool:
        """Return True if every call has a time that a clock can tell."""
        times = reply.times_us
        return len(times) == self.count and all(_SHORTEST_US <= t < _LONGEST_US for t in times)


@dataclass(frozen=True)
class Inspect(Request[Inspected]):
    """Name functions and settings that the candidate changed."""


@dataclass(frozen=True)
class Rest(Request[Done]):
    """Give back memory, before the process is stopped for a while."""
