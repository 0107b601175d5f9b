"""Parser of TorchInductor's generated Python: kernels, and the function that calls them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from adaexplore.propose.compiler.graph import UnsupportedError

_DROPPED_CALLS = frozenset(
    {
        "assert_size_stride",
        "assert_alignment",
        "args.clear",
        "torch.cuda.set_device",
    }
)
_ALLOCATORS = ("empty_strided",)
_FRESH = ("torch.ops.mkldnn.", "torch.ops.mkl.", "extern_kernels.convolution")
"""Operators whose results are new memory, except those that end in `_` and work in place."""


@dataclass(frozen=True, slots=True)
class CppKernel:
    """A C++ kernel: the types of its arguments and its source."""

    argument_types: list[str]
    source: str


@dataclass(frozen=True, slots=True)
class TritonKernel:
    """A Triton kernel as a source file of its own, with Inductor's decorators."""

    source: str


@dataclass(frozen=True)
class Wrapper:
    """The parts of a wrapper's source.

    `parameters` and `body` are the function that makes the call; `header` has the source of the
    imports and assignments at the top, by the name that they bind.
    """

    parameters: list[str]
    body: list[ast.stmt]
    kernels: dict[str, CppKernel | TritonKernel]
    header: dict[str, str]


def parse(source: str) -> Wrapper:
    """Parse a wrapper; raise `UnsupportedError` for a kernel that is neither C++ nor Triton."""
    kernels: dict[str, CppKernel | TritonKernel] = {}
    header: dict[str, str] = {}
    function: ast.FunctionDef | None = None
    for node in ast.parse(source).body:
        match node:
            case ast.FunctionDef(name="call"):
                function = node
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                if dotted(call.func).startswith("async_compile."):
                    kernels[name] = _kernel(name, call)
                else:
                    header[name] = ast.unparse(node)
            case ast.Assign(targets=[ast.Name(id=name)]):
                header[name] = ast.unparse(node)
            case ast.Import(names=names):
                header |= {n.asname or n.name: f"import {ast.unparse(n)}" for n in names}
            case ast.ImportFrom(module=module, names=names):
                header |= {
                    n.asname or n.name: f"from {module} import {ast.unparse(n)}" for n in names
                }
    if function is None:
        raise UnsupportedError("Inductor's source has no function `call`")
    parameters, body = _simplified(function.body)
    return Wrapper(parameters, body, kernels, header)


def _kernel(name: str, call: ast.Call) -> CppKernel | TritonKernel:
    kind = dotted(call.func).removeprefix("async_compile.")
    arguments = [ast.literal_eval(argument) for argument in call.args]
    if kind == "cpp_pybinding":
        return CppKernel(*arguments)
    if kind == "triton":
        return TritonKernel(arguments[1])
    raise UnsupportedError(f"kernel {name} is written in {kind}")


