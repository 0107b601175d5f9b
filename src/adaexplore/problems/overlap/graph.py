"""The structure of a module: its operations, and how they hang together.

Sizes, dtypes and numbers are left out, and so is what only gives a tensor another shape: two
modules of one structure are the same task at other sizes.
"""

from __future__ import annotations

import functools
import hashlib
import operator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch._decomp import core_aten_decompositions
from torch.func import functional_call, functionalize
from torch.fx import Graph, Node
from torch.fx.experimental.proxy_tensor import make_fx

from adaexplore.core.errors import BadProblemError
from adaexplore.sandbox import Inputs, Instance, flatten_outputs, map_tensors, tensors_of

_SHAPING = frozenset(
    {
        *("view", "_unsafe_view", "reshape", "expand", "unsqueeze", "squeeze", "clone", "alias"),
        *("_to_copy", "detach", "lift_fresh_copy", "contiguous"),
    }
)
"""Operators that give their first argument another shape, dtype or place."""

_COMMUTATIVE = frozenset({"add", "mul", "maximum", "minimum", "eq", "logical_and", "logical_or"})


def job(request: dict[str, Any]) -> dict[str, Any]:
    """The structure of {"name", "source"}, as a job of a worker (see `sandbox.jobs`).

    Gives "structure", a hex digest; "ops", the operators in order; "unused", the inputs and weights
    that the outputs do not depend on; and "why", in one line, where there is none of these.
    """
    name = f"{request['name']}.py"
    try:
        instance = Instance.load(
            request["source"],
            "Model",
            device="meta",
            seed=0,
            mode="as-built",
            folder=Path.cwd(),
            name=name,
        )
        graph = _traced(instance.model, instance.inputs(0))
    except BadProblemError as error:
        return {"why": str(error)}
    except Exception as error:  # noqa: BLE001 - whatever the module does when traced is its result
        told = (str(error).strip().splitlines() or [""])[0]
        return {"why": f"{name}: its graph cannot be traced: {type(error).__name__}: {told}"}
    return described(graph) | {"why": ""}


def warm_tracing() -> None:
    """Trace a small module, so that processes forked later find its imports loaded."""
    described(
        _traced(torch.nn.Linear(2, 2, device="meta"), Inputs([torch.ones(1, 2, device="meta")]))
    )


def described(graph: Graph) -> dict[str, Any]:
    """The structure, operators and unused arguments of a traced graph; see `job`."""
    results = graph.output_node().all_input_nodes
    live = _live(results)
    digests: dict[Node, str] = {}
    operators = []
    for node in graph.nodes:
        if node not in live:
            continue
        if node.op != "call_function":
            digests[node] = node.meta.get("kind", "constant")
            continue
        name = _name(node)
        digests[node] = _digest(node, name, digests)
        if name not in _SHAPING and name != "getitem":
            operators.append(name)
    structure = _hashed("task", *sorted(digests[node] for node in results))
    unused = [n.meta["called"] for n in graph.nodes if n.meta.get("called") and n not in live]
    return {"structure": structure, "ops": operators, "unused": unused}


def _traced(model: nn.Module, inputs: Inputs) -> Graph:
    """Return the graph of a call, in core operators that change nothing in place.

    The `meta` of an argument has its "kind" and what it is "called" where outputs should depend on
    it.
    """
    parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    given = tensors_of(inputs)

    def call(tensors: list[Tensor]) -> list[Tensor]:
        left = iter(tensors)
        state = {name: next(left) for name in (*parameters, *buffers)}
        arguments = map_tensors(lambda _: next(left), inputs)
        returned = functional_call(model, state, tuple(arguments.args), arguments.kwargs)
        return [tensor for _, tensor in flatten_outputs(returned)]

    tensors = [t.detach() for t in (*parameters.values(), *buffers.values(), *given)]
    with torch.no_grad():
        traced = make_fx(functionalize(call), decomposition_table=_decompositions())(tensors)
        if any(_changes_in_place(node) for node in traced.graph.nodes):  # so do some decompositions
            traced = make_fx(functionalize(traced))(tensors)
    kinds = [("weight", f"weight {name}") for name in parameters] + [("constant", "")] * len(
        buffers
    )
    kinds += [("input", f"input number {i}") for i in range(1, len(given) + 1)]
    places = [node for node in traced.graph.nodes if node.op == "placeholder"]
    for node, (kind, called) in zip(places, kinds, strict=True):
        node.meta.update(kind=kind, called=called)
    return traced.graph


def _changes_in_place(node: Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and bool(schema.is_mutable)


@functools.cache
def _decompositions() -> Any:
    return core_aten_decompositions()


def _live(results: list[Node]) -> set[Node]:
    """Return the nodes that the results depend on."""
    found, pending = set(results), list(results)
    while pending:
        for node in pending.pop().all_input_nodes:
            if node not in found:
                found.add(node)
                pending.append(node)
    return found


def _name(node: Node) -> str:
    """The operator without its overload."""
    if node.target is operator.getitem:
        return "getitem"
    return str(getattr(node.target, "__name__", node.target)).partition(".")[0]


def _digest(node: Node, name: str, digests: dict[Node, str]) -> str:
    """Of an operation: its name, what it works on, and of what kind it is."""
    arguments = [digests[argument] for argument in node.all_input_nodes]
    if name in _SHAPING and arguments:
        return arguments[0]
    if name in _COMMUTATIVE:
        arguments.sort()
    kinds = [value for value in (*node.args, *node.kwargs.values()) if isinstance(value, str)]
    if name == "convolution":
        kinds.append(str(node.args[6]))  # whether it is transposed
    if name == "getitem":
        kinds.append(str(node.args[1]))
    return _hashed(name, *arguments, *kinds)


def _hashed(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
