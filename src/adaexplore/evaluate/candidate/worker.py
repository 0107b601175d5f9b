"""The candidate's process: loads the candidate and runs it on request; it decides nothing."""

from __future__ import annotations

import base64
import gc
import pickle
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from adaexplore.core import codec
from adaexplore.core.protocols.clock import Clock
from adaexplore.evaluate.candidate.captured import run_captured
from adaexplore.evaluate.candidate.integrity import ProcessState
from adaexplore.evaluate.kernels.ahead import compile_ahead
from adaexplore.evaluate.kernels.build.extensions import BuildFailedError, build_ahead
from adaexplore.evaluate.kernels.build.triton_host import tune_briefly
from adaexplore.evaluate.kernels.launches import Launches, watched_launches
from adaexplore.evaluate.kernels.profiler import poisoned_memory, profile_calls
from adaexplore.evaluate.timing.clock import clock_for
from adaexplore.evaluate.timing.outputs import finished_for
from adaexplore.evaluate.timing.turnstile.protocol import Gate, gate_for, nothing_sealed
from adaexplore.evaluate.timing.turnstile.slots import seals_of, sums_over
from adaexplore.evaluate.truth.given.constants import constants_moved
from adaexplore.evaluate.truth.precision import set_flags
from adaexplore.evaluate.wire import messages as wire
from adaexplore.evaluate.wire.faults import describe
from adaexplore.evaluate.wire.kernel_messages import (
    LaunchedKernels,
    ListLaunched,
    Occupied,
    ProfileCalls,
    Profiled,
    RunCaptured,
    RunOccupied,
    RunUnlaunched,
    Suppressed,
)
from adaexplore.evaluate.wire.tensors import open_ring, open_shared
from adaexplore.sandbox.channel import Channel
from adaexplore.sandbox.compile_threads import compile_in_parallel
from adaexplore.sandbox.user.user_code import Instance
from adaexplore.sandbox.user.values import Arguments, Inputs, NamedTensor
from adaexplore.sandbox.walls.limits import GPU_MEMORY_SHARE

if TYPE_CHECKING:
    from adaexplore.evaluate.timing.turnstile.seals import Seals
    from adaexplore.evaluate.timing.turnstile.sums import Sums

MODULE_NAME = "candidate"
_PROFILED_CALLS = 5


class Slot:
    """A placeholder for tensor number `index` in arguments that travel without their tensors."""

    def __init__(self, index: int) -> None:
        self.index = index


@dataclass(frozen=True)
class KnownInputs:
    """Known inputs, and the buffers for the outputs of a call on them."""

    inputs: Inputs
    buffers: list[torch.Tensor]


def main(channel: Channel, control: Channel | None) -> None:  # noqa: ARG001 - worker signature
    """Answer requests until the channel closes; a worker's entry."""
    _mind_precompiled_headers()
    serve(channel, CandidateSession())


def _mind_precompiled_headers() -> None:
    """Let Inductor use precompiled headers only if the judge left some: it cannot write there."""
    codecache = sys.modules.get("torch._inductor.codecache")  # imported before the fork
    if codecache and not Path(codecache._HEADER_DIR).exists():
        codecache.config.cpp_cache_precompile_headers = False


def serve(channel: Channel, session: CandidateSession) -> None:
    """Let the session answer requests until the channel closes."""
    folder = Path.cwd()
    while True:
        request, fds = channel.receive_with_fds()
        try:
            reply = codec.write(session.answer(wire.decode(request), fds))
        except BuildFailedError as error:
            reply = {"raised": codec.write(error.raised)}
        except Exception as error:  # noqa: BLE001 - any exception of a candidate is its result
            reply = {"raised": codec.write(describe(error, folder))}
        channel.send(reply)


