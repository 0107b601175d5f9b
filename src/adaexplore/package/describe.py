"""The specification of a package: the original runs once on every workload."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import Problem
from adaexplore.problems.graph_source import state_of
from adaexplore.problems.live import INTERFACE
from adaexplore.runtime.cuts import Cut, OperationRun
from adaexplore.runtime.interface import Interface, code_of, interface_of, tensors_of_call
from adaexplore.runtime.spec import Spec, VerifiedWorkload, form_of, gpu_of, versions
from adaexplore.runtime.values import UndescribableError, collect
from adaexplore.sandbox.user.user_code import Instance, Stored
from adaexplore.sandbox.user.values import Inputs

CUTS = "cuts.json"
"""The file of the cut forwards that have a run of operations, beside its problem."""
_LARGE = 1 << 14
"""Elements from which a captured parameter is drawn again for tests instead of stored."""

_ERRORS = {"fp32": 1e-4, "tf32": 3e-3, "half": 3e-2}
_ERRORS_OF_DTYPES = {torch.float16: 1e-2, torch.bfloat16: 3e-2}


@dataclass(frozen=True, slots=True)
class Described:
    """A kernel for a problem: its specification, and the tensors that its package stores."""

    problem: Problem
    source: str
    spec: Spec
    constants: Mapping[str, Tensor]


def describe_kernel(
    problem: Problem,
    source: str,
    name: str,
    folder: Path,
    times_us: Callable[[str], tuple[float, float]] = lambda _: (0.0, 0.0),
) -> Described:
    """Run the original of a problem, and return the specification of its kernel's package.

    `source` is the kernel, `times_us` gives its time and that of the strongest baseline on a
    workload. Raises `BadInputError`, in one line, for an original that no package can stand for.
    """
    if problem.device.startswith("cuda") and not torch.cuda.is_available():
        raise BadInputError(f"{problem.name}: ships on a machine with a GPU, where it can be tried")
    original = Instance.of(problem, folder)
    module = original.model
    calls = [original.inputs(problem.seed, workload) for workload in problem.workloads]
    interface = _interface(problem, original, calls[0])
    cuts: tuple[Cut, ...] = ()
    if interface.layers[0].kind == OperationRun.__qualname__:
        interface, cuts = _with_code_of_today(interface), _cuts(problem)
    if interface.writes and problem.checks.backward:
        raise BadInputError(f"{problem.name}: a call writes to its arguments; no step trains that")
    outputs = [_results(problem, original, interface, call) for call in calls]
    _refuse_updated_buffers(problem, original, calls[0])
    inputs = [_tensors(problem, interface, call) for call in calls]
    state, ties = _state(module, interface)
    device = torch.device(problem.device)
    floats = [t for t in (*outputs[0], *state.values()) if t.is_floating_point()]
    constants, drawn = _stored(problem, state)
    torch_version, triton_version = versions()
    spec = Spec(
        name=name,
        namespace=f"{name}_{_digest(problem, source)}",
        class_name=_class_name(interface, cuts),
        device=device.type,
        gpu=gpu_of(device),
        seed=problem.seed,
        mode=problem.mode,
        fresh=False,
        torch=torch_version,
        triton=triton_version,
        interface=interface,
        workloads=tuple(
            VerifiedWorkload(
                workload.name,
                workload.draw,
                Path(workload.file).name if workload.file else "",
                tuple(map(form_of, given)),
                tuple(map(form_of, found)),
                *times_us(workload.name),
            )
            for workload, given, found in zip(problem.workloads, inputs, outputs, strict=True)
        ),
        state=tuple(state),
        state_forms=tuple(map(form_of, state.values())),
        ties=ties,
        drawn=drawn,
        error=max(
            [_ERRORS[problem.precision], *(_ERRORS_OF_DTYPES.get(t.dtype, 0.0) for t in floats)]
        ),
        backward=problem.checks.backward,
        cuts=cuts,
    )
    return Described(problem, source, spec, constants)


def _digest(problem: Problem, source: str) -> str:
    return hashlib.sha256(f"{problem.digest}\n{source}".encode()).hexdigest()[:8]


def _interface(problem: Problem, original: Instance, call: Inputs) -> Interface:
    """Return the interface of the captured module, or of the file's `Model`."""
    captured = Path(problem.access.file).parent / INTERFACE
    if problem.weights:
        if not captured.exists():
            raise BadInputError(
                f"{problem.name}: a value in the module's call or result is no plain data, so a "
                "package cannot find its calls; capture it with tensors, numbers and collections"
            )
        return Interface.from_json(json.loads(captured.read_text(encoding="utf-8")))
    try:
        with torch.no_grad():
            result = original.model(*call.args, **call.kwargs)
        found = interface_of(original.model, call.args, call.kwargs, result, flat=False)
    except UndescribableError as error:
        raise BadInputError(
            f"{problem.name}: a call has a {error}; a package knows tensors, numbers, text and "
            "None, in lists, tuples and dictionaries"
        ) from error
    return Interface.from_json(json.loads(json.dumps(found.to_json())))


