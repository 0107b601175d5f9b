"""The candidate's process without a GPU: interpretation at small sizes, compilation at full size.

It decides nothing. It reports compilation and resources as Triton's compiler in this process gives
them; the judge compares the outputs.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch

from adaexplore.core.problem import Precision
from adaexplore.evaluate.candidate import worker
from adaexplore.evaluate.kernels import driver
from adaexplore.evaluate.kernels.capture import CapturedKernel, CapturedLaunch, Recorder
from adaexplore.evaluate.kernels.count import OpCounter, without_values
from adaexplore.evaluate.kernels.launches import Launches
from adaexplore.evaluate.kernels.own_compilers import capture_launches, resources_of
from adaexplore.evaluate.kernels.resources import compile_any
from adaexplore.evaluate.kernels.targets import TARGETS, Target
from adaexplore.evaluate.kernels.torch_shim import Shim
from adaexplore.evaluate.offline.estimate import DryRuns, work_of_op
from adaexplore.evaluate.offline.interpreter import Interpreter
from adaexplore.evaluate.offline.memory import TensorMemory, tensors_in
from adaexplore.evaluate.truth.tf32 import EmulatedTf32
from adaexplore.evaluate.wire import offline_messages as wire
from adaexplore.evaluate.wire.kernel_messages import RunUnlaunched
from adaexplore.evaluate.wire.messages import Load, Pickled, Rebuild, Request, RunOn, decode
from adaexplore.languages.base import CompiledLaunch
from adaexplore.sandbox.channel import Channel

_DRY_LAUNCH_S = 5.0


def main(channel: Channel, control: Channel | None) -> None:  # noqa: ARG001 - worker signature
    """Answer `Begin`, then requests until the channel closes; a worker's entry.

    On the device "cpu", launches are interpreted; on "meta", they are only recorded.
    """
    request = decode(channel.receive())
    assert isinstance(request, wire.Begin)
    target = TARGETS[request.target]
    driver.install(target)
    torch.set_num_threads(1)
    if request.device == "meta":
        session: worker.CandidateSession = CaptureSession(target)
    else:
        session = InterpretSession(target, request.launch_s)
    channel.send({})
    worker.serve(channel, session)


class CompilingSession(worker.CandidateSession):
    """A candidate on a pretended GPU; its kernels can be compiled after their launch.

    The session also answers `ListKernels` and `CompileKernel`.
    """

    def __init__(self, target: Target, recorder: Recorder, shim: Shim) -> None:
        self._target = target
        self._recorder = recorder
        self._shim = shim
        self._own: dict[CompiledLaunch, None] = {}
        """The launches of other compilers than Triton's, each once."""

        shim.install()
        recorder.install()
        capture_launches(target, lambda launch: self._own.setdefault(launch))
        super().__init__()  # from now on, replaced functions are detected

    def answer(self, request: Request[Any], fds: list[int]) -> Any:
        """Run one request and return its reply."""
        match request:
            case wire.ListKernels():
                launched = [kernels[0].name for kernels in self._kernels()]
                return wire.KernelNames((*launched, *(own.kernel for own in self._own)))
            case wire.CompileKernel():
                return self._compiled(request.kernel)
            case _:
                return super().answer(request, fds)

    def _compiled(self, number: int) -> wire.CompiledKernel:
        launched = self._kernels()
        if number < len(launched):
            resources = compile_any(launched[number], self._target)
            return wire.CompiledKernel(resources, self._has_allocator(launched[number][0]))
        own = list(self._own)[number - len(launched)]
        return wire.CompiledKernel(resources_of(own, self._target), has_allocator=False)

    def _has_allocator(self, kernel: CapturedKernel) -> bool:
        """Return True if every launch of a kernel has an allocator for scratch memory."""
        launches = self._recorder.launches
        return all(each.has_allocator for each in launches if each.kernel.key == kernel.key)

    def _kernels(self) -> list[list[CapturedKernel]]:
        """Return the kernels launched so far, each with its alternative configurations."""
        found: dict[str, list[CapturedKernel]] = {}
        group: list[CapturedKernel] = []
        for launch in self._recorder.launches:
            if launch.spare:
                group.append(launch.kernel)
            else:
                group = found.setdefault(launch.kernel.key, [])
                group[:] = [launch.kernel]
        return list(found.values())


class InterpretSession(CompilingSession):
    """A candidate whose kernels are interpreted, with at most `launch_s` seconds for a launch."""

    def __init__(self, target: Target, launch_s: float) -> None:
        interpreter = Interpreter()
        self._held_back: Launches | None = None

        def interpret(launch: CapturedLaunch) -> None:
            if self._held_back is not None:
                self._held_back.count += 1
                return
            interpreter.run(launch, TensorMemory(launch.args.values()), seconds=launch_s)

        recorder = Recorder(interpret, all_configurations=True)
        super().__init__(target, recorder, Shim(target, Path.cwd(), "cpu"))
        self._rounds_products = False

    def answer(self, request: Request[Any], fds: list[int]) -> Any:
        """Run one request; while the candidate's code runs, a GPU is pretended."""
        if isinstance(request, Load):
            self._rounds_products = request.precision != "fp32"
        if not isinstance(request, Load | RunOn | Rebuild | RunUnlaunched):
            return super().answer(request, fds)
        with ExitStack() as pretended:
            pretended.enter_context(self._shim.mode())
            if self._rounds_products:
                pretended.enter_context(EmulatedTf32())
            return super().answer(request, fds)

    @contextmanager
    def without_launches(self) -> Iterator[Launches]:
        """Let no Triton kernel be interpreted in the body; count the launches."""
        self._held_back = Launches()
        try:
            yield self._held_back
        finally:
            self._held_back = None


class CaptureSession(CompilingSession):
    """A candidate on meta tensors of full size: its launches are recorded, nothing is computed.

    `Capture` calls twice and reports the work of the second call, which has no set-up.
    """

    def __init__(self, target: Target) -> None:
        recorder = Recorder(lambda _: None, all_configurations=True)
        self._dry_runs = DryRuns(Interpreter(), _DRY_LAUNCH_S)
        super().__init__(target, recorder, Shim(target, Path.cwd(), "meta"))

    def answer(self, request: Request[Any], fds: list[int]) -> Any:
        """Run one request and return its reply."""
        match request:
            case Load():
                with self._shim.mode(), without_values():
                    return super().answer(request, fds)
            case wire.Capture():
                return self._capture(request.inputs, request.precision)
            case _:
                return super().answer(request, fds)

    def _capture(self, pickled: Pickled, precision: Precision) -> wire.CapturedWork:
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
        launched = (wire.CapturedGrid(each.kernel.name, tuple(each.grid)) for each in launches)
        return wire.CapturedWork(tuple(works), tuple(launched))

    def _work(self, launch: CapturedLaunch) -> wire.KernelWork:
        """Return the work of a launch; if it is unknown, one pass over its tensors."""
        try:
            return self._dry_runs.work(launch)
        except Exception:  # noqa: BLE001 - a kernel of the candidate, run without data
            total = float(
                sum(t.untyped_storage().nbytes() for t in tensors_in(launch.args.values()))
            )
            return wire.KernelWork(total, total, {}, partial=True)