class CandidateSession:
    """One candidate and the tensors it works on."""

    def __init__(self) -> None:
        self._state = ProcessState()
        self._instance: Instance | None = None
        self._first: Instance | None = None
        self._buffers: list[torch.Tensor] = []
        self._sets: list[KnownInputs] = []
        self._held: list[NamedTensor] = []
        self._held_buffers: list[torch.Tensor] = []
        self._kept: deque[tuple[list[NamedTensor], list[torch.Tensor]]] = deque(
            maxlen=wire.KEPT_CALLS
        )
        self._slots: list[Inputs] = []
        self._seals: dict[int, Seals | None] = {}
        """The seals of each workload's slots, by its first slot."""
        self._sums: dict[int, Sums | None] = {}
        """The sums over the outputs in each workload's places, by its first slot."""
        self._places: list[list[torch.Tensor]] = []
        self._made: list[torch.Tensor] = []
        """The outputs of the last timed call, kept where the judge may look for them."""
        self._gate: Gate | None = None
        self._device = ""
        self._clock: Clock | None = None
        self._launches = Launches()
        self._changed_flags: set[str] = set()

    def answer(self, request: wire.Request[Any], fds: list[int]) -> Any:
        """Run one request and return its reply."""
        match request:
            case wire.Build():
                return self._build(request)
            case wire.Load():
                return self._load(request)
            case wire.TakeParameters():
                return self._take_parameters(request, fds)
            case wire.TakeBuffers():
                self._buffers = open_shared(request.handles, fds)
            case wire.TakeInputs():
                inputs = _filled(request.form, open_shared(request.handles, fds))
                self._sets.append(KnownInputs(inputs, self._buffers))
            case wire.TakeSlots():
                self._take_slots(request, fds)
            case wire.TakeTurnstile():
                self._gate = gate_for(self._device, *fds)
            case wire.Rebuild():
                self._rebuild(request)
            case wire.Restore():
                self._instance, self._first = self._first, None
                self._forget_outputs()
            case wire.DeliverAgain():
                return self._deliver_again()
            case wire.RunOn():
                return self._run(request.input_set)
            case RunCaptured():
                return self._run_captured(request.input_set)
            case RunUnlaunched():
                return self._run_unlaunched(request.input_set)
            case wire.Warm():
                self._warm(request.input_sets)
            case wire.Time():
                return self._time(request)
            case ProfileCalls():
                return self._profile(request)
            case RunOccupied():
                return self._run_occupied(request)
            case ListLaunched():
                return LaunchedKernels(self._launches.own_kernels())
            case wire.Inspect():
                changed = tuple(sorted(self._changed_flags))
                return wire.Inspected(tuple(self._state.replaced()), changed)
            case wire.Rest():
                self._rest()
            case _:
                raise ValueError(f"unknown request {type(request).__name__}")
        return wire.Done()

    def _build(self, request: wire.Build) -> wire.Done:
        if request.extensions:
            build_ahead(request)
        else:
            compile_ahead(request)
        return wire.Done()

    def _load(self, request: wire.Load) -> wire.Loaded:
        """Import and construct; name the global settings that changed, and put them back."""
        set_flags(request.precision)
        if request.device == "cpu":
            compile_in_parallel()
        if request.device not in ("cpu", "meta"):
            torch.cuda.set_per_process_memory_fraction(GPU_MEMORY_SHARE, request.device)
            tune_briefly()
        self._device = request.device
        self._clock = clock_for(request.device)
        self._state.keep_flags()
        init: Arguments = pickle.loads(base64.b64decode(request.init))
        self._instance = Instance.load(
            request.source,
            "ModelNew",
            device=request.device,
            seed=request.seed,
            mode=request.mode,
            folder=Path.cwd(),
            init=init,
            name=MODULE_NAME,
            access=request.access,
            gradients=request.gradients,
        )
        changed = self._state.changed_flags()
        self._state.restore_flags()
        return wire.Loaded(tuple(changed))

    def _take_parameters(self, request: wire.TakeParameters, fds: list[int]) -> wire.Done:
        """Copy the reference's parameters and buffers into those of the same name and shape."""
        assert self._instance is not None
        given = dict(zip(request.names, open_shared(request.handles, fds), strict=True))
        own = self._instance.model.state_dict()
        with torch.no_grad():
            for name in own.keys() & given.keys():
                if own[name].shape == given[name].shape:
                    place = own[name].data if request.uncounted else own[name]
                    place.copy_(given[name])
        return wire.Done()

    def _rebuild(self, request: wire.Rebuild) -> None:
        """Put a second model, made under another seed, in the place of the first."""
        assert self._instance is not None
        self._first = self._instance
        self._forget_outputs()
        try:
            with constants_moved() if request.moved else nullcontext():
                self._instance = self._instance.rebuilt(request.seed, request.mode)
        finally:
            self._state.restore_flags()  # a constructor may set them, for itself

    def _take_slots(self, request: wire.TakeSlots, fds: list[int]) -> None:
        """Open the rings of fresh inputs and of places for outputs."""
        rings = [open_ring(handle, fds[i : i + 1]) for i, handle in enumerate(request.handles)]
        inputs, outputs = rings[: request.inputs], rings[request.inputs :]
        words = [[ring.words(i) for ring in inputs] for i in range(request.count)]
        places = [[ring.tensors[i] for ring in outputs] for i in range(request.count)]
        first, device = len(self._slots), torch.device(self._device)
        self._seals[first] = seals_of(words, device)
        self._sums[first] = sums_over(places, device)
        for i in range(request.count):
            self._slots.append(_filled(request.form, [ring.tensors[i] for ring in inputs]))
        self._places += places

    def _run(self, index: int) -> wire.Outputs:
        """Call on an input set and deliver the outputs of the call before.

        So every output has to stay valid while the next is made, as its user would expect.
        """
        assert self._instance is not None
        held, buffers, self._held = self._held, self._held_buffers, []
        with watched_launches(Path.cwd(), into=self._launches):
            self._held = self._instance(self._sets[index].inputs)
        self._held_buffers = self._sets[index].buffers
        self._look_after_flags()
        if held and sum(out.nbytes for _, out in held) <= wire.KEPT_BYTES:
            self._kept.append((held, buffers))
        return self._delivered(held, buffers)

    def _forget_outputs(self) -> None:
        """Let go of the outputs of all calls."""
        self._held = []
        self._kept.clear()

    def _deliver_again(self) -> wire.Outputs:
        """Deliver the outputs of a call once more that others came after: they are as they were."""
        outputs, buffers = self._kept[0] if self._kept else ([], [])
        self._kept.clear()
        return self._delivered(outputs, buffers)

    def _delivered(
        self, outputs: Sequence[NamedTensor], buffers: Sequence[torch.Tensor]
    ) -> wire.Outputs:
        """Copy outputs into buffers of their form, and describe them."""
        for (_, out), buffer in zip(outputs, buffers, strict=False):
            if out.shape == buffer.shape and out.dtype == buffer.dtype:
                buffer.copy_(out)
        self._synchronize()
        return wire.Outputs(tuple(describe_output(path, out) for path, out in outputs))

    def _warm(self, input_sets: Sequence[int]) -> None:
        assert self._clock is not None
        with torch.no_grad():
            self._clock.warm(lambda i: self._call_known(input_sets, i))
        self._synchronize()

    def _call_known(self, input_sets: Sequence[int], i: int) -> object:
        """Make call number `i`, on the input sets in turn."""
        assert self._instance is not None
        inputs = self._sets[input_sets[i % len(input_sets)]].inputs
        return self._instance.model(*inputs.args, **inputs.kwargs)

    def _time(self, request: wire.Time) -> wire.CallTimes:
        """Time `count` calls, each on a slot of its own; outputs go to the slot's places."""
        assert self._instance is not None
        assert self._clock is not None
        assert self._gate is not None
        model, slots, places = self._instance.model, self._slots, self._places
        first, count = request.first, request.count
        gate, seals, sums = self._gate, self._seals[first], self._sums[first]
        made = self._made
        addresses = [0] * len(places[first]) if request.telling else []

        def call(i: int) -> list[NamedTensor]:
            inputs = slots[first + i]
            return finished_for(model(*inputs.args, **inputs.kwargs), places[first + i])

        def deliver(i: int, outputs: list[NamedTensor]) -> None:
            made[:] = [out.resolve_conj().resolve_neg() for _, out in outputs]
            for out, place in zip(made, places[first + i], strict=True):
                place.copy_(out)
            if request.telling:
                addresses[:] = [out.data_ptr() for out in made]
            gate.delivered(i, sums)

        def ready(i: int) -> None:
            gate.enter(i, addresses, partial(seals.turn, i) if seals else nothing_sealed)

        with torch.no_grad():
            times = self._clock.block(call, count, deliver, ready)
            gate.leave(addresses)
        self._look_after_flags()
        return wire.CallTimes(tuple(times))

    def _profile(self, request: ProfileCalls) -> Profiled:
        def call(i: int) -> object:
            return self._call_known(request.input_sets, i)

        with torch.no_grad():
            found = profile_calls(call, _PROFILED_CALLS, request.device)
        return replace(found, tuned=tuple(self._launches.tuned))

    def _run_occupied(self, request: RunOccupied) -> Occupied:
        from adaexplore.evaluate.kernels.occupied import ends_beside  # only here: it needs Triton

        with torch.no_grad():
            in_time = ends_beside(
                lambda: self._call_known([request.input_set], 0), request.device, request.hold_s
            )
        return Occupied(in_time)

    def without_launches(self) -> AbstractContextManager[Launches]:
        """Let no Triton kernel be launched in the body; count the launches."""
        return watched_launches(Path.cwd(), suppress=True)

    def _run_captured(self, index: int) -> wire.Outputs:
        """Call on an input set in a CUDA graph; deliver the outputs at once."""
        assert self._instance is not None
        given = self._sets[index]
        with watched_launches(Path.cwd(), into=self._launches):
            outputs = run_captured(self._instance, given.inputs, self._device)
        return self._delivered(outputs, given.buffers)

    def _run_unlaunched(self, index: int) -> Suppressed:
        """Call on an input set with no Triton kernel launched; deliver the outputs at once."""
        assert self._instance is not None
        given = self._sets[index]
        with self.without_launches() as launches, poisoned_memory():
            outputs = self._instance(given.inputs)
        for (_, out), buffer in zip(outputs, given.buffers, strict=True):
            buffer.copy_(out)
        self._synchronize()
        return Suppressed(launches.count)

    def _rest(self) -> None:
        """Give back memory, before the process is stopped for a while."""
        self._made = []
        self._forget_outputs()
        gc.collect()
        torch.cuda.empty_cache()  # does nothing where CUDA was not used

    def _look_after_flags(self) -> None:
        self._changed_flags.update(self._state.changed_flags())
        self._state.restore_flags()

    def _synchronize(self) -> None:
        if self._buffers and self._buffers[0].is_cuda:
            torch.cuda.synchronize()


def describe_output(path: str, out: torch.Tensor) -> wire.OutputDescription:
    """Describe an output; a tensor class of the candidate's could do its work when it is read."""
    return wire.OutputDescription(
        path=path,
        class_name=type(out).__name__,
        shape=tuple(out.shape),
        strides=tuple(out.stride()),
        dtype=str(out.dtype).partition(".")[2],
        device=out.device.type,
    )


def _filled(form: wire.Pickled, tensors: Sequence[torch.Tensor]) -> Inputs:
    """Return the pickled arguments with each `Slot` replaced by its tensor."""
    arguments: Arguments = pickle.loads(base64.b64decode(form))

    def fill(value: Any) -> Any:
        match value:
            case Slot():
                return tensors[value.index]
            case dict():
                return {key: fill(item) for key, item in value.items()}
            case list() | tuple() if not hasattr(value, "_fields"):
                return type(value)([fill(item) for item in value])
            case tuple():
                return type(value)(*(fill(item) for item in value))
            case _:
                return value

    return Inputs(fill(arguments.args), fill(arguments.kwargs))
