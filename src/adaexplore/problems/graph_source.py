"""An exported graph as the readable source of a module in KernelBench form."""

from __future__ import annotations

import operator
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

HEADER = """import torch
import torch.nn.functional as F
from pathlib import Path
from torch import nn
"""

_INFIX = {
    **{"add": "+", "sub": "-", "mul": "*", "div": "/", "matmul": "@"},
    **{"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="},
    **{"__and__": "&", "__or__": "|", "__xor__": "^"},
}
_PYTHON = {
    **{operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//"},
    **{operator.truediv: "/", operator.mod: "%", operator.pow: "**"},
}
_ON_SIZES = {"sym_max": "max", "sym_min": "min", "sym_float": "float", "sym_int": "int"}
_CHECKS = ("_assert", "sym_constrain_range", "_assert_tensor_metadata")
_DEFAULTS = ("layout=torch.strided", "pin_memory=False")
_WHOLE = 1 << 62  # the end of a slice that has none


class UnwritableError(Exception):
    """A graph that cannot be written as source; the text names the operation."""


def state_of(module: nn.Module) -> dict[str, Tensor]:
    """Return all parameters and buffers by name, also shared and non-persistent ones."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


class GraphSource:
    """The source of an exported module.

    The graph calls the module's own tensors by their names after `prefix`, and its inputs are
    called `inputs` in the source. `state` holds the tensors that the source's module must be given:
    those of the module under their own names, and the graph's constants.
    """

    def __init__(
        self, program: ExportedProgram, module: nn.Module, prefix: str, inputs: Sequence[str]
    ) -> None:
        self._graph = program.graph_module
        self._prefix = prefix
        given = iter(inputs)
        self.state = state_of(module)
        self._parameters = {name for name, _ in module.named_parameters(remove_duplicate=False)}
        self._names: dict[str, str] = {}  # of placeholders: what stands for each in the source
        self._inputs: dict[str, str] = {}
        for spec in program.graph_signature.input_specs:
            name = spec.arg.name
            if spec.kind is InputKind.USER_INPUT:
                self._inputs[name] = next(given)
            elif spec.kind is InputKind.CONSTANT_TENSOR:
                constant = f"constant_{name.rpartition('_')[2]}" if name else name
                assert spec.target is not None
                self.state[constant] = program.constants[spec.target]
                self._names[name] = constant
            elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
                assert spec.target is not None
                self._names[name] = spec.target.removeprefix(prefix)
            else:
                raise UnwritableError(f"an input of kind {spec.kind.name}")

    @property
    def results(self) -> set[str]:
        """The names of the results of all operations."""
        graphs = (m.graph for m in self._graph.modules() if isinstance(m, fx.GraphModule))
        return {n.name for graph in graphs for n in graph.nodes if n.op == "call_function"}

    def module(self, plain: Container[str]) -> str:
        """Return the source of the class `Model`.

        Operations are written as functions of torch and methods of tensors; those whose results are
        named in `plain` as calls of `torch.ops.aten`, which always have this form.
        """
        tree = _Tree(self.state, self._parameters)
        constructor = "\n".join(f"        {line}" for line in tree.constructor())
        known = {name: tree.expression(path) for name, path in self._names.items()}
        known |= self._inputs
        lines = list(_Body(self._prefix, plain).lines(self._graph, known))
        body = "\n".join(f"        {line}" for line in lines)
        parameters = ", ".join(["self", *self._inputs.values()])
        return (
            f"class Model({tree.base}):\n"
            "    def __init__(self):\n"
            f"        super().__init__({tree.entries('')})\n"
            f"{constructor}\n\n"
            f"    def forward({parameters}):\n"
            f"{body}\n"
        ).replace("\n\n\n", "\n\n")


class _Tree:
    """Nested modules that hold tensors under given names."""

    def __init__(self, state: Mapping[str, Tensor], parameters: set[str]) -> None:
        self._state = state
        self._parameters = parameters
        self._modules = {""}
        for name in state:
            parts = name.split(".")[:-1]
            self._modules |= {".".join(parts[: i + 1]) for i in range(len(parts))}
        self._lists = {path for path in self._modules if self._is_list(path)}

    @property
    def base(self) -> str:
        """The class that `Model` is derived from."""
        return "nn.ModuleList" if "" in self._lists else "nn.Module"

    def entries(self, path: str) -> str:
        """Return what the constructor of a module is given: the entries of a list."""
        if path not in self._lists:
            return ""
        count = 1 + max(int(child.rpartition(".")[2]) for child in self._children(path))
        return f"nn.Module() for _ in range({count})"

    def _children(self, path: str) -> list[str]:
        depth = len(path.split(".")) + 1 if path else 1
        inside = [m for m in self._modules if m.startswith(f"{path}." if path else "") and m]
        return [m for m in inside if len(m.split(".")) == depth]

    def _is_list(self, path: str) -> bool:
        last = [child.rpartition(".")[2] for child in self._children(path)]
        return bool(last) and all(name.isdecimal() for name in last)

    def expression(self, path: str) -> str:
        """Return the expression for a tensor or module by its name."""
        found, so_far = "self", ""
        for part in path.split("."):
            if part.isidentifier():
                found += f".{part}"
            elif so_far in self._lists:
                found += f"[{part}]"
            else:
                found = f"getattr({found}, {part!r})"
            so_far = f"{so_far}.{part}" if so_far else part
        return found

    def constructor(self) -> Iterator[str]:
        """Yield the statements that make the modules and tensors."""
        for path in sorted(self._modules - {""}, key=lambda p: (p.count("."), p)):
            parent, _, last = path.rpartition(".")
            if parent in self._lists and path not in self._lists:
                continue  # its list has made it
            kind = "nn.ModuleList" if path in self._lists else "nn.Module"
            made = f"{kind}({self.entries(path)})"
            if last.isidentifier() or parent in self._lists:
                yield f"{self.expression(path)} = {made}"
            else:
                yield f"{self._owner(parent)}.add_module({last!r}, {made})"
        first: dict[int, str] = {}
        for name, tensor in self._state.items():
            parent, _, last = name.rpartition(".")
            if id(tensor) in first:
                yield f"{self.expression(name)} = {self.expression(first[id(tensor)])}"
                continue
            first[id(tensor)] = name
            if name in self._parameters:
                grad = "" if tensor.requires_grad else ", requires_grad=False"
                yield f"{self.expression(name)} = nn.Parameter({like(tensor)}{grad})"
            else:
                yield f'{self._owner(parent)}.register_buffer("{last}", {like(tensor)})'

    def _owner(self, path: str) -> str:
        return self.expression(path) if path else "self"


def like(tensor: Tensor) -> str:
    """Return the expression of a tensor of the same form with values of the same size."""
    shape = ", ".join(map(str, tensor.shape)) if tensor.dim() else "()"
    dtype = "" if tensor.dtype is torch.float32 else f", dtype={tensor.dtype}"
    if tensor.numel() == 0 or not tensor.is_floating_point():
        return f"torch.zeros({shape}{dtype})"
    low, high = float(tensor.min()), float(tensor.max())
    if low == high:
        return f"torch.full({list(tensor.shape)}, {low!r}{dtype})"
    made = f"torch.empty({shape}{dtype})"
    if low >= 0:
        return f"{made}.uniform_({low:.3g}, {high:.3g})"
    return f"{made}.normal_({float(tensor.float().mean()):.3g}, {float(tensor.float().std()):.3g})"


class _Body:
    """The statements of `forward`."""

    def __init__(self, prefix: str, plain: Container[str]) -> None:
        self._prefix = prefix
        self._plain = plain
        self._place = ""

    def lines(self, graph: fx.GraphModule, known: dict[str, str]) -> Iterator[str]:
        """Yield the statements of a graph; `known` maps its placeholders to expressions."""
        outputs: list[str] = []
        yield from self._inlined(graph, known, outputs)
        returned = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
        yield f"return {returned}"

    def _inlined(
        self, graph: fx.GraphModule, known: dict[str, str], outputs: list[str]
    ) -> Iterator[str]:
        for node in graph.graph.nodes:
            if node.op == "output":
                outputs += [_text(value, known) for value in node.args[0] if value is not None]
            elif node.op == "call_function":
                place = self._place_of(node)
                if place != self._place:
                    self._place = place
                    yield f"# {place}" if place else "# the module itself"
                yield from self._statement(graph, node, known)
            elif node.op not in ("placeholder", "get_attr"):
                raise UnwritableError(f"a node of kind {node.op}")

    def _place_of(self, node: fx.Node) -> str:
        stack = list((node.meta.get("nn_module_stack") or {"": ("", "")}).values())
        path: str = stack[-1][0] if stack else ""
        return path.removeprefix(self._prefix.rstrip(".")).lstrip(".")

    def _statement(
        self, graph: fx.GraphModule, node: fx.Node, known: dict[str, str]
    ) -> Iterator[str]:
        target = node.target
        if _name(target).startswith(_CHECKS):
            return
        if isinstance(target, torch._ops.HigherOrderOperator):
            yield from self._region(graph, node, known)
            return
        if _name(target) in ("dropout", "feature_dropout") and node.args[2] is False:
            known[node.name] = _text(node.args[0], known)
            return
        value = self._call(node, known)
        known[node.name] = node.name
        yield f"{node.name} = {value}" if node.users else value

    def _region(self, graph: fx.GraphModule, node: fx.Node, known: dict[str, str]) -> Iterator[str]:
        """Write the body of a region without gradients, or without autocast, in its place."""
        before = {"wrap_with_set_grad_enabled": 1, "wrap_with_autocast": 4}.get(_name(node.target))
        if before is None or (before == 4 and node.args[2]):
            raise UnwritableError(f"a region of {_name(node.target)}")
        inner = getattr(graph, str(node.args[before].target))  # type: ignore[union-attr]
        given = [_text(value, known) for value in node.args[before + 1 :]]
        names = [n for n in inner.graph.nodes if n.op == "placeholder"]
        inside = {n.name: text for n, text in zip(names, given, strict=True)}
        for each in inner.graph.nodes:  # names of the region must not meet those around it
            if each.op == "call_function" and not each.name.startswith(node.name):
                each.name = f"{node.name}_{each.name}"
        outputs: list[str] = []
        yield from self._inlined(inner, inside, outputs)
        known[node.name] = f"({', '.join(outputs)},)"
        for user in node.users:
            if user.target is operator.getitem:
                known[user.name] = outputs[user.args[1]]  # type: ignore[index]

    def _call(self, node: fx.Node, known: dict[str, str]) -> str:
        target, arguments = node.target, [_text(value, known) for value in node.args]
        named = [f"{key}={_text(value, known)}" for key, value in node.kwargs.items()]
        if target is operator.getitem:
            return known.get(node.name) or f"{arguments[0]}[{arguments[1]}]"
        if target in _PYTHON:
            return f"{arguments[0]} {_PYTHON[target]} {arguments[1]}"
        name = _name(target)
        if name in _ON_SIZES:
            return f"{_ON_SIZES[name]}({', '.join(arguments)})"
        if name == "sym_size":
            return f"{arguments[0]}.shape[{arguments[1]}]"
        if not isinstance(target, torch._ops.OpOverload):
            raise UnwritableError(f"a call of {target}")
        both = ", ".join([*arguments, *named])
        if node.name in self._plain:
            return f"torch.ops.{target!s}({both})"
        return _readable(name, arguments, named, node) or f"torch.ops.{target!s}({both})"


def _readable(name: str, arguments: list[str], named: list[str], node: fx.Node) -> str | None:
    """Return a call of an operation of ATen as its users write it, None for no such form."""
    first, *rest = arguments or [""]
    named = [each for each in named if each not in _DEFAULTS]
    both = ", ".join([*arguments, *named])
    if name in _INFIX and len(arguments) == 2 and not named:
        return f"{first} {_INFIX[name]} {rest[0]}"
    if name == "slice" and not named:
        dim = node.args[1] if len(node.args) > 1 else 0
        if isinstance(dim, int) and dim >= 0:
            return f"{first}[{':, ' * dim}{_slice(node, rest[1:])}]"
    if name == "index" and not named:
        indices = node.args[1]
        assert isinstance(indices, Sequence)
        texts = rest[0].strip("[]").split(", ")
        if len(texts) == len(indices):
            return f"{first}[{', '.join(':' if t == 'None' else t for t in texts)}]"
    if name == "embedding" and len(arguments) == 2 and not named:
        return f"F.embedding({rest[0]}, {first})"
    if hasattr(torch._C._nn, name) and getattr(F, name, None) is getattr(torch._C._nn, name):
        return f"F.{name}({both})"
    if name in ("silu", "mish", "layer_norm", "group_norm") and hasattr(F, name):
        kept = arguments[: 5 if name.endswith("norm") else 1]
        return f"F.{name}({', '.join(kept)})"
    if hasattr(torch._C._VariableFunctions, name) and hasattr(torch, name):
        return f"torch.{name}({both})"
    if hasattr(Tensor, name) and first.isidentifier():
        return f"{first}.{name}({', '.join([*rest, *named])})"
    return None


def _slice(node: fx.Node, texts: list[str]) -> str:
    start, end, step = [*texts, *["None"] * 3][:3]
    values = [*node.args[2:], None, None][:2]
    start = "" if start in ("None", "0") else start
    end = "" if end == "None" or (isinstance(values[1], int) and values[1] > _WHOLE) else end
    return f"{start}:{end}" + (f":{step}" if step not in ("None", "1") else "")


def _name(target: Any) -> str:
    """Return the name of an operation without its namespace and overload."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target._schema.name.partition("::")[2])
    return str(getattr(target, "__name__", target))


def _text(value: Any, known: Mapping[str, str]) -> str:
    """Return the expression of an argument."""
    if isinstance(value, fx.Node):
        return known[value.name]
    if isinstance(value, tuple | list):
        return f"[{', '.join(_text(item, known) for item in value)}]"
    if isinstance(value, float) and not abs(value) < float("inf"):
        return f'float("{value}")'
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    if isinstance(value, slice):
        raise UnwritableError("an index by a slice")
    return repr(value) if isinstance(value, str | bool | int | float | complex) else str(value)
