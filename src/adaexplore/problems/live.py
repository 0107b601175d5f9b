"""A live module with example calls as a problem, and the winner as a module again.

The module is exported (`torch.export`) and written as the source of a problem in KernelBench form:
functional calls over parameters that have the names of the module's own. The captured inputs and
the weights lie beside the source.
"""

from __future__ import annotations

import hashlib
import inspect
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Access, Checks, Language, Problem, Workload
from adaexplore.problems.graph_source import HEADER, GraphSource, UnwritableError, state_of
from adaexplore.problems.optimized import Captured, own_randomness
from adaexplore.problems.value_tree import Call, ValueTree, bound, tensor_names
from adaexplore.sandbox.user.randomness import draws_random
from adaexplore.sandbox.user.user_code import Instance, Stored

_SAME = {torch.float16: 1e-2, torch.bfloat16: 3e-2}
_SAME_FP32 = 1e-4  # TF32 and another order of a sum do not count as a difference
_PREFIX = "module."  # of the names that `_Flat` gives to the module's tensors
_INSTEAD = "write a problem file with class Model and get_inputs() instead"


def capture(
    module: nn.Module,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    folder: Path,
    name: str = "",
    calls: Sequence[Call] | None = None,
    language: Language | None = None,
    checks: Checks | None = None,
    seed: int = 0,
) -> Captured:
    """Capture a live module, with the inputs of an example call, as a problem in `folder`.

    Each of several `calls` becomes a workload; they may differ in the sizes of their tensors alone.
    The module keeps its device, mode and buffers; candidates are made for that device. Writes
    `problem.py`, `weights.pt` and a file for each workload. Raises `BadProblemError`, in one line,
    for a module that cannot be captured.
    """
    name = name or type(module).__name__
    examples = [(tuple(args), dict(kwargs or {}))] if calls is None else list(calls)
    given, inputs = _example_inputs(name, module, examples)
    device = _device_of(name, [*state_of(module).values(), *(t for row in inputs for t in row)])
    with own_randomness(), _buffers_kept(module), torch.no_grad():
        returned, outputs = _example_outputs(name, module, given, inputs)
        names = tensor_names(inspect.signature(module.forward), examples[0])
        graph = _exported(name, _Flat(module, given), module, inputs, names)
        folder.mkdir(parents=True, exist_ok=True)
        state = {key: tensor.detach().cpu() for key, tensor in graph.state.items()}
        weights = _store(folder / "weights.pt", state)
        source = _verified(name, graph, folder, weights, device, inputs, outputs)
    shapes = tuple(tuple(t.shape for t in row) for row in inputs)
    workloads = tuple(
        _workload(folder, label, row) for label, row in zip(_labels(shapes), inputs, strict=True)
    )
    source = _whole(module, source, workloads[0])
    (folder / "problem.py").write_text(source, encoding="utf-8")
    problem = Problem(
        name=name,
        source=source,
        language=language or ("cpp" if device == "cpu" else "triton"),
        device=device,
        workloads=workloads,
        checks=checks or Checks(),
        seed=seed,
        access=Access(file=str((folder / "problem.py").resolve())),
        weights=weights.file,
        weights_digest=weights.digest,
    )
    return Captured(problem, module, given, returned, shapes)


class _Flat(nn.Module):
    """A module as a function of tensors that returns tensors."""

    def __init__(self, module: nn.Module, given: ValueTree) -> None:
        super().__init__()
        self.module = module
        self._given = given

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        args, kwargs = self._given.join(tensors)
        return tuple(ValueTree.split(self.module(*args, **kwargs))[0])


def _example_inputs(
    name: str, module: nn.Module, calls: Sequence[Call]
) -> tuple[ValueTree, list[list[Tensor]]]:
    signature = inspect.signature(module.forward)
    if not calls:
        raise BadProblemError(f"{name}: calls is empty; give an example call at least")
    found = []
    for args, kwargs in calls:
        try:
            found.append(ValueTree.split(bound(signature, args, kwargs)))
        except TypeError as error:
            raise BadProblemError(
                f"{name}: the example call does not fit forward(): {error}"
            ) from None
    structures = [given for _, given in found]
    if any(given != structures[0] for given in structures):
        raise BadProblemError(
            f"{name}: the example calls differ in more than the sizes of tensors; "
            "optimize the module once for each kind of call"
        )
    if structures[0].opaque:
        raise BadProblemError(
            f"{name}: an argument is of type {structures[0].opaque[0]}; pass tensors, numbers, "
            "text and None, in lists, tuples and dictionaries"
        )
    if not found[0][0]:
        raise BadProblemError(f"{name}: the example call has no tensor; give the module's inputs")
    return structures[0], [[t.detach() for t in tensors] for tensors, _ in found]


def _device_of(name: str, tensors: Sequence[Tensor]) -> str:
    devices = sorted({str(t.device) for t in tensors if t.dim() or t.device.type != "cpu"})
    if len(devices) > 1:
        raise BadProblemError(
            f"{name}: its weights and inputs lie on {' and '.join(devices)}; move all to one device"
        )
    return devices[0] if devices else "cpu"


def _example_outputs(
    name: str, module: nn.Module, given: ValueTree, inputs: list[list[Tensor]]
) -> tuple[ValueTree, list[list[Tensor]]]:
    """Run the module on every example call; raise where no candidate could be compared with it."""
    structures, outputs = [], []
    for tensors in inputs:
        call = partial(_result, name, module, given, tensors)
        is_random = draws_random(call, tensors[0].device)
        (first, returned), (again, _) = call(), call()
        if is_random or not all(map(_is_same, again, first)):
            raise BadProblemError(
                f"{name}: forward() draws random numbers, or its outputs differ between two runs "
                "on the same inputs (dropout in training mode); call .eval() on the module first"
            )
        structures.append(returned)
        outputs.append(first)
    if any(returned != structures[0] for returned in structures):
        raise BadProblemError(f"{name}: the example calls return values of different structures")
    if structures[0].opaque:
        raise BadProblemError(
            f"{name}: forward() returns a value of type {structures[0].opaque[0]}; return tensors, "
            "in lists, tuples, dictionaries or model outputs (use_cache=False leaves out a cache)"
        )
    if not outputs[0]:
        raise BadProblemError(f"{name}: forward() returns no tensor; return at least one")
    return structures[0], outputs


