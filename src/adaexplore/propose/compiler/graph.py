"""A reference's `forward` as one graph with the origin of each input tensor."""

from __future__ import annotations

import copy
import inspect
import re
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, TensorArgument
from torch.utils import _pytree as pytree

from adaexplore.propose.compiler.recurrence import MOST_OPERATIONS, MOST_STEPS, recurrent_steps

MAX_LITERAL = 4096
"""Largest constant tensor, in elements, that is written out in a candidate's source."""


_PLAIN = int | float | bool | str | None
"""Types of arguments whose value a trace is specialised to."""


class UnsupportedError(Exception):
    """The reference, or options on it, cannot become a standalone module. The text is one line."""


@dataclass(frozen=True, slots=True)
class Weight:
    """A parameter or buffer: attribute `name` of the submodule at `owner` (empty for the root)."""

    owner: str
    name: str
    is_parameter: bool


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant tensor that the reference makes itself."""

    value: Tensor


@dataclass(frozen=True, slots=True)
class Argument:
    """A tensor argument of `forward`, as an expression over its parameters such as `xs[0]`."""

    expression: str


Source = Weight | Literal | Argument


@dataclass(frozen=True)
class Traced:
    """A graph over tensors only.

    `sources[i]` is the origin of input `i`, and `values[i]` its value while tracing; weights come
    first. `constants` are the arguments of `forward` that the trace is specialised to, by
    expression. `result` is an expression over `out`, the graph's outputs, for the value that
    `forward` returns. `features` names the graph's contents, see `features_of`. `training` is the
    traced mode, or None if it does not matter.
    """

    module: fx.GraphModule
    sources: list[Source]
    values: list[Tensor]
    constants: dict[str, Any]
    result: str
    outputs: int
    output_dtypes: tuple[torch.dtype, ...]
    features: frozenset[str]
    training: bool | None


def trace(
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    parameters: list[str],
) -> Traced:
    """Trace `model(*args, **kwargs)` without gradients; `parameters` are the names in `forward`.

    Raises `UnsupportedError` for a call that cannot be one graph: control flow on values, inputs
    that are neither tensors nor plain constants, or results that are not built of tensors.
    """
    kwargs = {name: kwargs[name] for name in parameters if name in kwargs}
    with torch.no_grad():
        try:
            _refuse_recurrence(recurrent_steps(model, args, kwargs))
            program = torch.export.export(model, args, kwargs, strict=False)
        except (RuntimeError, ValueError, TypeError, AssertionError, LookupError) as error:
            raise UnsupportedError(f"cannot be traced as one graph: {_line(error)}") from error
    _refuse_size(len(program.graph_module.graph.nodes))
    graph = copy.deepcopy(program.graph_module)
    arguments = iter(_argument_leaves(args, kwargs, parameters))
    given = [*parameters[: len(args)], *kwargs]
    sources: list[Source] = []
    values: list[Tensor] = []
    constants = {
        name: parameter.default
        for name, parameter in inspect.signature(model.forward).parameters.items()
        if name not in given and isinstance(parameter.default, _PLAIN)
    }
    kept: dict[int, fx.Node] = {}
    for spec, node in zip(
        program.graph_signature.input_specs, graph.graph.find_nodes(op="placeholder"), strict=True
    ):
        source: Source
        if spec.kind is InputKind.USER_INPUT:
            expression, value = next(arguments)
            if not isinstance(spec.arg, TensorArgument):
                if not isinstance(value, _PLAIN):
                    raise UnsupportedError(f"argument {expression} is a {type(value).__name__}")
                constants[expression] = value
                graph.graph.erase_node(node)
                continue
            source = Argument(expression)
        else:
            source, value = _state(program, model, spec.kind, str(spec.target))
            if id(value) in kept:  # tied weights are one input
                node.replace_all_uses_with(kept[id(value)])
                graph.graph.erase_node(node)
                continue
            if not node.users:
                graph.graph.erase_node(node)
                continue
            kept[id(value)] = node
        sources.append(source)
        # the decomposition of matmul depends on requires_grad, as under torch.compile
        values.append(value.detach().requires_grad_(value.requires_grad))
    graph.recompile()
    result, outputs = _result(program)
    output_dtypes = tuple(node.meta["val"].dtype for node in outputs_of(graph) if _is_tensor(node))
    return Traced(
        graph,
        sources,
        values,
        constants,
        result,
        outputs,
        output_dtypes,
        features_of(program, any(isinstance(source, Weight) for source in sources)),
        model.training if _operators(program) & _MODAL else None,
    )


def outputs_of(graph: fx.GraphModule) -> tuple[Any, ...]:
    """Return what a graph returns, in order."""
    outputs = graph.graph.output_node().args[0]
    assert isinstance(outputs, tuple | list)
    return tuple(outputs)


def _is_tensor(node: Any) -> bool:
    return isinstance(node, fx.Node) and isinstance(node.meta.get("val"), Tensor)


def _line(error: BaseException) -> str:
    text = str(error).strip().splitlines() or [type(error).__name__]
    return text[0][:200]


def _refuse_recurrence(steps: int) -> None:
    if steps > MOST_STEPS:
        raise UnsupportedError(
            f"its recurrent layers make {steps} steps, each of which TorchInductor compiles by "
            f"itself; more than {MOST_STEPS} take too long"
        )


def _refuse_size(operations: int) -> None:
    if operations > MOST_OPERATIONS:
        raise UnsupportedError(
            f"its graph has {operations} operations; more than {MOST_OPERATIONS} take "
            "TorchInductor too long"
        )


def _argument_leaves(
    args: tuple[Any, ...], kwargs: dict[str, Any], parameters: list[str]
) -> list[tuple[str, Any]]:
    """Return every leaf of the call with an expression for it, in the order in which export
    flattens."""
    names = parameters[: len(args)]
    if len(args) > len(names):
        raise UnsupportedError("forward takes *args; name its parameters")
    found: list[tuple[str, Any]] = []
    for path, value in pytree.tree_flatten_with_path((args, kwargs))[0]:
        first: Any = path[1]
        name = names[first.idx] if isinstance(first, pytree.SequenceKey) else str(first.key)
        found.append((name + "".join(_step(key) for key in path[2:]), value))
    return found


def _step(key: Any) -> str:
    match key:
        case pytree.SequenceKey():
            return f"[{key.idx}]"
        case pytree.MappingKey():
            return f"[{key.key!r}]"
        case pytree.GetAttrKey():
            return f".{key.name}"
        case _:
            raise UnsupportedError(f"an argument holds a container of unknown type ({key})")


def _state(
    program: ExportedProgram, model: nn.Module, kind: InputKind, target: str
) -> tuple[Source, Tensor]:
    if kind in (InputKind.PARAMETER, InputKind.BUFFER):
        owner, _, name = target.rpartition(".")
        # The module's own tensor: tied weights are recognised by being the same object.
        value = getattr(model.get_submodule(owner), name)
        return Weight(owner, name, kind is InputKind.PARAMETER), value
    if kind is InputKind.CONSTANT_TENSOR:
        value = program.constants[target]
        assert isinstance(value, Tensor)
        if value.numel() > MAX_LITERAL:
            raise UnsupportedError(
                f"holds a constant tensor of {value.numel()} elements; register it as a buffer"
            )
        return Literal(value), value
    raise UnsupportedError(f"takes an input of kind {kind.name.lower()}")


def _result(program: ExportedProgram) -> tuple[str, int]:
    """Return an expression that rebuilds `forward`'s result, and the number of graph outputs."""
    leaves = []
    for index, spec in enumerate(program.graph_signature.output_specs):
        if isinstance(spec.arg, TensorArgument):
            leaves.append(f"out[{index}]")
        elif isinstance(spec.arg, ConstantArgument):
            leaves.append(repr(spec.arg.value))
        else:
            raise UnsupportedError("returns something that is neither a tensor nor a constant")
    out_spec = program.call_spec.out_spec
    assert out_spec is not None
    return _rebuild(out_spec, iter(leaves)), len(leaves)


