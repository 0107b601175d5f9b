"""Kernels handed over as functions, for benchmarks whose tasks are functions of PyTorch.

The task's text has the function and a `Model` whose `forward` calls it (see
`benchmarks.scripted.text`). The function that is written has its signature. It runs `ModelNew` with
the arguments that were judged, and PyTorch's function with any other, since nothing is known about
the kernel there.
"""

from __future__ import annotations

import ast
import copy
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

_TEXT = '''{source}


# From here on: {name} as a function, written by `adaexplore export`.


import torch

_made = []


def _by_pytorch():
{function}
    return {name}


def _is(given, judged):
    return not isinstance(given, torch.Tensor) and given == judged


def {name}({signature}):
    """Run ModelNew with the settings that were judged, and PyTorch's function with others."""
    if {condition}:
        if not _made:
            _made.append(ModelNew())
        return _made[0]({inputs})
    return _by_pytorch()({everything})
{alias}'''


class NotAFunctionError(ValueError):
    """A problem whose winner cannot be a function, with the reason in one line."""


@dataclass(frozen=True, slots=True)
class _Call:
    """The call in a task's `forward`: the function, and the expressions of its parameters.

    `inputs` maps a parameter of the function to the one of `forward` that it is given, in the order
    of `forward`; `settings` maps the others to the expressions that were judged.
    """

    function: ast.FunctionDef
    inputs: Mapping[str, str]
    settings: Mapping[str, ast.expr]


def as_function(source: str, task: str, name: str) -> str:
    """Return the source of a winner, which defines `ModelNew`, with the function of its task.

    `name` is the benchmark's name of the function, which may be another than the task's own.
    Raises `NotAFunctionError`, with the reason.
    """
    tree = ast.parse(task)
    call = _call_of(tree)
    function = copy.deepcopy(call.function)
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    for one in given:
        one.annotation = None
    by_name = [arg.arg for arg in function.args.kwonlyargs]
    everything = [f"{arg.arg}={arg.arg}" if arg.arg in by_name else arg.arg for arg in given]
    checks = [f"{parameter} is not None" for parameter in call.inputs]
    checks += [f"_is({one}, {ast.unparse(value)})" for one, value in call.settings.items()]
    own = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    kept = [*own, *(node for node in functions if node.name != "get_inputs")]
    parts = [ast.unparse(node) for node in kept]
    reference = "\n".join(dict.fromkeys(parts))
    alias = f"\n\n{name} = {function.name}\n" if name != function.name else ""
    return _TEXT.format(
        source=source.rstrip(),
        name=function.name,
        function=textwrap.indent(reference, "    "),
        signature=ast.unparse(function.args),
        condition=" and ".join(checks),
        inputs=", ".join(call.inputs),
        everything=", ".join(everything),
        alias=alias,
    )


def _call_of(tree: ast.Module) -> _Call:
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    models = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"]
    methods = [node for one in models for node in one.body if isinstance(node, ast.FunctionDef)]
    forward = next((node for node in methods if node.name == "forward"), None)
    if forward is None or len(methods) > 1:
        raise NotAFunctionError("its Model is not a call of one function")
    *before, last = forward.body
    match [*before[-1:], last]:
        case [
            ast.Assign(targets=[ast.Name(id=bound)], value=value),
            ast.Return(value=ast.Name(id=returned)),
        ] if bound == returned:
            before, last = before[:-1], ast.Return(value)
    match last:
        case ast.Return(value=ast.Call(func=ast.Name(id=name)) as call) if name in functions:
            function = functions[name]
        case _:
            raise NotAFunctionError("its module does not return what the function returns")
    if function.args.vararg or function.args.kwarg or forward.args.vararg:
        raise NotAFunctionError("its function or its module takes any number of arguments")
    return _bound(function, forward, call, _constants(before))


def _bound(
    function: ast.FunctionDef,
    forward: ast.FunctionDef,
    call: ast.Call,
    constants: Mapping[str, ast.expr],
) -> _Call:
    positional = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    given = dict(zip(positional, call.args, strict=False))
    given.update({one.arg: one.value for one in call.keywords if one.arg})
    inputs = [arg.arg for arg in forward.args.args[1:]]
    named = {value.id: one for one, value in given.items() if isinstance(value, ast.Name)}
    if not set(inputs) <= named.keys():
        raise NotAFunctionError("its module does not give its inputs to the function one by one")
    settings: dict[str, ast.expr] = {}
    for parameter, value in {**_defaults(function), **given}.items():
        if isinstance(value, ast.Name) and value.id in inputs:
            continue
        settings[parameter] = _Renaming(named, constants).visit(copy.deepcopy(value))
    return _Call(function, {named[one]: one for one in inputs}, settings)


def _defaults(function: ast.FunctionDef) -> dict[str, ast.expr]:
    positional = [*function.args.posonlyargs, *function.args.args]
    count = len(function.args.defaults)
    found = dict(
        zip(
            (arg.arg for arg in positional[len(positional) - count :]),
            function.args.defaults,
            strict=True,
        )
    )
    for arg, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        if default is not None:
            found[arg.arg] = default
    return found


def _constants(body: list[ast.stmt]) -> dict[str, ast.expr]:
    """Return the values that names have before a call; clones of inputs are the inputs."""
    found: dict[str, ast.expr] = {}
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() as value):
                found[name] = value
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
                ast.unparse(value) == f"{name}.clone()"
            ):
                continue
            case _:
                raise NotAFunctionError("its module computes something around the function")
    return found


class _Renaming(ast.NodeTransformer):
    """Names the inputs of `forward` as the function does, and puts constants in."""

    def __init__(self, named: Mapping[str, str], constants: Mapping[str, ast.expr]) -> None:
        self._named = named
        self._constants = constants

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Rename an input, or put a constant in its place."""
        if node.id in self._constants:
            return copy.deepcopy(self._constants[node.id])
        return ast.Name(self._named.get(node.id, node.id), node.ctx)