def _result(
    name: str, module: nn.Module, given: ValueTree, tensors: list[Tensor]
) -> tuple[list[Tensor], ValueTree]:
    args, kwargs = given.join([t.clone() for t in tensors])
    try:
        returned = module(*args, **kwargs)
    except Exception as error:  # whatever the module of the user raises
        raise BadProblemError(f"{name}: the example call raised {_in_one_line(error)}") from error
    outputs, structure = ValueTree.split(returned)
    return [t.clone() for t in outputs], structure


def _exported(
    name: str, flat: _Flat, module: nn.Module, inputs: list[list[Tensor]], names: list[str]
) -> GraphSource:
    try:
        dynamic = (_dynamic(inputs),) if len(inputs) > 1 else None
        program = torch.export.export(flat, tuple(inputs[0]), dynamic_shapes=dynamic, strict=False)
        program.graph.eliminate_dead_code()
        return GraphSource(program, module, _PREFIX, names)
    except UnwritableError as error:
        raise BadProblemError(f"{name}: cannot be captured: its graph has {error}") from error
    except Exception as error:  # the exporter has no common type of error
        raise BadProblemError(
            f"{name}: cannot be captured by torch.export: {_in_one_line(error)}; {_INSTEAD}"
        ) from error


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


def _verified(
    name: str,
    graph: GraphSource,
    folder: Path,
    weights: Stored,
    device: str,
    inputs: list[list[Tensor]],
    outputs: list[list[Tensor]],
) -> str:
    """Return source that computes what the module does, as readable as it can be."""
    plain: set[str] = set()
    while True:
        try:
            source = graph.module(plain)
        except UnwritableError as error:
            raise BadProblemError(f"{name}: cannot be captured: its graph has {error}") from error
        why, culprit = _difference(source, folder, weights, device, inputs, outputs)
        if not why:
            return source
        if plain >= graph.results:
            raise BadProblemError(f"{name}: cannot be captured: {why}; {_INSTEAD}")
        plain |= {culprit} if culprit in graph.results - plain else graph.results


def _difference(
    source: str,
    folder: Path,
    weights: Stored,
    device: str,
    inputs: list[list[Tensor]],
    outputs: list[list[Tensor]],
) -> tuple[str, str]:
    """Return how the source fails to compute these outputs, and the result that it fails at."""
    file = None
    try:
        instance = Instance.load(
            f"{HEADER}\n\n{source}",
            "Model",
            device=device,
            seed=0,
            mode="as-built",
            folder=folder,
            name="captured",
            weights=weights,
        )
        file = instance.boundary.file
        found = [instance.model(*[t.clone() for t in row]) for row in inputs]
    except Exception as error:  # noqa: BLE001 - generated source, of which another form may run
        lines = [frame.line for frame in traceback.extract_tb(error.__traceback__) if file]
        results = [line.partition(" = ")[0] for line in lines if line and " = " in line]
        return _in_one_line(error), results[-1] if results else ""
    finally:
        if file:
            file.unlink()
    rows = [[one] if isinstance(one, Tensor) else list(one) for one in found]
    for row, expected in zip(rows, outputs, strict=True):
        if len(row) != len(expected) or not all(map(_is_same, row, expected)):
            return "its graph gives other outputs than the module on the example inputs", ""
    return "", ""


def _whole(module: nn.Module, source: str, workload: Workload) -> str:
    """Return the file: the class, and the functions that make it a problem of its own."""
    kind = type(module)
    return (
        f'"""{kind.__module__}.{kind.__qualname__}, captured by torch.export."""\n\n'
        f"{HEADER}\n\n{source}\n\n"
        "def get_init_inputs():\n    return []\n\n\n"
        "def get_inputs():\n"
        f'    return torch.load(Path(__file__).parent / "{Path(workload.file).name}")["args"]\n'
    )


def _labels(shapes: Sequence[tuple[torch.Size, ...]]) -> list[str]:
    """Return a name for each call, by its shapes; equal ones are numbered."""
    labels = ["_".join("x".join(map(str, shape)) or "scalar" for shape in row) for row in shapes]
    return [
        label if labels.count(label) == 1 else f"{label}-{labels[:i].count(label) + 1}"
        for i, label in enumerate(labels)
    ]


def _workload(folder: Path, label: str, tensors: Sequence[Tensor]) -> Workload:
    content = {"args": [t.cpu().clone() for t in tensors], "kwargs": {}}
    stored = _store(folder / f"{label[:100]}.pt", content)
    return Workload(label, file=stored.file, digest=stored.digest)


def _store(file: Path, content: Any) -> Stored:
    torch.save(content, file)
    return Stored(str(file.resolve()), hashlib.sha256(file.read_bytes()).hexdigest())


def _is_same(found: Tensor, expected: Tensor) -> bool:
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


@contextmanager
def _buffers_kept(module: nn.Module) -> Iterator[None]:
    """Put the buffers of a module back afterwards: in training mode, calls change statistics."""
    before = [(buffer, buffer.clone()) for buffer in module.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in before:
                buffer.copy_(value)


def _in_one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or ["no message"]
    return f"{type(error).__name__}: {lines[0][:200]}"
