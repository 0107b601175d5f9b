"""Compilation by Inductor in the middle of using a device: others may use it meanwhile."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import Any

import torch._inductor.compile_fx as inductor
from torch._dynamo.callback import CallbackArgs, CallbackTrigger, callback_handler
from torch._inductor.runtime import benchmarking

from adaexplore.sandbox.compile_threads import templates_in_threads
from adaexplore.sandbox.lock import device_lent, device_taken_back

TOO_LONG = 75
"""Exit code of a process that has compiled for longer than its limit."""


class CompileLimit:
    """Seconds that Inductor may compile in this process, which ends with `TOO_LONG` after them.

    An exception would leave Inductor's state unfinished.
    """

    def __init__(self, limit_s: float) -> None:
        self._left_s = limit_s
        self._since = 0.0
        self._timer: threading.Timer | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the time run during the body."""
        self._start()
        try:
            yield
        finally:
            self._stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hold the time during the body, if it runs."""
        if self._timer is None:
            yield
            return
        self._stop()
        try:
            yield
        finally:
            self._start()

    def _start(self) -> None:
        self._since = time.monotonic()
        self._timer = threading.Timer(self._left_s, os._exit, [TOO_LONG])
        self._timer.daemon = True
        self._timer.start()

    def _stop(self) -> None:
        assert self._timer is not None
        self._timer.cancel()
        self._timer = None
        self._left_s -= time.monotonic() - self._since


@contextmanager
def compiling_lent(device: str, limit: CompileLimit | None = None) -> Iterator[None]:
    """Lend the device to other processes while Dynamo traces and Inductor compiles.

    Both take seconds to minutes, in which whoever waits to time would wait for this process. The
    device is taken back for each kernel that Inductor times; see `templates_in_threads` too. Pins
    `torch._inductor.compile_fx.compile_fx`, which `torch.compile` looks up for every graph, and
    `benchmark_gpu` of `torch._inductor.runtime.benchmarking.benchmarker`, by which Inductor times.
    """
    benchmarker: Any = benchmarking.benchmarker
    compile_graph, time_kernel = inductor.compile_fx, benchmarker.benchmark_gpu
    is_compiling = False

    def compile_meanwhile(*args: Any, **kwargs: Any) -> Any:
        nonlocal is_compiling
        if is_compiling:  # the options of a mode are set by a call within the call
            return compile_graph(*args, **kwargs)
        is_compiling = True
        try:
            with device_lent(device), limit.running() if limit else nullcontext():
                return compile_graph(*args, **kwargs)
        finally:
            is_compiling = False

    def time_by_turns(*args: Any, **kwargs: Any) -> Any:
        with limit.paused() if limit else nullcontext(), device_taken_back(device):
            return time_kernel(*args, **kwargs)

    inductor.compile_fx, benchmarker.benchmark_gpu = compile_meanwhile, time_by_turns
    try:
        with templates_in_threads(), _tracing_lent(device):
            yield
    finally:
        inductor.compile_fx = compile_graph
        del benchmarker.benchmark_gpu  # its class has one


@contextmanager
def _tracing_lent(device: str) -> Iterator[None]:
    """Lend the device from the moment when Dynamo begins with a frame until its code is there."""
    lent = ExitStack()

    def lend(event: CallbackArgs) -> None:
        if event.callback_trigger is CallbackTrigger.DYNAMO:  # a recorded graph needs the device
            lent.enter_context(device_lent(device))

    def take_back(_: CallbackArgs) -> None:
        lent.close()

    callback_handler.register_start_callback(lend)
    callback_handler.register_end_callback(take_back)
    try:
        yield
    finally:
        with suppress(ValueError):  # `torch.compiler.reset()` in the body removes all
            callback_handler.remove_start_callback(lend)
            callback_handler.remove_end_callback(take_back)
        lent.close()
