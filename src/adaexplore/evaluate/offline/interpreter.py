"""Interpretation of a launch on the CPU, program by program. Pins `triton.runtime.interpreter`.

Triton's interpreter runs a kernel's Python on NumPy arrays. This module gives it a builder that
corrects its arithmetic (`builder.Builder`), rewritten copies of the functions of the candidate's
module, and memory with checked bounds (`memory.Memory`).
"""

from __future__ import annotations

import ast
import inspect
import time
import types
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, partialmethod
from typing import Any

import numpy as np
import triton.language as tl
from triton.backends.compiler import BaseBackend
from triton.compiler.compiler import make_backend
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from adaexplore.evaluate.kernels.capture import CapturedLaunch
from adaexplore.evaluate.kernels.targets import NeedsGpuError
from adaexplore.evaluate.offline.builder import Builder, Reduce, Scan, SlowInterpretationError
from adaexplore.evaluate.offline.memory import Array, Memory

_BY_ELEMENT = "map_elementwise"
_BETWEEN_LAUNCHES = {"gdc_wait", "gdc_launch_dependents"}
"""Functions that order overlapping launches; here launches do not overlap."""


class Interpreter:
    """The interpreter of launches; one per process, because Triton's interpreter is global."""

    def __init__(self) -> None:
        backend: BaseBackend = make_backend(driver.active.get_current_target())
        self._builder = Builder(backend.parse_options({}))
        interpreter.interpreter_builder = self._builder
        interpreter.interpreter_semantic = TritonSemantic(self._builder)
        interpreter.ReduceOps, interpreter.ScanOps = Reduce, Scan
        self._libraries: dict[str, types.ModuleType] = backend.get_module_map()
        self._rewritten: dict[int, tuple[JITFunction[Any], Any]] = {}

    @property
    def flops(self) -> Mapping[str, int]:
        """FLOPs of the interpreted part of the last launch (see `Builder.flops`)."""
        return self._builder.flops

    def run(
        self,
        launch: CapturedLaunch,
        memory: Memory,
        *,
        seconds: float = float("inf"),
        programs: Iterable[int] | None = None,
    ) -> int:
        """Run programs of a launch (by number; all by default); return the number of programs run.

        Raises `NeedsGpuError` for a kernel in Gluon, `builder.SlowInterpretationError` after
        `seconds`, `memory.OutOfBoundsError`, and any exception of the kernel's Python.
        """
        function = launch.kernel.function
        if function.is_gluon():
            raise NeedsGpuError(f"{launch.kernel.name} is in Gluon, which runs on a GPU only")
        constants = {p.name for p in function.params if p.is_constexpr}
        arguments = {
            name: _plain(value) if name in constants else interpreter._implicit_cvt(value)
            for name, value in launch.args.items()
        }
        x, y, z = launch.grid
        deadline = time.monotonic() + seconds
        count = 0
        with self._patched(), np.errstate(all="ignore"):
            call = self._rewrite(function)
            self._builder.begin(launch, memory, deadline)
            for number in range(x * y * z) if programs is None else programs:
                if time.monotonic() > deadline:
                    raise SlowInterpretationError(
                        f"{launch.kernel.name}: {count} of {x * y * z} programs interpreted "
                        f"in {seconds:g} s"
                    )
                self._builder.set_grid_idx(number // (y * z), number // z % y, number % z)
                call(**arguments)
                count += 1
        return count

    @contextmanager
    def _patched(self) -> Iterator[None]:
        """Patch Triton's language for the interpreter while a launch runs."""
        marker = types.FunctionType((lambda: None).__code__, {"tl": tl, "core": tl.core})
        scope = interpreter._patch_lang(marker)
        scope.set_attr(tl.tensor, "__index__", lambda t: int(t.handle.data.item()))
        for name, library in self._libraries.items():
            interpreter._patch_builtin(library, self._builder, scope)
            stub = inspect.importlib.import_module(name)  # type: ignore[attr-defined]
            for symbol in vars(stub).keys() & vars(library).keys():
                if not symbol.startswith("__"):
                    scope.set_attr(stub, symbol, getattr(library, symbol))
        scope.set_attr(JITFunction, "__call__", lambda f, *a, **k: self._rewrite(f)(*a, **k))
        if hasattr(tl, _BY_ELEMENT):
            for module in (tl, tl.core):
                scope.set_attr(module, _BY_ELEMENT, _map_elementwise)
        for name in _BETWEEN_LAUNCHES & vars(tl.extra.cuda).keys():
            scope.set_attr(tl.extra.cuda, name, lambda **_: None)
        for name, member in list(vars(tl.tensor).items()):
            if isinstance(member, JITFunction):  # `x.sum()`: a JITFunction does not bind
                scope.set_attr(tl.tensor, name, partialmethod(member))
        try:
            yield
        finally:
            scope.restore()

    def _rewrite(self, function: JITFunction[Any]) -> Any:
        entry = self._rewritten.get(id(function))
        if entry is None:
            entry = (function, _Rewriter(function, self._libraries).rewrite_ast())
            self._rewritten[id(function)] = entry  # with the function, so that its id stays taken
        return entry[1]


class _Transformer(interpreter.ASTTransformer):  # type: ignore[misc]
    """Triton's rewriting of a function, with loop variables as Triton's numbers."""

    def visit_For(self, node: ast.For) -> ast.For:  # noqa: N802 - the base class's name
        """Make the variable of a loop over `range` or `tl.range` an int32, not Python's integer."""
        self.generic_visit(node)
        match node:
            case ast.For(
                target=ast.Name(id=name),
                iter=ast.Call(func=ast.Name(id="range") | ast.Attribute(attr="range")),
            ):
                convert = f"{name} = interpreter_semantic.to_tensor({name}, False)"
                node.body.insert(0, ast.copy_location(ast.parse(convert).body[0], node))
        return node


class _Rewriter(interpreter.FunctionRewriter):  # type: ignore[misc]
    """The rewriting of a function for the interpreter, with a copy of its globals."""

    ast_transformer = _Transformer()

    def __init__(self, function: JITFunction[Any], libraries: dict[str, types.ModuleType]) -> None:
        super().__init__(function.fn)
        self._libraries = libraries

    def _get_jit_fn_file_line(self) -> tuple[str, int]:
        lines, first = inspect.getsourcelines(self.fn)
        return self.fn.__code__.co_filename, first + self._find_def(lines) - 1

    def _compile_and_exec(self, tree: Any) -> Any:
        cells = zip(self.fn.__code__.co_freevars, self.fn.__closure__ or (), strict=True)
        names = self.fn.__globals__ | {name: cell.cell_contents for name, cell in cells}
        scope = vars(interpreter) | {name: self._adapted(value) for name, value in names.items()}
        local: dict[str, Any] = {}
        exec(compile(tree, self.filename, "exec"), scope, local)
        return local[self.fn.__name__]

    def _adapted(self, value: Any) -> Any:
        """Return a global in the form that interpreted code needs."""
        if isinstance(value, tl.constexpr):
            return value.value
        if isinstance(value, types.ModuleType):
            return self._libraries.get(value.__name__, value)
        if isinstance(value, types.FunctionType):
            library = self._libraries.get(value.__module__)
            if library is not None:
                value = getattr(library, value.__name__, value)
            if value.__name__ == _BY_ELEMENT and tl.core.is_builtin(value):
                return _map_elementwise
            if tl.core.is_builtin(value):  # imported by name, out of reach of the patches
                return partial(value, _semantic=interpreter.interpreter_semantic)
        return value


class _DivergedError(Exception):
    """Elements that are computed together take different branches; `taken` marks one branch."""

    def __init__(self, taken: Array) -> None:
        self.taken = taken


@contextmanager
def _agreeing() -> Iterator[None]:
    """Evaluate conditions in the body only where all elements agree."""
    before = tl.tensor.__bool__
    tl.tensor.__bool__ = _truth
    try:
        yield
    finally:
        tl.tensor.__bool__ = before


def _truth(condition: tl.tensor) -> bool:
    """Return a condition's value, on which all elements agree, or raise `_DivergedError`."""
    found = condition.handle.data.astype(bool).ravel()
    if found.all() == found.any():
        return bool(found.all())
    raise _DivergedError(found)


def _map_elementwise(function: Any, *args: Any, pack: Any = 1) -> Any:
    """Implement `tl.map_elementwise`, which Triton's interpreter lacks.

    One call computes all elements that take the same branches. Where the branches differ, the
    function is called again for each part.
    """
    pack = _plain(pack)
    blocks = interpreter.interpreter_semantic.broadcast_tensors(*args)
    shape = blocks[0].handle.data.shape
    scalars = [
        (block.handle.data.reshape(-1, pack)[:, at], block.dtype)
        for block in blocks
        for at in range(pack)
    ]
    is_single = True
    results: list[Array] = []
    dtypes: list[Any] = []
    parts = [np.arange(blocks[0].handle.data.size // pack)]
    while parts:
        part = parts.pop()
        try:
            with _agreeing():
                found = function(*(_tensor(data[part], dtype) for data, dtype in scalars))
        except _DivergedError as diverged:
            parts += [part[diverged.taken], part[~diverged.taken]]
            continue
        is_single = isinstance(found, tl.tensor)
        returned = [found] if is_single else list(found)
        if not results:
            dtypes = [value.dtype for value in returned]
            results = [np.empty(scalars[0][0].size, v.handle.data.dtype) for v in returned]
        for result, value in zip(results, returned, strict=True):
            result[part] = value.handle.data
    made = [
        _tensor(np.stack(results[at : at + pack], axis=1).reshape(shape), dtypes[at])
        for at in range(0, len(results), pack)
    ]
    return made[0] if is_single else tl.tuple(made)


def _tensor(data: Array, dtype: Any) -> tl.tensor:
    return tl.tensor(interpreter.TensorHandle(data, dtype), dtype)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value