def _rebuild(spec: Any, leaves: Iterator[str]) -> str:
    if spec.is_leaf():
        return next(leaves)
    children = spec.children() if hasattr(spec, "children") else spec.children_specs
    parts = [_rebuild(child, leaves) for child in children]
    if spec.type is tuple:
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if spec.type is list:
        return f"[{', '.join(parts)}]"
    if spec.type is dict:
        return f"{{{', '.join(f'{k!r}: {v}' for k, v in zip(spec.context, parts, strict=True))}}}"
    kind = spec.context if spec.type is namedtuple else spec.type
    if isinstance(kind, type) and issubclass(kind, tuple):
        return f"{kind.__name__}({', '.join(parts)})"
    raise UnsupportedError(f"returns a {getattr(kind, '__name__', kind)}")


_MODAL = frozenset(
    {"batch_norm", "instance_norm", "dropout", "dropout_", "feature_dropout", "alpha_dropout"}
    | {"rrelu", "rrelu_"}
)
"""Operators that work differently in training."""


def _operators(program: ExportedProgram) -> set[str]:
    return {
        getattr(node.target, "_opname", str(node.target))
        for node in program.graph.nodes
        if node.op == "call_function"
    }


def _ops(names: str) -> frozenset[str]:
    return frozenset(re.split(r"\s+", names.strip()))


_NORMALISATIONS = _ops("layer_norm group_norm instance_norm batch_norm rms_norm")
_FEATURES: dict[str, frozenset[str]] = {
    "matmul": _ops("linear matmul mm addmm bmm baddbmm einsum"),
    "conv": _ops(
        """conv1d conv2d conv3d convolution
        conv_transpose1d conv_transpose2d conv_transpose3d"""
    ),
    "exp": _ops(
        """softmax log_softmax sigmoid silu silu_ exp logsumexp mish softplus elu elu_ celu
        logaddexp cross_entropy_loss log_sigmoid glu scaled_dot_product_attention"""
    ),
    "tanh": _ops("tanh gelu mish"),
    "variance": _NORMALISATIONS | _ops("var std var_mean"),
    "reduction": _NORMALISATIONS
    | _ops(
        """softmax log_softmax sum mean logsumexp var std var_mean amax amin max min norm prod
        linalg_vector_norm cross_entropy_loss adaptive_avg_pool2d"""
    ),
}


def features_of(program: ExportedProgram, has_weights: bool) -> frozenset[str]:
    """Return the contents of the graph that decide which options can matter.

    They are `matmul`, `conv` (each a `gemm`), `conv1x1`, `exp` (exponentials), `tanh`, `variance`,
    `reduction`; `weights` if it has any; `many` if it has enough operators for fusion to choose.
    """
    nodes = [node for node in program.graph.nodes if node.op == "call_function"]
    names = _operators(program)
    found = {feature for feature, ops in _FEATURES.items() if names & ops}
    found |= {"gemm"} if found & {"matmul", "conv"} else set()
    found |= {"weights"} if has_weights else set()
    found |= {"many"} if len(nodes) > 2 else set()
    for node in nodes:
        if getattr(node.target, "_opname", "") == "conv2d":
            weight = node.args[1].meta["val"]
            found |= {"conv1x1"} if weight.shape[2:] == (1, 1) else set()
    return frozenset(found)
