"""Ways to run a model, such as eager or compiled, and their times in interleaved rounds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from statistics import fmean, median
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch._dynamo import config as dynamo_config
from torch._inductor.cudagraph_trees import reset_cudagraph_trees

from adaexplore.core.problem import Precision
from adaexplore.core.replacement import Ratio
from adaexplore.evaluate.timing.baselines.compiling import compiling_lent
from adaexplore.evaluate.timing.cuda_graph import put_back_after_failure
from adaexplore.evaluate.timing.statistics import median_interval
from adaexplore.evaluate.truth.device_memory.room import release_memory
from adaexplore.evaluate.truth.precision import baseline_scope
from adaexplore.model.calls import ModelCall
from adaexplore.model.graphs import CapturedCall, capture_call
from adaexplore.model.placements import Placements
from adaexplore.sandbox.lock import device_lock
from adaexplore.sandbox.user.user_code import is_out_of_memory

EAGER = "eager"
GRAPH = "cuda graph"
_COMPILE: Mapping[str, str | None] = {
    "compile": None,
    "reduce-overhead": "reduce-overhead",
    "max-autotune": "max-autotune",
}
_CAPTURING = ("reduce-overhead", "max-autotune")
_TRIALS = 5
_ROUNDS = 15
_WARM_UPS = 3  # of what Inductor records in graphs
_MOST_COMPILATIONS = 1000  # of one function; beyond Dynamo's own limit, a model runs uncompiled

Run = Callable[[ModelCall], Any]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Fastest:
    """A model with some candidates in place: for each call the fastest way, and all times."""

    names: frozenset[str]
    runs: tuple[Run, ...]
    ways: tuple[str, ...]
    times_us: tuple[Mapping[str, float], ...]

    def compilations(self, most: int) -> frozenset[str]:
        """Return the `most` fastest kinds of compilation of each call."""
        kinds = [sorted(t.keys() & _COMPILE.keys(), key=t.__getitem__) for t in self.times_us]
        return frozenset(kind for each in kinds for kind in each[:most])


@dataclass(frozen=True, slots=True)
class _Replay:
    """A captured call as a way to run a model: on its own arguments, which are like those given."""

    captured: CapturedCall

    def __call__(self, _: ModelCall) -> Any:
        return self.captured()


class Stopwatch:
    """Times a model end to end, with and without candidates in place.

    `listen` is told each call and way before it is built, which may take minutes.
    """

    def __init__(
        self,
        model: nn.Module,
        calls: Sequence[ModelCall],
        placements: Placements,
        precision: Precision,
        device: str,
        listen: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._model = model
        self._calls = calls
        self._placements = placements
        self._precision = precision
        self._device = device
        self._listen = listen
        self._resets = 0
        self._warm_since: WeakKeyDictionary[Fastest, int] = WeakKeyDictionary()

    def fastest(self, names: Collection[str], kinds: Collection[str] = tuple(_COMPILE)) -> Fastest:
        """Try every way to run each call with the candidates of `names` in place.

        Of the kinds of compilation, only those in `kinds`.
        """
        builders = {
            way: build
            for way, build in self._builders().items()
            if way in kinds or way not in _COMPILE
        }
        resets = self._resets
        found = [self._fastest(call, names, builders) for call in self._calls]
        fastest = Fastest(
            frozenset(names),
            tuple(run for run, _, _ in found),
            tuple(way for _, way, _ in found),
            tuple(times for _, _, times in found),
        )
        self._warm_since[fastest] = resets
        return fastest

    def ratio(self, before: Fastest, after: Fastest) -> tuple[Ratio, list[float]]:
        """Return the speedup from one to the other, and the times of the calls after, in us.

        A round times every call of both; its ratio is the geometric mean over the calls.
        """
        rounds, times = [], []
        self._warm_up(before)
        self._warm_up(after)
        for _ in range(_ROUNDS):
            with self._alone():
                row = [
                    (self._time_us(before, i), self._time_us(after, i))
                    for i in range(len(self._calls))
                ]
            rounds.append(math.exp(fmean(math.log(one / other) for one, other in row)))
            times.append([other for _, other in row])
        low, high = median_interval(rounds)
        return Ratio(median(rounds), low, high), [median(t) for t in zip(*times, strict=True)]

    def _time_us(self, state: Fastest, index: int) -> float:
        with self._placements.only(state.names), self._scope():
            return self._once_us(state.runs[index], self._calls[index])

    def _fastest(
        self,
        call: ModelCall,
        names: Collection[str],
        builders: Mapping[str, Callable[[ModelCall], Run]],
    ) -> tuple[Run, str, Mapping[str, float]]:
        runs: dict[str, Run] = {}
        times: dict[str, float] = {}
        takes_part = False
        with self._placements.only(names), self._scope():
            for way, build in builders.items():
                if names and way in _CAPTURING and GRAPH in builders and GRAPH not in times:
                    continue  # the candidates cannot be captured
                self._listen(f"{call.name}: {way}")
                before = self._placements.runs
                try:
                    with self._put_back_after_failure():
                        with self._shared():
                            run = build(call)
                            run(call.copied())
                        with self._alone():
                            samples = [self._once_us(run, call) for _ in range(_TRIALS)]
                except Exception as error:
                    if way == EAGER:
                        raise
                    if is_out_of_memory(error):
                        release_memory()
                    elif way in _CAPTURING:
                        self._compile_anew()
                    continue  # a way that this model cannot be run in
                ran = self._placements.runs > before
                takes_part |= ran and way == EAGER
                if takes_part and not ran:
                    continue  # this way left the candidates out
                runs[way], times[way] = run, median(samples)
        best = min(times, key=lambda way: times[way])
        return runs[best], best, times

    def _builders(self) -> dict[str, Callable[[ModelCall], Run]]:
        builders: dict[str, Callable[[ModelCall], Run]] = {EAGER: lambda _: self._eager}
        kinds = [*_COMPILE] if self._device != "cpu" else ["compile"]
        if self._device != "cpu":
            builders[GRAPH] = self._graph
        return builders | {kind: self._compiling(kind) for kind in kinds}

    def _eager(self, call: ModelCall) -> Any:
        return self._model(*call.args, **call.kwargs)

    def _compiling(self, kind: str) -> Callable[[ModelCall], Run]:
        def build(_: ModelCall) -> Run:
            model = self._model
            run = _apart(lambda *args, **kwargs: model(*args, **kwargs))
            compiled = torch.compile(run, dynamic=False, mode=_COMPILE[kind])
            return lambda call: compiled(*call.args, **call.kwargs)

        return build

    def _graph(self, call: ModelCall) -> Run:
        return _Replay(capture_call(self._eager, call, self._device))

    def _once_us(self, run: Run, call: ModelCall) -> float:
        """Return the time of the second of two runs, from the call to the end on the device."""
        run(call.copied())
        own = call.copied()
        if isinstance(run, _Replay):
            run.captured.reset()
        self._wait()
        start = time.perf_counter_ns()
        run(own)
        self._wait()
        return (time.perf_counter_ns() - start) / 1000.0

    def _alone(self) -> AbstractContextManager[None]:
        """Hold the device: no search times or works on it meanwhile."""
        return device_lock(self._device, exclusive=True)

    @contextmanager
    def _shared(self) -> Iterator[None]:
        """Use the device while nobody times on it, and lend it while Inductor compiles."""
        with device_lock(self._device, exclusive=False), compiling_lent(self._device):
            yield

    def _compile_anew(self) -> None:
        """Forget all that is compiled: a failed capture leaves Inductor's memory pool unusable."""
        torch.compiler.reset()
        reset_cudagraph_trees()
        self._resets += 1

    def _warm_up(self, state: Fastest) -> None:
        """Compile what runs a state, and record its graphs, if they were forgotten."""
        if self._warm_since[state] == self._resets:
            return
        self._warm_since[state] = self._resets
        with self._placements.only(state.names), self._scope(), self._shared():
            for run, call in zip(state.runs, self._calls, strict=True):
                for _ in range(_WARM_UPS):
                    run(call.copied())

    def _put_back_after_failure(self) -> AbstractContextManager[None]:
        """See `cuda_graph`; Inductor captures too."""
        return nullcontext() if self._device == "cpu" else put_back_after_failure(self._device)

    def _wait(self) -> None:
        if self._device != "cpu":
            torch.cuda.synchronize(self._device)

    @contextmanager
    def _scope(self) -> Iterator[None]:
        compiling = dynamo_config.patch(
            recompile_limit=_MOST_COMPILATIONS, accumulated_recompile_limit=_MOST_COMPILATIONS
        )
        with compiling, scope_of(self._model, self._precision, self._device):
            yield


def scope_of(model: nn.Module, precision: Precision, device: str) -> AbstractContextManager[None]:
    """Return the scope in which a model runs in a precision class, as it is timed."""
    is_half = any(p.dtype in (torch.float16, torch.bfloat16) for p in model.parameters())
    return baseline_scope(precision, device, autocast=not is_half)


def _apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with code of its own, by which Dynamo keeps what it has compiled.

    So what one way compiled for some candidates is there when it is timed beside another's.
    """
    assert isinstance(function, FunctionType)
    function.__code__ = function.__code__.replace()
    return function
