"""Capture of kernels and launches at the points where Triton compiles and starts them.

Pins `triton.compiler.compile`, `JITFunction.run` (which calls the result of `compile`),
`Autotuner.run` and, where it is loaded, Helion's `BoundKernel.autotune`. The candidate's module is
loaded once, with its `@triton.jit` functions unchanged. The recorder's `runner` decides the effect
of a launch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import triton.compiler
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from adaexplore.evaluate.kernels.launcher import checked_grid, has_allocator


@dataclass(frozen=True)
class CapturedKernel:
    """One specialisation of a kernel: the input of Triton's compiler.

    `source` is Triton's `ASTSource` (function, signature, constants, alignments); `options` holds
    all options, such as num_warps.
    """

    source: Any
    options: dict[str, Any]
    key: str

    @property
    def name(self) -> str:
        """The function's name."""
        return str(self.source.name)

    @property
    def function(self) -> JITFunction[Any]:
        """The `@triton.jit` function."""
        return self.source.fn


@dataclass(frozen=True)
class CapturedLaunch:
    """One start of a kernel; `args` holds the values of all its parameters by name.

    `spare` marks an alternative configuration, which an autotuner could choose in place of the last
    launch that is not spare. `has_allocator` tells that a kernel which needs scratch memory would
    get it.
    """

    kernel: CapturedKernel
    grid: tuple[int, int, int]
    args: dict[str, Any]
    spare: bool = False
    has_allocator: bool = False


Runner = Callable[[CapturedLaunch], None]
"""The effect of a launch: its interpretation, or nothing."""


@dataclass
class Recorder:
    """The launches of a candidate, in order; `runner` runs each.

    With `all_configurations`, every configuration of an autotuned kernel is recorded; the first
    configuration is the launch itself.
    """

    runner: Runner
    all_configurations: bool = False
    launches: list[CapturedLaunch] = field(default_factory=list)
    _spare: bool = False

    def install(self) -> None:
        """Catch every launch in this process from now on."""
        recorder = self

        def compile_nothing(
            source: Any, target: Any = None, options: Any = None, **_: Any
        ) -> _CaughtKernel:
            del target  # the target of the driver, which made the options
            options = dict(options or {})
            key = f"{source.hash()}-{sorted(options.items(), key=str)}"
            return _CaughtKernel(CapturedKernel(source, options, key), recorder)

        def run_autotuned(autotuner: Any, *args: Any, **kwargs: Any) -> Any:
            return recorder.run_autotuned(autotuner, args, kwargs)

        triton.compiler.compile = compile_nothing
        triton.compiler.compiler.compile = compile_nothing
        Autotuner.run = run_autotuned
        helion = sys.modules.get("helion.runtime.kernel")
        if helion is not None:
            recorder._patch_autotune(helion.BoundKernel)

    def launch(self, kernel: CapturedKernel, grid: Sequence[Any], values: tuple[Any, ...]) -> None:
        """Record one launch and run it; raises the exceptions of `launcher.checked_grid`."""
        args = dict(zip(kernel.function.arg_names, values, strict=True))
        programs = checked_grid(kernel.name, grid, kernel.options["num_ctas"])
        launch = CapturedLaunch(kernel, programs, args, self._spare, has_allocator())
        self.launches.append(launch)
        if not self._spare:
            self.runner(launch)

    def run_autotuned(self, tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the first configuration that the tuner would try, without timing."""
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        first, *others = tuner.prune_configs(kwargs) if len(tuner.configs) > 1 else tuner.configs
        tuner.best_config = first
        full = {**tuner.nargs, **kwargs, **first.all_kwargs()}
        if first.pre_hook is not None:
            first.pre_hook(full)
        tuner.pre_hook(full, reset_only=True)
        result = tuner.fn.run(*args, **kwargs, **first.all_kwargs())
        for config in others if self.all_configurations else ():
            self._try(partial(tuner.fn.run, *args, **kwargs, **config.all_kwargs()))
        tuner.nargs = None
        return result

    def _patch_autotune(self, bound_kernel: Any) -> None:
        """Make Helion's kernels take their first configuration, without timing."""
        search = bound_kernel.autotune

        def autotune(bound: Any, args: Sequence[Any], **kwargs: Any) -> Any:
            if not bound.configs:
                return search(bound, args, **kwargs)
            first, *others = bound.configs
            bound.set_config(first)
            bound.compile_config(first)(*args)
            for config in others if self.all_configurations else ():
                self._try(partial(bound.compile_config(config), *args))
            return first

        bound_kernel.autotune = autotune

    def _try(self, launch: Callable[[], object]) -> None:
        """Record the launches of `launch` as alternatives to the last launch."""
        self._spare = True
        try:
            launch()
        finally:
            self._spare = False


class _CaughtKernel:
    """A stand-in for the compiled kernel that `JITFunction.run` expects."""

    function = None
    packed_metadata = None

    def __init__(self, kernel: CapturedKernel, recorder: Recorder) -> None:
        self._kernel = kernel
        self._recorder = recorder

    def launch_metadata(self, *_: Any) -> None:
        return None

    def run(self, x: Any, y: Any, z: Any, *rest: Any) -> None:
        _stream, _function, _packed, _metadata, _enter, _exit, *values = rest
        self._recorder.launch(self._kernel, (x, y, z), tuple(values))
