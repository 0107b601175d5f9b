"""The text of a problem, written from a PyTorch function and the script that times it.

The script (of TritonBench or KernelBench-X) has one class: `get_input_tensors` appends a case for
each of several sizes, `to_cuda` moves a case, and `call_op` calls the function with it. The text
has the function as it stands, a `Model` whose `forward` is `call_op`, and a `get_inputs` that makes
one case. Nothing of it is run here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adaexplore.core.problem import Workload
from adaexplore.core.verdict.labels import INPUTS_CLONED, UNIFORM_INPUTS, WITHOUT_DROPOUT
from adaexplore.problems.benchmarks.scripted.case import TimedCase, TimedSize, case_of, names_read
from adaexplore.problems.benchmarks.scripted.forward import forward_of
from adaexplore.problems.benchmarks.scripted.function import Function, UnusableError
from adaexplore.problems.benchmarks.scripted.kernels import Kernels
from adaexplore.problems.benchmarks.scripted.names import undefined
from adaexplore.problems.benchmarks.scripted.settings import (
    constructor_of,
    settings_of,
    with_settings,
)

MOST_ELEMENTS = 1 << 25
"""The most elements of the inputs of a problem: 128 MiB in float32, more than a GPU's caches."""

MOST_MS = 5.0
"""The longest time of a call at the size of a problem, where its benchmark measured it."""

_IMPORTED = {"torch", "math", "numpy", "random"}
_TEXT = """{function}


# From here on: a module around {name}, with inputs of sizes at which its benchmark times it.


{imports}


class Model(torch.nn.Module):
{model}

def get_inputs({size}):
{inputs}"""


@dataclass(frozen=True, slots=True)
class WrittenTask:
    """The text of a problem, and what it does not declare yet: workloads and labels.

    `name` is the function's, which an answer defines too. `place` is that of the timed size among
    the script's.
    """

    name: str
    text: str
    workloads: tuple[Workload, ...]
    labels: dict[str, str]
    place: int = 0


@dataclass(frozen=True, slots=True)
class _Script:
    """The parts of a script that a problem has."""

    imports: tuple[str, ...]
    constructor: ast.FunctionDef | None
    cases: ast.FunctionDef
    moves: ast.FunctionDef
    call: ast.FunctionDef


def problem_text(
    function: str,
    script: str,
    *,
    most: int = MOST_ELEMENTS,
    times: Sequence[float] = (),
    is_kernel: bool = False,
) -> WrittenTask:
    """Return the text of the problem of a function and its script.

    Of the script's sizes it is timed at the largest whose inputs have `most` elements or fewer and
    whose call takes `MOST_MS` or less, and must be right at the first, too. `times` are those of
    calls at the sizes, in milliseconds, as far as they are known. Dropout is turned off, and inputs
    that the function writes to are cloned in `forward`; labels say so. With `is_kernel`, the
    function is made of kernels: what it draws and writes, its text does not tell. Raises
    `UnusableError`, with the reason, where there is no such problem.
    """
    parts = _parts(script)
    called: Function | Kernels = (
        Kernels.called(function, parts.call) if is_kernel else Function.called(function, parts.call)
    )
    if drawn := called.draws():
        raise UnusableError(f"its reference draws random numbers ({drawn})")
    if called.trains():
        raise UnusableError("its reference trains: it needs gradients of its own")
    call, switch = called.without_dropout(parts.call)
    slow = {place for place, time_ms in enumerate(times) if time_ms > MOST_MS}
    case, forward = forward_of(call, case_of(parts.cases, parts.moves, most, slow))
    written = called.written_by(forward)
    forward.body = [*(_clone(name) for name in written), *forward.body]
    returned = ast.Return(ast.List(list(case.values), ast.Load()))
    given, start = _sized(case.size)
    inputs = [*start, *case.body, returned]
    model = [*constructor_of(parts.constructor, [forward, *inputs]), forward]
    if "self" in names_read(inputs):
        inputs.insert(0, _statement("self = Model()"))
    text = _TEXT.format(
        function=function.strip(),
        name=called.name,
        imports="\n".join(parts.imports),
        model="\n".join(_indented([node]) for node in model),
        size=given,
        inputs=_indented(inputs),
    )
    own = names_read([*model, *inputs])
    if missing := [name for name in undefined(text) if name in own]:
        raise UnusableError(f"its script uses {missing[0]}, which nothing defines")
    labels = dict(_labels(case, written, switch))
    place = case.size.place if case.size else 0
    return WrittenTask(called.name, text, tuple(_workloads(case.size)), labels, place)


def _parts(script: str) -> _Script:
    tree = ast.parse(script)
    for one in tree.body:
        methods = one.body if isinstance(one, ast.ClassDef) else []
        found = {node.name: node for node in methods if isinstance(node, ast.FunctionDef)}
        if {"get_input_tensors", "to_cuda", "call_op"} <= found.keys():
            known = settings_of(found.get("__init__"))
            return _Script(
                imports=tuple(dict.fromkeys(["import torch", *_imports(tree)])),
                constructor=found.get("__init__"),
                cases=with_settings(found["get_input_tensors"], known),
                moves=with_settings(found["to_cuda"], known),
                call=with_settings(found["call_op"], known),
            )
    raise UnusableError("its script has no class with get_input_tensors, to_cuda and call_op")


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.Import(names=[alias]) if alias.name.partition(".")[0] in _IMPORTED:
                yield ast.unparse(node)
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in _IMPORTED:
                yield ast.unparse(node)


def _sized(size: TimedSize | None) -> tuple[str, list[ast.stmt]]:
    """Return the parameter of `get_inputs`, and the statement that takes it apart."""
    if size is None:
        return "", []
    chosen = ast.unparse(size.chosen)
    if isinstance(size.target, ast.Name):
        return f"{size.target.id}={chosen}", []
    return f"size={chosen}", [_statement(f"{ast.unparse(size.target)} = size")]


def _workloads(size: TimedSize | None) -> Iterator[Workload]:
    """Yield the chosen size, and the first as one that must be right and is not timed."""
    yield Workload()
    if size and ast.unparse(size.first) != ast.unparse(size.chosen):
        yield Workload("small", f"get_inputs({ast.unparse(size.first)})", timed=False)


def _clone(name: str) -> ast.stmt:
    return _statement(f"{name} = {name}.clone()")


def _labels(case: TimedCase, written: Sequence[str], switch: str) -> Iterator[tuple[str, str]]:
    if switch:
        yield WITHOUT_DROPOUT, f"its benchmark times it with random dropout; here {switch}"
    if written:
        names = ", ".join(written)
        yield INPUTS_CLONED, f"it writes to its inputs: forward() gives it clones of {names}"
    if case.is_uniform:
        yield UNIFORM_INPUTS, "its benchmark draws all real inputs by torch.rand"


def _statement(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


def _indented(body: Sequence[ast.stmt]) -> str:
    lines = "\n".join(ast.unparse(ast.fix_missing_locations(node)) for node in body).splitlines()
    return "".join(f"    {line}".rstrip() + "\n" for line in lines)
