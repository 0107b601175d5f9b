"""A live module with example calls as a problem, and the winner as a module again.

The module is written as the source of a problem in KernelBench form (see `written`), with
parameters that have the names of the module's own. The captured inputs and the weights lie beside
the source.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from adaexplore.core.errors import BadProblemError
from adaexplore.core.problem import Access, Checks, Language, Problem, Workload
from adaexplore.problems.access import numbered
from adaexplore.problems.captured import write_captured
from adaexplore.problems.graph_source import UnwritableError, state_of
from adaexplore.problems.optimized import Captured, form_of, own_randomness
from adaexplore.problems.value_tree import Call, ValueTree, bound, tensor_names
from adaexplore.problems.writes import call_flat
from adaexplore.problems.written import (
    Examples,
    WrittenSource,
    from_graph,
    from_sources,
    in_one_line,
    is_same,
    store,
)
from adaexplore.runtime.interface import Write, interface_of
from adaexplore.runtime.values import UndescribableError
from adaexplore.sandbox.user.randomness import draws_random

INTERFACE = "interface.json"
"""The file of a captured module's interface, beside its problem."""
_CAST = re.compile(r"\.to\((torch\.|dtype)|aten\.(to|_to_copy)\.|\.(float|half|bfloat16)\(\)")


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
    `problem.py`, `weights.pt`, `interface.json`, a file for each workload, and `captured.json`,
    by which `load_problem` finds them. Raises `BadProblemError`, in one line, for a module that
    cannot be captured.
    """
    name = name or type(module).__name__
    examples = [(tuple(args), dict(kwargs or {}))] if calls is None else list(calls)
    given, inputs = _example_inputs(name, module, examples)
    device = device_of(name, [*state_of(module).values(), *(t for row in inputs for t in row)])
    with own_randomness(), _buffers_kept(module), torch.no_grad():
        returned, outputs, writes = _example_outputs(name, module, given, inputs)
        names = tensor_names(inspect.signature(module.forward), examples[0])
        folder.mkdir(parents=True, exist_ok=True)
        example = Examples(module, given, returned, names, inputs, outputs, device, writes)
        written = _written(name, example, folder)
        _store_interface(example, folder)
    shapes = tuple(tuple(t.shape for t in row) for row in inputs)
    workloads = tuple(
        _workload(folder, label, row) for label, row in zip(_labels(shapes), inputs, strict=True)
    )
    source = _whole(module, written, workloads[0])
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
        weights=written.weights.file,
        weights_digest=written.weights.digest,
    )
    write_captured(problem, folder)
    forms = tuple(tuple(map(form_of, row)) for row in inputs)
    return Captured(problem, module, given, returned, forms, writes)


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
    if opaque := _opaque(structures):
        raise BadProblemError(
            f"{name}: an argument is of type {opaque}; pass tensors, numbers, text and None, in "
            "lists, tuples and dictionaries"
        )
    if any(given != structures[0] for given in structures):
        raise BadProblemError(
            f"{name}: the example calls differ in more than the sizes of tensors; "
            "optimize the module once for each kind of call"
        )
    if not found[0][0]:
        raise BadProblemError(f"{name}: the example call has no tensor; give the module's inputs")
    return structures[0], [[t.detach() for t in tensors] for tensors, _ in found]


def device_of(name: str, tensors: Iterable[Tensor]) -> str:
    """Return the device of a module's weights and inputs; numbers on the CPU may lie apart.

    Raises `BadProblemError` if they lie on several.
    """
    devices = sorted({str(t.device) for t in tensors if t.dim() or t.device.type != "cpu"})
    if len(devices) > 1:
        raise BadProblemError(
            f"{name}: its weights and inputs lie on {' and '.join(devices)}; move all to one device"
        )
    return devices[0] if devices else "cpu"


def _example_outputs(
    name: str, module: nn.Module, given: ValueTree, inputs: list[list[Tensor]]
) -> tuple[ValueTree, list[list[Tensor]], tuple[Write, ...]]:
    """Run the module on every example call; raise where no candidate could be compared with it.

    Returns the structure of its results, their tensors with the new values of arguments that a call
    writes to, and these writes.
    """
    structures, outputs, written = [], [], []
    for tensors in inputs:
        call = partial(_result, name, module, given, tensors)
        is_random = draws_random(call, tensors[0].device, module.modules())
        (first, returned, writes), (again, *_) = call(), call()
        if is_random or not all(map(is_same, again, first)):
            raise BadProblemError(
                f"{name}: forward() draws random numbers, or its outputs differ between two runs "
                "on the same inputs (dropout in training mode); call .eval() on the module first"
            )
        structures.append(returned)
        outputs.append(first)
        written.append(writes)
    if opaque := _opaque(structures):
        raise BadProblemError(
            f"{name}: forward() returns a value of type {opaque}; return tensors, in lists, "
            "tuples, dictionaries or model outputs (use_cache=False leaves out a cache)"
        )
    if any(each != (structures[0], written[0]) for each in zip(structures, written, strict=True)):
        raise BadProblemError(f"{name}: the example calls return values of different structures")
    if not outputs[0]:
        raise BadProblemError(f"{name}: forward() returns no tensor; return at least one")
    return structures[0], outputs, written[0]


def _opaque(structures: Sequence[ValueTree]) -> str:
    """Return the type of a leaf that is no constant: such leaves may not be compared."""
    return next((kind for structure in structures for kind in structure.opaque), "")


def _result(
    name: str, module: nn.Module, given: ValueTree, tensors: list[Tensor]
) -> tuple[list[Tensor], ValueTree, tuple[Write, ...]]:
    try:
        outputs, structure, writes = call_flat(module, given, [t.clone() for t in tensors])
    except Exception as error:  # whatever the module of the user raises
        raise BadProblemError(f"{name}: the example call raised {in_one_line(error)}") from error
    return [t.clone() for t in outputs], structure, writes


def _written(name: str, examples: Examples, folder: Path) -> WrittenSource:
    """Return the module as source, from its graph if that can be, else from its sources."""
    reasons = []
    for write in (from_graph, from_sources):
        try:
            return write(examples, folder)
        except UnwritableError as error:
            reasons.append(str(error))
    raise BadProblemError(
        f"{name}: cannot be captured by torch.export: {reasons[0]}; nor by its sources: "
        f"{reasons[1]}; write a problem file with class Model and get_inputs() instead"
    )


def _store_interface(examples: Examples, folder: Path) -> None:
    """Write the interface, by which packages find such modules, if it is plain data."""
    args, kwargs = examples.given.join([t.clone() for t in examples.inputs[0]])
    result = examples.returned.join(examples.outputs[0])
    try:
        interface = interface_of(
            examples.module, args, kwargs, result, flat=True, writes=examples.writes
        )
        text = json.dumps(interface.to_json(), indent=1)
    except (UndescribableError, TypeError):
        return
    (folder / INTERFACE).write_text(text, encoding="utf-8")


def _whole(module: nn.Module, written: WrittenSource, workload: Workload) -> str:
    """Return the file: the class, and the functions that make it a problem of its own."""
    kind = type(module)
    mark = "CASTS_ARE_PRECISION = True\n\n\n" if _CAST.search(written.source) else ""
    return (
        f'"""{kind.__module__}.{kind.__qualname__}, captured by {written.by}."""\n\n'
        f"{written.header}\n\n{mark}{written.source}\n\n"
        "def get_init_inputs():\n    return []\n\n\n"
        "def get_inputs():\n"
        f'    return torch.load(Path(__file__).parent / "{Path(workload.file).name}")["args"]\n'
    )


def _labels(shapes: Sequence[tuple[torch.Size, ...]]) -> list[str]:
    """Return a name for each call, by its shapes; equal ones are numbered."""
    return numbered(["_".join("x".join(map(str, s)) or "scalar" for s in row) for row in shapes])


def _workload(folder: Path, label: str, tensors: Sequence[Tensor]) -> Workload:
    content = {"args": [t.cpu().clone() for t in tensors], "kwargs": {}}
    stored = store(folder / f"{label[:100]}.pt", content)
    return Workload(label, file=stored.file, digest=stored.digest)


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
