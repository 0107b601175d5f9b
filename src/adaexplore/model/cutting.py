"""The forwards of modules that are no problem as a whole, cut into runs of operations.

`torch.fx` traces such a forward, with the modules inside as single operations. A run has operations
that follow each other without one that no kernel can take over, such as an attention with a cache
that grows.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import chain, count
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.graph_module import _format_import_block
from torch.fx.passes.utils.fuser_utils import erase_nodes, fuse_as_graphmodule, insert_subgm
from torch.package.importer import sys_importer

from adaexplore.model.calls import ModelCall
from adaexplore.model.cuts import in_place
from adaexplore.model.groups import MOST_OPERATIONS, is_inside, joined, unfit_modules
from adaexplore.model.hooks import hooked
from adaexplore.model.seen import Seen
from adaexplore.model.unseen import tensors_in
from adaexplore.runtime.cuts import CutForward, OperationRun, Program, Variant, kinds_of
from adaexplore.runtime.interface import library_of
from adaexplore.runtime.values import PLAIN

_NAMED = 4
"""Operations in the name of a run."""


def cut_forwards(
    model: nn.Module,
    calls: Sequence[ModelCall],
    seen: Mapping[str, Seen],
    changed: Collection[str] = (),
) -> dict[str, CutForward]:
    """Run the calls of a model, and return the cut forwards of its modules by their paths.

    Only modules that neither are nor lie in one that a kernel can take the place of are cut, and
    only those whose cut forward gives their outputs.
    """
    cutter = _Cutter(seen, unfit_modules(model, seen, changed))
    for call in calls:
        with hooked(model, cutter.enter):
            call.copied().run(model)
    return {path: cut for path, cut in cutter.cuts.items() if cut.variants and cut.runs}


class _Cutter:
    """Cuts forwards when they are called, and compares them with the originals."""

    def __init__(self, seen: Mapping[str, Seen], unfit: Collection[str]) -> None:
        self._seen = seen
        fit = [path for path in seen if path not in unfit]
        self._fit = set(fit)
        self._cuttable = {p for p in unfit if not any(is_inside(p, outer) for outer in fit)}
        self._is_at_work = False
        self._tried: dict[str, list[object]] = {}
        self.cuts: dict[str, CutForward] = {}

    def enter(
        self, path: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Cut the forward of a module for a kind of call, and try it on each form of calls."""
        is_own = path in self._cuttable and "forward" not in vars(module)
        if self._is_at_work or not is_own or not module._modules:
            return
        tensors = [(t.shape, t.dtype) for t in tensors_in((args, kwargs))]
        form = (kinds_of({"args": args, **kwargs}), tensors)
        tried = self._tried.setdefault(path, [])
        if form in tried:
            return
        tried.append(form)
        self._is_at_work = True
        try:
            self._try(path, module, args, kwargs)
        except Exception:  # noqa: BLE001 - tracing fails in many ways; then the module stays whole
            self._forget(path, args, kwargs)
        finally:
            self._is_at_work = False

    def _try(
        self, path: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        if path not in self.cuts:
            self.cuts[path] = CutForward(module)
        cut = self.cuts[path]
        values = cut.values(args, kwargs)
        kinds = kinds_of(values)
        if not cut.variant(kinds):
            graph = _traced(module, values)
            _Runs(path, module, graph, self._seen, self._fit).cut(copy.deepcopy(values), cut.runs)
            free = tuple(name for name, value in values.items() if not isinstance(value, PLAIN))
            cut.variants.append(Variant(kinds, free, Program(_text_of(graph.graph))))
        own, other = copy.deepcopy((args, kwargs)), copy.deepcopy((args, kwargs))
        expected = type(module).forward(module, *own[0], **own[1])
        _, why = cut.chosen(*other)
        with in_place([cut]):
            found = cut(*other[0], **other[1])
        if why or kinds_of({"": found}) != kinds_of({"": expected}):
            raise ValueError("the cut forward does not stand for the call")
        torch.testing.assert_close(
            tensors_in((found, other)), tensors_in((expected, own)), rtol=0, atol=0, equal_nan=True
        )

    def _forget(self, path: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if cut := self.cuts.get(path):
            kinds = kinds_of(cut.values(args, kwargs))
            cut.variants = [one for one in cut.variants if one.kinds != kinds]


class _Tracer(fx.Tracer):
    """Traces a forward by these arguments; modules inside stay single operations."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__()
        self._values = values

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Return True: the modules inside are called as they are."""
        del m, module_qualified_name
        return True

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Any, list[Any]]:
        """Return the forward with constants, and placeholders for all other arguments."""
        del is_module, concrete_args
        values = {
            name: value
            if isinstance(value, PLAIN)
            else self.create_proxy("placeholder", name, (), {})
            for name, value in self._values.items()
        }
        return partial(root_fn, **values), [self.root]

    def create_arg(self, a: Any) -> Any:
        """Return an argument of an operation; raise for a tensor that the forward itself made."""
        if isinstance(a, Tensor):
            own = (*self.root.parameters(), *self.root.buffers())
            if not any(a is tensor for tensor in own):
                raise ValueError("a tensor that is no argument and no weight")
        return super().create_arg(a)


def _traced(module: nn.Module, values: Mapping[str, Any]) -> fx.GraphModule:
    """Return the graph of a forward, which reads the module's own tensors first."""
    graph = _Tracer(values).trace(module)
    first = next(n for n in graph.nodes if n.op != "placeholder")
    for node in graph.nodes:
        if node.op == "get_attr" and node is not first:
            first.prepend(node)
    return fx.GraphModule(module, graph)


def _text_of(graph: fx.Graph) -> str:
    code = graph.python_code("self")
    imports = _format_import_block(code.globals, sys_importer)
    return f"{imports}\n{code.src}"


class _Values(fx.Interpreter):
    """Runs a graph, and notes what its operations give.

    `tensors` are those that give tensors, `computed` those of them that give no view, `constants`
    those that give numbers and the like, `sizes` those that give a shape. `writing` are those that
    write to a tensor.
    """

    def __init__(self, graph: fx.GraphModule) -> None:
        super().__init__(graph)
        self.tensors: set[fx.Node] = set()
        self.computed: set[fx.Node] = set()
        self.constants: set[fx.Node] = set()
        self.sizes: set[fx.Node] = set()
        self.writing: set[fx.Node] = set()

    def run_node(self, n: fx.Node) -> Any:
        """Run an operation."""
        given = [t for i in n.all_input_nodes for t in tensors_in(self.env[i])]
        versions = [t._version for t in given]
        value = super().run_node(n)
        if [t._version for t in given] != versions:
            self.writing.add(n)
        parts = value if type(value) in (tuple, list) else [value]
        if isinstance(value, torch.Size):
            self.sizes.add(n)
        elif all(isinstance(part, PLAIN) for part in parts):
            self.constants.add(n)
        elif all(isinstance(part, Tensor) for part in parts):
            self.tensors.add(n)
            if not _memory(parts) <= _memory(given):
                self.computed.add(n)
        return value


def _memory(tensors: Sequence[Tensor]) -> set[int]:
    return {t.untyped_storage().data_ptr() for t in tensors}


class _Runs:
    """The runs of operations in a graph."""

    def __init__(
        self,
        path: str,
        module: nn.Module,
        graph: fx.GraphModule,
        seen: Mapping[str, Seen],
        fit: Collection[str],
    ) -> None:
        self._path = path
        self._module = module
        self._graph = graph
        self._seen = seen
        self._fit = fit
        self._values = _Values(graph)
        elements = Counter(each for each in map(self._element, graph.graph.nodes) if each)
        self._repeated = {each for each, times in elements.items() if times > 1}

    def cut(self, values: Mapping[str, Any], runs: dict[str, OperationRun]) -> None:
        """Put a call in the place of every run; add the runs to `runs` by their names."""
        free = [values[n.target] for n in self._graph.graph.nodes if n.op == "placeholder"]
        self._values.run(*free)
        for nodes in self._found():
            self._replace(nodes, runs)

    def _found(self) -> list[list[fx.Node]]:
        found: list[list[fx.Node]] = []
        nodes: list[fx.Node] = []
        for node in list(self._graph.graph.nodes):
            if node.op in ("placeholder", "get_attr"):
                continue
            if nodes and self._is_aside(node, nodes):
                nodes[0].prepend(node)
                continue
            fits = self._fits(node)
            if nodes and not (fits and self._has_room(nodes, node)):
                found.append(nodes)
                nodes = []
            if fits:
                nodes.append(node)
        return [each for each in found if sum(map(self._computes, each)) > 1]

    def _is_aside(self, node: fx.Node, nodes: Sequence[fx.Node]) -> bool:
        """Return whether an operation gives constants, and can come before a run."""
        is_constant = node in self._values.constants | self._values.sizes
        return is_constant and not any(i in nodes for i in node.all_input_nodes)

    def _fits(self, node: fx.Node) -> bool:
        """Return whether a kernel can take over an operation."""
        values = self._values
        if node.op == "output" or node not in values.tensors - values.writing:
            return False
        if not (values.tensors | values.constants).issuperset(node.all_input_nodes):
            return False
        if node.op != "call_module":
            return True
        is_layer = self._element(node) in self._repeated
        return joined(self._path, str(node.target)) in self._fit and not is_layer

    def _has_room(self, nodes: Sequence[fx.Node], node: fx.Node) -> bool:
        """Return whether an operation can join a run: it has one module of modules at most."""
        if self._composite(node) and any(map(self._composite, nodes)):
            return False
        return sum(map(self._count, [*nodes, node])) <= MOST_OPERATIONS

    def _element(self, node: fx.Node) -> tuple[str, type] | None:
        """Return the list and the class of a module with a number, such as a layer of a model."""
        container, _, name = str(node.target).rpartition(".")
        if node.op != "call_module" or not name.isdecimal():
            return None
        kind = type(self._module.get_submodule(str(node.target)))
        return (container, kind) if self._composite(node) or not library_of(kind) else None

    def _composite(self, node: fx.Node) -> nn.Module | None:
        if node.op != "call_module":
            return None
        module = self._module.get_submodule(str(node.target))
        return module if module._modules else None

    def _count(self, node: fx.Node) -> int:
        if node.op != "call_module":
            return 1
        return self._seen[joined(self._path, str(node.target))].operations

    def _computes(self, node: fx.Node) -> bool:
        return node in self._values.computed and self._count(node) > 0

    def _replace(self, nodes: list[fx.Node], runs: dict[str, OperationRun]) -> None:
        """Put a call of a run in the place of its operations."""
        inner, inputs, outputs = fuse_as_graphmodule(self._graph, nodes, "run")
        text = _text_of(inner.graph)
        label = self._label(nodes, text, runs)
        if label not in runs:
            paths = dict.fromkeys(str(n.target) for n in nodes if n.op == "call_module")
            runs[label] = OperationRun(text, tuple(paths), self._module)
        insert_subgm(self._graph, inner, inputs, outputs, nodes[-1])
        call = nodes[-1].next
        call.target, call.args, call.kwargs = label, (), {node.name: node for node in inputs}
        erase_nodes(self._graph, nodes)

    def _label(self, nodes: Sequence[fx.Node], text: str, runs: Mapping[str, OperationRun]) -> str:
        """Return the name of a run: the same for the same operations, else no name in use."""
        names = [self._name(node) for node in nodes if self._computes(node)]
        if len(names) > _NAMED:
            names[_NAMED - 1 :] = [f"{len(names) - _NAMED + 1}_more"]
        base = "_".join(names)
        for label in chain([base], (f"{base}_{i}" for i in count(2))):
            if label in runs and runs[label].text == text:
                break
            if label not in runs and not hasattr(self._module, label):
                break
        return label

    def _name(self, node: fx.Node) -> str:
        """Return the name of a module, its class where that is a number, or of an operation."""
        if node.op != "call_module":
            return re.sub(r"_\d+$", "", node.name).strip("_")
        name = str(node.target).rpartition(".")[2]
        module = self._module.get_submodule(str(node.target))
        return type(module).__name__.lower() if name.isdecimal() else name
