"""The candidate's process: loads the candidate, runs it when told, and decides nothing."""

from __future__ import annotations

import base64
import pickle
import traceback
from pathlib import Path
from typing import Any

import torch

from adaexplore.evaluate.clock import Clock, clock_for
from adaexplore.evaluate.precision import set_flags
from adaexplore.evaluate.tensors import open_shared
from adaexplore.problem import Precision
from adaexplore.sandbox.channel import Channel
from adaexplore.sandbox.compile_threads import compile_in_parallel
from adaexplore.sandbox.instance import Arguments, Inputs, Instance, flatten_outputs

MODULE_NAME = "candidate"


class Slot:
    """Stands for tensor number `index` in arguments that travel without their tensors."""

    def __init__(self, index: int) -> None:
        self.index = index


def main(channel: Channel, control: Channel | None) -> None:  # noqa: ARG001 - worker signature
    """Worker entry: answers requests until the channel closes."""
    compile_in_parallel()
    session = Session()
    while True:
        request, fds = channel.receive_with_fds()
        try:
            reply = session.answer(request, fds)
        except Exception as error:  # noqa: BLE001 - whatever a candidate raises is its result
            reply = {"raised": _describe(error)}
        channel.send(reply)


class Session:
    """One candidate and the tensors it works on."""

    def __init__(self) -> None:
        self._instance: Instance | None = None
        self._sets: list[Inputs] = []
        self._buffers: list[torch.Tensor] = []
        self._clock: Clock | None = None
        self._precision: Precision = "fp32"

    def answer(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Runs one request: "load", "parameters", "inputs", "outputs", "run" or "time"."""
        match request["op"]:
            case "load":
                self._load(request)
                return {}
            case "parameters":
                given = open_shared(request["handles"], fds)
                self._take_parameters(dict(zip(request["names"], given, strict=True)))
                return {}
            case "inputs":
                tensors = open_shared(request["handles"], fds)
                self._sets.append(_fill(pickle.loads(base64.b64decode(request["form"])), tensors))
                return {}
            case "outputs":
                self._buffers = open_shared(request["handles"], fds)
                return {}
            case "run":
                return self._deliver(self._call(self._sets[request["set"]]))
            case "time":
                return self._time(request["count"], request["sets"], request["keep"])
            case op:
                raise ValueError(f"unknown request {op!r}")

    def _load(self, request: dict[str, Any]) -> None:
        self._precision = request["precision"]
        set_flags(self._precision)
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
        )
        self._clock = clock_for(request["device"])

    def _take_parameters(self, given: dict[str, torch.Tensor]) -> None:
        """Copies the reference's parameters and buffers into those of the same name and shape."""
        assert self._instance is not None
        own = self._instance.model.state_dict()
        with torch.no_grad():
            for name in own.keys() & given.keys():
                if own[name].shape == given[name].shape:
                    own[name].copy_(given[name])

    def _call(self, inputs: Inputs) -> list[tuple[str, torch.Tensor]]:
        assert self._instance is not None
        set_flags(self._precision)
        return self._instance(inputs)

    def _deliver(self, outputs: list[tuple[str, torch.Tensor]]) -> dict[str, Any]:
        """Copies outputs that fit into the judge's buffers and describes them all."""
        for (_, out), buffer in zip(outputs, self._buffers, strict=False):
            if out.shape == buffer.shape and out.dtype == buffer.dtype:
                buffer.copy_(out)
        if self._buffers and self._buffers[0].is_cuda:
            torch.cuda.synchronize()
        return {
            "outputs": [
                {
                    "path": path,
                    "shape": list(out.shape),
                    "dtype": str(out.dtype).partition(".")[2],
                    "device": out.device.type,
                }
                for path, out in outputs
            ]
        }

    def _time(self, count: int, sets: list[int], keep: int) -> dict[str, Any]:
        """Times `count` calls, rotating over `sets`, and delivers the outputs of call `keep`."""
        assert self._instance is not None
        assert self._clock is not None
        set_flags(self._precision)
        model = self._instance.model
        arguments = [self._sets[i] for i in sets]
        kept: list[Any] = []

        def call(i: int) -> object:
            inputs = arguments[i % len(arguments)]
            out = model(*inputs.args, **inputs.kwargs)
            if i == keep:
                kept.append(out)
            return out

        with torch.no_grad():
            times = self._clock.block(call, count)
        reply = self._deliver(flatten_outputs(kept[0]))
        return reply | {"times_us": times}


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


def _describe(error: Exception) -> dict[str, Any]:
    """An exception as plain data: the names of its classes, its text, its traceback."""
    root: BaseException = error
    while root.__cause__ is not None:
        root = root.__cause__
    return {
        "types": [c.__name__ for c in (*type(error).__mro__, *type(root).__mro__)],
        "type": type(root).__name__,
        "message": str(root),
        "traceback": "".join(traceback.format_exception(error))[-20_000:],
    }
