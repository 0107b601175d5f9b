"""The candidate's process where its GPU is missing: interprets small, captures and compiles large.

It decides nothing. What it says of compilation and resources is what Triton's compiler says in this
process; whether outputs are right is found out elsewhere.
"""

from __future__ import annotations

import base64
import pickle
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from adaexplore.core.problem import Precision
from adaexplore.evaluate.judge import worker
from adaexplore.evaluate.kernels import driver
from adaexplore.evaluate.kernels.capture import Kernel, Launch, Recorder
from adaexplore.evaluate.kernels.count import OpCounter, without_values
from adaexplore.evaluate.kernels.resources import compile_any
from adaexplore.evaluate.kernels.targets import TARGETS, Target
from adaexplore.evaluate.kernels.torch_shim import Shim
from adaexplore.evaluate.offline.estimate import DryRuns, Work, work_of_op
from adaexplore.evaluate.offline.interpreter import Interpreter
from adaexplore.evaluate.offline.memory import TensorMemory, tensors_in
from adaexplore.evaluate.truth.tf32 import EmulatedTf32
from adaexplore.sandbox.channel import Channel

_DRY_LAUNCH_S = 5.0


def main(channel: Channel, control: Channel | None) -> None:  # noqa: ARG001 - worker signature
    """Worker entry: "begin" with a target and a device, then requests until the channel closes.

    On the device "cpu" launches are interpreted, on "meta" they are only recorded.
    """
    request = channel.receive()
    target = TARGETS[request["target"]]
    driver.install(target)
    torch.set_num_threads(1)
    if request["device"] == "meta":
        session: worker.Session = CaptureSession(target)
    else:
        session = InterpretSession(target, request["launch_s"])
    channel.send({})
    worker.serve(channel, session)


class CompilingSession(worker.Session):
    """A candidate on a pretended GPU, whose kernels can be compiled once they have been launched.

    Requests beyond those of `worker.Session`: "kernels" names the kernels launched so far,
    "compile" compiles one of them ("kernel": its number) for the target.
    """

    def __init__(self, target: Target, recorder: Recorder, shim: Shim) -> None:
        self._target = target
        self._recorder = recorder
        self._shim = shim
        shim.install()
        recorder.install()
        super().__init__()  # from now on it is watched what is replaced

    def answer(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Runs one request."""
        match request["op"]:
            case "kernels":
                return {"kernels": [kernels[0].name for kernels in self._kernels()]}
            case "compile":
                kernels = self._kernels()[request["kernel"]]
                resources = compile_any(kernels, self._target)
                return {
                    "resources": resources.to_json(),
                    "has_allocator": self._has_allocator(kernels[0]),
                }
            case _:
                return super().answer(request, fds)

    def _has_allocator(self, kernel: Kernel) -> bool:
        """Whether every launch of it would get the memory that it may need."""
        launches = self._recorder.launches
        return all(each.has_allocator for each in launches if each.kernel.key == kernel.key)

    def _kernels(self) -> list[list[Kernel]]:
        """The kernels launched so far, each with the configurations that could stand in for it."""
        found: dict[str, list[Kernel]] = {}
        group: list[Kernel] = []
        for launch in self._recorder.launches:
            if launch.spare:
                group.append(launch.kernel)
            else:
                group = found.setdefault(launch.kernel.key, [])
                group[:] = [launch.kernel]
        return list(found.values())


class InterpretSession(CompilingSession):
    """A candidate whose kernels are interpreted, each launch in `launch_s` seconds at most."""

    def __init__(self, target: Target, launch_s: float) -> None:
        interpreter = Interpreter()

        def interpret(launch: Launch) -> None:
            interpreter.run(launch, TensorMemory(launch.args.values()), seconds=launch_s)

        recorder = Recorder(interpret, all_configurations=True)
        super().__init__(target, recorder, Shim(target, Path.cwd(), "cpu"))
        self._rounds_products = False

    def answer(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Runs one request, with a GPU pretended while the candidate's code runs."""
        if request["op"] == "load":
            self._rounds_products = request["precision"] != "fp32"
        if request["op"] not in ("load", "run", "rebuild"):
            return super().answer(request, fds)
        with ExitStack() as pretended:
            pretended.enter_context(self._shim.mode())
            if self._rounds_products:
                pretended.enter_context(EmulatedTf32())
            return super().answer(request, fds)


class CaptureSession(CompilingSession):
    """A candidate on meta tensors of full size: its launches are recorded, nothing is computed.

    "capture" calls it with the inputs of the request and tells the work that a call is, that of its
    own launches last. It is the second of two calls: what a candidate sets up at its first is not
    part of it.
    """

    def __init__(self, target: Target) -> None:
        recorder = Recorder(lambda _: None, all_configurations=True)
        self._dry_runs = DryRuns(Interpreter(), _DRY_LAUNCH_S)
        super().__init__(target, recorder, Shim(target, Path.cwd(), "meta"))

    def answer(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Runs one request."""
        match request["op"]:
            case "load":
                with self._shim.mode(), without_values():
                    return super().answer(request, fds)
            case "capture":
                return self._capture(request["inputs"], request["precision"])
            case _:
                return super().answer(request, fds)

    def _capture(self, pickled: str, precision: Precision) -> dict[str, Any]:
        assert self._instance is not None
        inputs = pickle.loads(base64.b64decode(pickled))
        with self._shim.mode(), without_values():
            self._instance(inputs)
            first = len(self._recorder.launches)
            with OpCounter() as counter:
                self._instance(inputs)
        launches = [launch for launch in self._recorder.launches[first:] if not launch.spare]
        works = [work_of_op(op, precision) for op in counter.ops]
        works += [self._work(launch) for launch in launches]
        launched = [{"kernel": launch.kernel.name, "grid": launch.grid} for launch in launches]
        return {"works": [asdict(work) for work in works], "launched": launched}

    def _work(self, launch: Launch) -> Work:
        """What a launch does; where that cannot be found out, what its tensors take to pass by."""
        try:
            return self._dry_runs.work(launch)
        except Exception:  # noqa: BLE001 - a kernel of the candidate, run on no data
            total = float(
                sum(t.untyped_storage().nbytes() for t in tensors_in(launch.args.values()))
            )
            return Work(total, total, {}, partial=True)