def _simplified(body: list[ast.stmt]) -> tuple[list[str], list[ast.stmt]]:
    """Return the parameters and the working statements: no checks, no aliases of buffers."""
    parameters: list[str] = []
    aliases: dict[str, str] = {}
    dropped: set[str] = set()
    deleted = {
        target.id
        for node in _walk(body)
        if isinstance(node, ast.Delete)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def simplify(statements: list[ast.stmt]) -> list[ast.stmt]:
        kept: list[ast.stmt] = []
        for index, node in enumerate(statements):
            following = statements[index + 1] if index + 1 < len(statements) else None
            match node:
                case ast.Assign(targets=[target], value=ast.Name(id="args")):
                    names = target.elts if isinstance(target, ast.Tuple) else [target]
                    parameters.extend(ast.unparse(name) for name in names)
                case ast.Assign(targets=[ast.Name(id=new)], value=ast.Name(id=old)) if (
                    _deletes(following, old) or old not in deleted
                ):
                    aliases[new] = aliases.get(old, old)
                    dropped.add(old)
                case ast.Delete(targets=targets):
                    node.targets = [
                        target
                        for target in targets
                        if isinstance(target, ast.Name)
                        and target.id not in parameters
                        and target.id not in dropped
                    ]
                    kept += [node] if node.targets else []
                case ast.Expr(value=ast.Call(func=func)) if dotted(func) in _DROPPED_CALLS:
                    pass
                case ast.Assign(value=ast.Call(func=ast.Name(id="copy_if_misaligned"))):
                    pass  # `forward` checks the arguments' alignment, and weights are aligned
                case ast.With():
                    node.body = simplify(node.body)
                    kept.append(node)
                case _:
                    kept.append(node)
        return kept

    statements = simplify(body)
    return parameters, rename(statements, aliases)


def _deletes(node: ast.stmt | None, name: str) -> bool:
    return isinstance(node, ast.Delete) and any(
        isinstance(target, ast.Name) and target.id == name for target in node.targets
    )


def dotted(node: ast.AST) -> str:
    """Return `a.b.c` for a chain of attributes on a name; empty for any other expression."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attribute):
            owner = dotted(value)
            return f"{owner}.{attribute}" if owner else ""
        case _:
            return ""


class _Renamer(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._names.get(node.id, node.id)
        return node


def rename(body: list[ast.stmt], names: dict[str, str]) -> list[ast.stmt]:
    """Return the statements with names replaced."""
    renamer = _Renamer(names)
    return [renamer.visit(node) for node in body]


class _CallRewriter(ast.NodeTransformer):
    def __init__(self, rewrite: Callable[[str, ast.Call], ast.expr | None]) -> None:
        self._rewrite = rewrite

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return self._rewrite(dotted(node.func), node) or node


def rewrite_calls(
    body: list[ast.stmt], rewrite: Callable[[str, ast.Call], ast.expr | None]
) -> list[ast.stmt]:
    """Return the statements with each call replaced by `rewrite(name, call)`, unless None."""
    rewriter = _CallRewriter(rewrite)
    return [rewriter.visit(node) for node in body]


def bound_names(node: ast.AST) -> set[str]:
    """Return the top-level names that a statement binds."""
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {(n.asname or n.name).partition(".")[0] for n in names}
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.If() | ast.Try():
            parts = [*node.body, *node.orelse, *getattr(node, "handlers", [])]
            return {name for part in parts for name in bound_names(part)}
        case ast.ExceptHandler():
            return {name for part in node.body for name in bound_names(part)}
        case _:
            return {
                name.id
                for name in ast.walk(node)
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
            }


def names_in(nodes: Iterable[ast.AST]) -> list[str]:
    """Return every name read or written anywhere in `nodes`, once, in order of appearance."""
    return list(
        dict.fromkeys(
            node.id for root in nodes for node in ast.walk(root) if isinstance(node, ast.Name)
        )
    )


def hoist_workspace(body: list[ast.stmt]) -> tuple[dict[str, str], list[ast.stmt]]:
    """Take out the allocations that no output shares memory with, so that calls can reuse them.

    Returns the allocating expressions by buffer name, and the remaining statements.
    """
    statements = list(_walk(body))
    owners: dict[str, set[str]] = {}
    returned: set[str] = set()
    for node in statements:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                owners[name] = _may_share(value)
            case ast.Return(value=value) if value is not None:
                returned |= set(names_in([value]))
    escaping: set[str] = set()
    while returned:
        name = returned.pop()
        escaping.add(name)
        returned |= owners.get(name, set()) - escaping
    workspace: dict[str, str] = {}

    def without(nodes: list[ast.stmt]) -> list[ast.stmt]:
        kept: list[ast.stmt] = []
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func) as call) if (
                    dotted(func).startswith(_ALLOCATORS) and name not in escaping
                ):
                    workspace[name] = ast.unparse(call)
                case ast.Delete(targets=targets) if all(
                    isinstance(target, ast.Name) and target.id in workspace for target in targets
                ):
                    pass
                case ast.With():
                    node.body = without(node.body)
                    kept.append(node)
                case _:
                    kept.append(node)
        return kept

    remaining = without(body)
    return workspace, remaining


def _walk(body: list[ast.stmt]) -> Iterable[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.With):
            yield from _walk(node.body)


def _may_share(value: ast.expr) -> set[str]:
    """Return the names whose memory the value of an expression may share."""
    if isinstance(value, ast.Call):
        function = dotted(value.func)
        in_place = any(part.endswith("_") for part in function.split("."))
        if function.startswith((*_ALLOCATORS, *_FRESH)) and not in_place:
            return set()
    return set(names_in([value]))
