"""The time of every module of a model in its calls, with and without its inner modules."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from adaexplore.evaluate.timing.clock import timing_event
from adaexplore.model.calls import ModelCall
from adaexplore.model.hooks import hooked
from adaexplore.sandbox.lock import device_lock

_WARM_UPS = 2
_AGREE = 3  # so many passes as fast as the fastest, about, end the repetition
_ABOUT = 1.1
_MOST_PASSES = 100
_MOST_S = 5.0


@dataclass(frozen=True, slots=True)
class ModuleTime:
    """The time of a module in one call of the model; `own_us` leaves out its inner modules."""

    time_us: float
    own_us: float


@dataclass(frozen=True, slots=True)
class CallProfile:
    """The times of the modules in one call of the model, by their paths; the model's is ""."""

    name: str
    modules: dict[str, ModuleTime]

    @property
    def time_us(self) -> float:
        """The time of the call."""
        return self.modules[""].time_us


@dataclass(slots=True)
class _Frame:
    """One call of a module: four stamps, the outer two before and after the work of the hooks."""

    path: str
    entered: Any
    started: Any = None
    stopped: Any = None
    left: Any = None
    inner: list[_Frame] = field(default_factory=list)


class _Stopwatch:
    """Stamps around the calls of modules: wall time on the CPU, events on a GPU.

    The work of the hooks is in no module's time.
    """

    def __init__(self, device: str) -> None:
        self._on_gpu = device != "cpu"
        self._device = device
        self._open: list[_Frame] = []
        self._roots: list[_Frame] = []

    def enter(self, path: str, *_: Any) -> None:
        """Stamp the beginning of a call."""
        frame = _Frame(path, self._stamp())
        (self._open[-1].inner if self._open else self._roots).append(frame)
        self._open.append(frame)
        frame.started = self._stamp()

    def leave(self, path: str) -> None:
        """Stamp the end of a call."""
        stopped = self._stamp()
        while (frame := self._open.pop()).path != path:  # calls that an exception ended
            frame.stopped = frame.left = stopped
        frame.stopped = stopped
        frame.left = self._stamp()

    def times(self) -> dict[str, ModuleTime]:
        """Return the times by path."""
        if self._on_gpu:
            torch.cuda.synchronize(self._device)
        total: dict[str, float] = defaultdict(float)
        own: dict[str, float] = defaultdict(float)
        for root in self._roots:
            self._add(root, total, own)
        return {path: ModuleTime(total[path], own[path]) for path in total}

    def _add(self, frame: _Frame, total: dict[str, float], own: dict[str, float]) -> float:
        away_us = sum(self._between(each.entered, each.left) for each in frame.inner)
        own_us = max(self._between(frame.started, frame.stopped) - away_us, 0.0)
        whole_us = own_us + sum(self._add(each, total, own) for each in frame.inner)
        own[frame.path] += own_us
        total[frame.path] += whole_us
        return whole_us

    def _stamp(self) -> Any:
        if not self._on_gpu:
            return time.perf_counter_ns()
        event = timing_event()
        event.record()
        return event

    def _between(self, one: Any, other: Any) -> float:
        if self._on_gpu:
            return 1000.0 * float(one.elapsed_time(other))
        return float(other - one) / 1000.0


def profile(model: nn.Module, calls: Sequence[ModelCall], device: str) -> list[CallProfile]:
    """Run every call until its fastest passes agree, and return the least times of the modules.

    Other programs only add to a time, now to this module and now to that.
    Raises `BadInputError` where the model raises.
    """
    return [_profile(model, call, device) for call in calls]


def _profile(model: nn.Module, call: ModelCall, device: str) -> CallProfile:
    with device_lock(device, exclusive=False):
        for _ in range(_WARM_UPS):
            call.copied().run(model)
    with device_lock(device, exclusive=True):
        passes = _passes(model, call, device)
    paths = dict.fromkeys(path for one in passes for path in one)
    nothing = ModuleTime(0.0, 0.0)
    rows = {path: [one.get(path, nothing) for one in passes] for path in paths}
    return CallProfile(
        call.name,
        {
            path: ModuleTime(min(t.time_us for t in row), min(t.own_us for t in row))
            for path, row in rows.items()
        },
    )


def _passes(model: nn.Module, call: ModelCall, device: str) -> list[dict[str, ModuleTime]]:
    passes: list[dict[str, ModuleTime]] = []
    end = time.monotonic() + _MOST_S
    while len(passes) < _MOST_PASSES and (len(passes) < _AGREE or time.monotonic() < end):
        passes.append(_timed(model, call.copied(), device))
        times = sorted(each[""].time_us for each in passes)
        if len(times) >= _AGREE and times[_AGREE - 1] <= _ABOUT * times[0]:
            break
    return passes


def _timed(model: nn.Module, call: ModelCall, device: str) -> dict[str, ModuleTime]:
    watch = _Stopwatch(device)
    with hooked(model, watch.enter, watch.leave):
        call.run(model)
    return watch.times()
