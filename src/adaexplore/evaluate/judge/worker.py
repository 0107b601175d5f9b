"""The candidate's process: loads the candidate, runs it when told, and decides nothing."""

from __future__ import annotations

import base64
import gc
import pickle
import sys
from pathlib import Path
from typing import Any

import torch

from adaexplore.core.problem import Access, Mode
from adaexplore.evaluate.judge.integrity import Watch
from adaexplore.evaluate.kernels.ahead import compile_ahead
from adaexplore.evaluate.kernels.extensions import build_ahead
from adaexplore.evaluate.kernels.launches import Launches, watched_launches
from adaexplore.evaluate.kernels.profiler import poisoned_memory, profile_calls
from adaexplore.evaluate.kernels.triton_host import tune_briefly
from adaexplore.evaluate.timing.clock import Clock, clock_for
from adaexplore.evaluate.timing.late_inputs import arrive
from adaexplore.evaluate.timing.outputs import finished
from adaexplore.evaluate.truth.precision import set_flags
from adaexplore.evaluate.wire.faults import describe
from adaexplore.evaluate.wire.tensors import open_ring, open_shared
from adaexplore.sandbox.channel import Channel
from adaexplore.sandbox.compile_threads import compile_in_parallel
from adaexplore.sandbox.user_code import Instance
from adaexplore.sandbox.values import Arguments, Inputs, NamedTensor

MODULE_NAME = "candidate"
_MEMORY_SHARE = 0.75  # of the GPU's, of what PyTorch allocates for a candidate
_PROFILED_CALLS = 5


class Slot:
    """Stands for tensor number `index` in arguments that travel without their tensors."""

    def __init__(self, index: int) -> None:
        self.index = index


def main(channel: Channel, control: Channel | None) -> None:  # noqa: ARG001 - worker signature
    """Worker entry: answers requests until the channel closes."""
    _mind_precompiled_headers()
    serve(channel, Session())


def _mind_precompiled_headers() -> None:
    """Has Inductor use precompiled headers only if the judge left some: it cannot write there."""
    codecache = sys.modules.get("torch._inductor.codecache")  # imported before the fork
    if codecache and not Path(codecache._HEADER_DIR).exists():
        codecache.config.cpp_cache_precompile_headers = False


def serve(channel: Channel, session: Session) -> None:
    """Has the session answer requests until the channel closes."""
    folder = Path.cwd()
    while True:
        request, fds = channel.receive_with_fds()
        try:
            reply = session.answer(request, fds)
        except Exception as error:  # noqa: BLE001 - whatever a candidate raises is its result
            reply = {"raised": describe(error, folder)}
        channel.send(reply)


