"""A live module as source that computes the same: from its graph, or from its own sources.

The exported graph comes first: it is a short program of tensors alone. A module that has none, such
as one that branches on the values of tensors, is written as the classes that it was made from.
"""

from __future__ import annotations

import hashlib
import io
import logging
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from adaexplore.problems.graph_source import HEADER, GraphSource, UnwritableError
from adaexplore.problems.module_source import ModuleSource
from adaexplore.problems.value_tree import ValueTree
from adaexplore.problems.writes import as_functions, call_flat
from adaexplore.runtime.interface import Write
from adaexplore.sandbox.user.user_code import Instance, Stored

_SAME = {torch.float16: 1e-2, torch.bfloat16: 3e-2}
_SAME_FP32 = 1e-4  # TF32 and another order of a sum do not count as a difference
_PREFIX = "module."  # of the names that `_Flat` gives to the module's tensors
_TALKATIVE = ("torch.fx.experimental.symbolic_shapes", "torch._export.non_strict_utils")


@dataclass(frozen=True, slots=True)
class Examples:
    """A module with the tensors of its example calls and of their results.

    `names` are those of the tensors of a call. Of tensors that a call writes to, new values come
    after the outputs.
    """

    module: nn.Module
    given: ValueTree
    returned: ValueTree
    names: list[str]
    inputs: list[list[Tensor]]
    outputs: list[list[Tensor]]
    device: str
    writes: tuple[Write, ...] = ()

    def difference(
        self, header: str, source: str, folder: Path, weights: Stored
    ) -> SourceDifference:
        """Return how the source fails to compute the outputs."""
        file = None
        try:
            instance = Instance.load(
                f"{header}\n\n{source}",
                "Model",
                device=self.device,
                seed=0,
                mode="as-built",
                folder=folder,
                name="captured",
                weights=weights,
            )
            file = instance.boundary.file
            found = [instance.model(*[t.clone() for t in row]) for row in self.inputs]
        except Exception as error:  # noqa: BLE001 - generated source, of which another form may run
            lines = [frame.line for frame in traceback.extract_tb(error.__traceback__) if file]
            results = [line.partition(" = ")[0] for line in lines if line and " = " in line]
            return SourceDifference(in_one_line(error), results[-1] if results else "")
        finally:
            if file:
                file.unlink()
        rows = [[one] if isinstance(one, Tensor) else list(one) for one in found]
        for row, expected in zip(rows, self.outputs, strict=True):
            if len(row) != len(expected) or not all(map(is_same, row, expected)):
                return SourceDifference(
                    "it gives other outputs than the module on the example inputs"
                )
        return SourceDifference()


@dataclass(frozen=True, slots=True)
class SourceDifference:
    """The reason why source does not do what a module does, and the result that it fails at."""

    why: str = ""
    culprit: str = ""


@dataclass(frozen=True, slots=True)
class WrittenSource:
    """A module as source, after a header, with its stored weights."""

    by: str
    header: str
    source: str
    weights: Stored


def from_graph(examples: Examples, folder: Path) -> WrittenSource:
    """Write the graph that `torch.export` gives, as readable as it can be.

    Raises `UnwritableError` where there is none or it computes something else.
    """
    graph = _exported(examples)
    weights = _stored(folder, graph.state)
    plain: set[str] = set()
    while True:
        try:
            source = graph.module(plain)
        except UnwritableError as error:
            raise UnwritableError(f"its graph has {error}") from error
        found = examples.difference(HEADER, source, folder, weights)
        if not found.why:
            return WrittenSource("torch.export", HEADER, source, weights)
        if plain >= graph.results:
            raise UnwritableError(f"its graph fails: {found.why}")
        plain |= {found.culprit} if found.culprit in graph.results - plain else graph.results


def from_sources(examples: Examples, folder: Path) -> WrittenSource:
    """Write the classes of the module and what they name, and a constructor of its state.

    Raises `UnwritableError` where they cannot be collected, or compute something else.
    """
    if examples.writes:
        raise UnwritableError("they write to an argument")
    collected = ModuleSource(examples.module, examples.given, examples.returned, examples.names)
    weights = _stored(folder, collected.state)
    found = SourceDifference()
    for whole in (False, True):
        source = collected.module(whole=whole)
        found = examples.difference(collected.header, source, folder, weights)
        if not found.why:
            return WrittenSource("its sources", collected.header, source, weights)
    raise UnwritableError(f"a copy of them fails: {found.why}")


def store(file: Path, content: Any) -> Stored:
    """Write tensors to a file."""
    torch.save(content, file)
    return Stored(str(file.resolve()), hashlib.sha256(file.read_bytes()).hexdigest())


def is_same(found: Tensor, expected: Tensor) -> bool:
    """Return whether two results differ by no more than rounding."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    if not expected.is_floating_point():
        return torch.equal(found, expected)
    wide, other = expected.double(), found.double()
    if not torch.equal(wide.isfinite(), other.isfinite()):
        return False
    wide, other = wide[wide.isfinite()], other[other.isfinite()]
    allowed = _SAME.get(expected.dtype, _SAME_FP32)
    return bool((other - wide).norm() <= allowed * wide.norm())


def in_one_line(error: BaseException) -> str:
    """Return the type of an exception and the first line of its text."""
    lines = str(error).strip().splitlines() or ["no message"]
    return f"{type(error).__name__}: {lines[0][:200]}"


class _Flat(nn.Module):
    """A module as a function of tensors that returns tensors.

    It writes to copies of its arguments, and returns their new values too.
    """

    def __init__(self, examples: Examples) -> None:
        super().__init__()
        self.module = examples.module
        self._given = examples.given
        self._writes = examples.writes

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        own = as_functions(tensors, self._writes)
        outputs, _, _ = call_flat(self.module, self._given, own)
        return tuple(outputs)


def _exported(examples: Examples) -> GraphSource:
    flat, inputs = _Flat(examples), examples.inputs
    try:
        dynamic = (_dynamic(inputs),) if len(inputs) > 1 else None
        with _quiet():
            program = torch.export.export(
                flat, tuple(inputs[0]), dynamic_shapes=dynamic, strict=False
            )
        program.graph.eliminate_dead_code()
        return GraphSource(program, examples.module, _PREFIX, examples.names)
    except UnwritableError as error:
        raise UnwritableError(f"its graph has {error}") from error
    except Exception as error:  # the exporter has no common type of error
        raise UnwritableError(in_one_line(error)) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter from printing its graph: its exception says why there is none.

    Its warnings are of sizes that are one in some of the calls, for which it has its own graph.
    """
    logs = [logging.getLogger(name) for name in _TALKATIVE]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)
    try:
        with redirect_stderr(io.StringIO()):
            yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)


def _dynamic(inputs: list[list[Tensor]]) -> tuple[dict[int, Any], ...]:
    """Return for each input the axes whose size differs between calls."""
    return tuple(
        {
            axis: torch.export.Dim.AUTO
            for axis in range(column[0].dim())
            if len({t.shape[axis] for t in column}) > 1
        }
        for column in zip(*inputs, strict=True)
    )


def _stored(folder: Path, state: Mapping[str, Tensor]) -> Stored:
    content = {name: tensor.detach().cpu() for name, tensor in state.items()}
    return store(folder / "weights.pt", content)