def _with_code_of_today(interface: Interface) -> Interface:
    """Return the interface of a run of operations as the package has it.

    The search may be of an older version; the operations are in the run's text.
    """
    run, *inner = interface.layers
    return replace(interface, layers=(replace(run, code=code_of(OperationRun)), *inner))


def _cuts(problem: Problem) -> tuple[Cut, ...]:
    """Return the cut forwards that have the run of operations that a problem is."""
    file = Path(problem.access.file).parent / CUTS
    if not file.exists():
        raise BadInputError(
            f"{problem.name}: its kernel is for a run of operations inside a module, which no "
            f"package can find in a model without {file}; rank the model in a new run"
        )
    return tuple(map(Cut.from_json, json.loads(file.read_text(encoding="utf-8"))))


def _class_name(interface: Interface, cuts: Sequence[Cut]) -> str:
    """Return the name of the class that a kernel is for, or of the run in one."""
    first = interface.layers[0]
    for cut in cuts:
        for name, run in cut.forward["runs"].items():
            if run["text"] == first.constants["text"]:
                return f"{cut.layers[0].kind}.{name}"
    return first.kind


def _results(
    problem: Problem, original: Instance, interface: Interface, call: Inputs
) -> list[Tensor]:
    """Return the tensors of a call's result in the order of the interface.

    The judge's order is another: it sorts the keys of dictionaries.
    """
    if not interface.flat and not problem.checks.backward:
        tensors: list[Tensor] = []
        with torch.no_grad():
            result = original.model(*call.args, **call.kwargs)
        if collect(interface.returned, result, tensors):
            return tensors
    return [t for _, t in original(call)]


def _tensors(problem: Problem, interface: Interface, call: Inputs) -> list[Tensor]:
    tensors = (
        [t for t in call.args if isinstance(t, Tensor)]
        if interface.flat
        else tensors_of_call(interface, call.args, call.kwargs)
    )
    if tensors is None:
        raise BadInputError(
            f"{problem.name}: its workloads differ in more than the sizes of tensors; ship a run "
            "for each kind of call"
        )
    return tensors


def _refuse_updated_buffers(problem: Problem, original: Instance, call: Inputs) -> None:
    before = {name: t.clone() for name, t in original.model.named_buffers()}
    original(call)
    for name, tensor in original.model.named_buffers():
        if not torch.equal(tensor, before[name]):
            raise BadInputError(
                f"{problem.name}: a call updates the buffer {name}, which no kernel may leave out; "
                "search in evaluation mode (--mode eval, or module.eval())"
            )


def _state(module: nn.Module, interface: Interface) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the original's tensors that the module in a model has, and further names of them."""
    own = state_of(module)
    first: dict[int, str] = {}
    state: dict[str, Tensor] = {}
    ties: dict[str, str] = {}
    for layer in interface.layers:
        for tensor_name, form in layer.state.items():
            name = f"{layer.path}.{tensor_name}" if layer.path else tensor_name
            if form is None or name not in own:
                continue
            known = first.setdefault(id(own[name]), name)
            if known == name:
                state[name] = own[name].detach()
            else:
                ties[name] = known
    return state, ties


def _stored(
    problem: Problem, state: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], dict[str, tuple[float, float]]]:
    """Return the captured tensors that a package stores, and the statistics of the others."""
    if not problem.weights:
        return {}, {}
    captured: dict[str, Any] = Stored(problem.weights, problem.weights_digest).load()
    large = {
        name
        for name, tensor in captured.items()
        if name in state and tensor.is_floating_point() and tensor.numel() > _LARGE
    }
    statistics = {
        name: (captured[name].double().mean().item(), captured[name].double().std().item())
        for name in large
    }
    return {name: t for name, t in captured.items() if name not in large}, statistics