class Session:
    """One candidate and the tensors it works on."""

    def __init__(self) -> None:
        self._watch = Watch()
        self._instance: Instance | None = None
        self._first: Instance | None = None
        self._sets: list[Inputs] = []
        self._buffers: list[torch.Tensor] = []
        self._held: list[NamedTensor] = []
        self._slots: list[Inputs] = []
        self._late: list[tuple[list[torch.Tensor], list[torch.Tensor]]] = []
        self._places: list[list[torch.Tensor]] = []
        self._clock: Clock | None = None
        self._launches = Launches()
        self._meddled: set[str] = set()

    def answer(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Runs one request; each has a method of its own below."""
        match request["op"]:
            case "ahead":
                compile_ahead(request)
                return {}
            case "build":
                return build_ahead(request)
            case "load":
                return self._load(request)
            case "parameters":
                given = open_shared(request["handles"], fds)
                return self._take_parameters(dict(zip(request["names"], given, strict=True)))
            case "inputs":
                tensors = open_shared(request["handles"], fds)
                self._sets.append(_fill(pickle.loads(base64.b64decode(request["form"])), tensors))
                return {}
            case "rebuild":
                return self._rebuild(request["seed"], request["mode"])
            case "restore":
                self._instance, self._first, self._held = self._first, None, []
                return {}
            case "outputs":
                self._buffers = open_shared(request["handles"], fds)
                return {}
            case "slots":
                return self._take_slots(request, fds)
            case "run":
                return self._run(request["set"])
            case "launched":
                return {"kernels": self._launches.codes()}
            case "warm":
                return self._warm()
            case "time":
                return self._time(request["count"], request["places"])
            case "profile":
                return self._profile(request["device"])
            case "run_unlaunched":
                return self._run_unlaunched(request["set"])
            case "rest":
                return self._rest()
            case "inspect":
                return {"replaced": self._watch.replaced(), "meddled": sorted(self._meddled)}
            case op:
                raise ValueError(f"unknown request {op!r}")

    def _load(self, request: dict[str, Any]) -> dict[str, Any]:
        """Imports and constructs; says which global settings that changed (and puts them back)."""
        set_flags(request["precision"])
        if request["device"] == "cpu":
            compile_in_parallel()
        if request["device"] not in ("cpu", "meta"):
            torch.cuda.set_per_process_memory_fraction(_MEMORY_SHARE, request["device"])
            tune_briefly()
        self._clock = clock_for(request["device"])
        self._watch.keep_flags()
        init: Arguments = pickle.loads(base64.b64decode(request["init"]))
        self._instance = Instance.load(
            request["source"],
            "ModelNew",
            device=request["device"],
            seed=request["seed"],
            mode=request["mode"],
            folder=Path.cwd(),
            init=init,
            name=MODULE_NAME,
            access=Access.from_json(request["access"]),
        )
        changed = self._watch.changed_flags()
        self._watch.restore_flags()
        return {"changed_flags": changed}

    def _take_parameters(self, given: dict[str, torch.Tensor]) -> dict[str, Any]:
        """Copies the reference's parameters and buffers into those of the same name and shape."""
        assert self._instance is not None
        own = self._instance.model.state_dict()
        with torch.no_grad():
            for name in own.keys() & given.keys():
                if own[name].shape == given[name].shape:
                    own[name].copy_(given[name])
        return {}

    def _rebuild(self, seed: int, mode: Mode) -> dict[str, Any]:
        """Puts a second model, made under another seed, in the place of the first for a while."""
        assert self._instance is not None
        self._first, self._held = self._instance, []
        self._instance = self._instance.rebuilt(seed, mode)
        self._watch.restore_flags()  # a constructor may set them, for itself
        return {}

    def _take_slots(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """The rings of fresh inputs, of what is withheld from them, and of the outputs' places."""
        rings = [open_ring(handle, fds[i : i + 1]) for i, handle in enumerate(request["handles"])]
        count = request["inputs"]
        inputs, late, outputs = rings[:count], rings[count : 2 * count], rings[2 * count :]
        form = pickle.loads(base64.b64decode(request["form"]))
        for i in range(request["count"]):
            self._slots.append(_fill(form, [ring[i] for ring in inputs]))
            self._late.append(([ring[i] for ring in inputs], [ring[i] for ring in late]))
            self._places.append([ring[i] for ring in outputs])
        return {}

    def _run(self, index: int) -> dict[str, Any]:
        """Calls on an input set and delivers the outputs of the call before.

        So every output has to stay what it is while the next is made, as its user would expect.
        """
        assert self._instance is not None
        held, self._held = self._held, []
        with watched_launches(Path.cwd(), into=self._launches):
            self._held = self._instance(self._sets[index])
        self._look_after_flags()
        for (_, out), buffer in zip(held, self._buffers, strict=False):
            if out.shape == buffer.shape and out.dtype == buffer.dtype:
                buffer.copy_(out)
        self._synchronize()
        return {"outputs": [_form(path, out) for path, out in held]}

    def _warm(self) -> dict[str, Any]:
        assert self._clock is not None
        with torch.no_grad():
            self._clock.warm(self._call_known)
        self._synchronize()
        return {}

    def _call_known(self, i: int) -> object:
        """Call number `i`, on the input sets in turn."""
        assert self._instance is not None
        inputs = self._sets[i % len(self._sets)]
        return self._instance.model(*inputs.args, **inputs.kwargs)

    def _time(self, count: int, late_places: list[int]) -> dict[str, Any]:
        """Times `count` calls, each on a slot of its own, whose outputs go to their places."""
        assert self._instance is not None
        assert self._clock is not None
        model, slots, places = self._instance.model, self._slots, self._places

        def call(i: int) -> list[NamedTensor]:
            inputs = slots[i]
            return finished(model(*inputs.args, **inputs.kwargs))

        def deliver(i: int, outputs: list[NamedTensor]) -> None:
            for (_, out), place in zip(outputs, places[i], strict=True):
                place.copy_(out)

        def complete(i: int) -> None:
            arrive(*self._late[i], late_places)

        with torch.no_grad():
            times = self._clock.block(call, count, deliver, complete)
        self._look_after_flags()
        return {"times_us": times}

    def _profile(self, device: str) -> dict[str, Any]:
        with torch.no_grad():
            return profile_calls(self._call_known, _PROFILED_CALLS, device)

    def _run_unlaunched(self, index: int) -> dict[str, Any]:
        """Calls on an input set with none of the Triton kernels launched; delivers at once."""
        assert self._instance is not None
        with watched_launches(Path.cwd(), suppress=True) as launches, poisoned_memory():
            outputs = self._instance(self._sets[index])
        for (_, out), buffer in zip(outputs, self._buffers, strict=True):
            buffer.copy_(out)
        self._synchronize()
        return {"suppressed": launches.count}

    def _rest(self) -> dict[str, Any]:
        """Gives back what it can, before standing still for a while."""
        self._held = []
        gc.collect()
        torch.cuda.empty_cache()  # does nothing where CUDA was not used
        return {}

    def _look_after_flags(self) -> None:
        self._meddled.update(self._watch.changed_flags())
        self._watch.restore_flags()

    def _synchronize(self) -> None:
        if self._buffers and self._buffers[0].is_cuda:
            torch.cuda.synchronize()


def _form(path: str, out: torch.Tensor) -> dict[str, Any]:
    """What an output is; a tensor of a class of its own could do its work when it is looked at."""
    return {
        "path": path,
        "class": type(out).__name__,
        "shape": list(out.shape),
        "strides": list(out.stride()),
        "dtype": str(out.dtype).partition(".")[2],
        "device": out.device.type,
    }


def _fill(form: Arguments, tensors: list[torch.Tensor]) -> Inputs:
    """The arguments with each `Slot` replaced by its tensor."""

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

    return Inputs(fill(form.args), fill(form.kwargs))
