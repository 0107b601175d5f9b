"""The file of a problem for a definition: its reference, a `Model` around it, and the drawing."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from adaexplore.core.errors import BadProblemError
from adaexplore.problems.flashinfer.rules import Drawn, drawn
from adaexplore.problems.flashinfer.safetensors import StoredTensor, find_tensor
from adaexplore.problems.flashinfer.schema import (
    CUSTOM,
    DTYPES,
    RANDOM,
    SAFETENSORS,
    SCALAR,
    BenchWorkload,
    Definition,
)

_RANDOM = ("multinomial", "bernoulli", "rand", "randn", "randint", "randperm", "dropout")
_OWN = ("Model", "draw_inputs")

_FILE = """{reference}


# From here on: the reference as a module, and the drawing of its inputs.

{imports}

CASTS_ARE_PRECISION = True
FROZEN_INPUTS = {frozen!r}


class Model(nn.Module):
    def forward(self, {names}):
{clones}        return run({keywords})

{helpers}
def draw_inputs({parameters}):
{body}
    return [{names}]
"""


@dataclass(frozen=True, slots=True)
class ProblemFile:
    """The text of a problem's file, the expression of each workload, and the files it reads."""

    text: str
    draws: tuple[str, ...]
    reads: tuple[Path, ...]


def problem_file(
    definition: Definition, workloads: Sequence[BenchWorkload], root: Path
) -> ProblemFile:
    """Write the file of a definition for some of its workloads.

    Raises `BadProblemError`, in one line, for a definition that cannot be a problem, and its
    subclass `DataMissingError` for data of a workload that is not there.
    """
    tree = check(definition)
    places = [_places(definition, workload, root) for workload in workloads]
    plan = _Plan(definition, workloads)
    names = ", ".join(definition.inputs)
    text = _FILE.format(
        about=" ".join(f"{definition.name}: {definition.description}".split()),
        reference=_with_gradients(definition.reference, tree),
        imports=_imports(plan.uses),
        frozen=plan.frozen,
        names=names,
        clones=_clones(definition, tree),
        keywords=", ".join(f"{name}={name}" for name in definition.inputs),
        helpers="".join(f"\n{_helpers()[name]}\n\n" for name in plan.uses),
        parameters=", ".join([*definition.var_axes, *(f"{name}=None" for name in plan.given)]),
        body=textwrap.indent("\n".join(plan.lines()), "    "),
    )
    draws = tuple(_call(definition, w, p) for w, p in zip(workloads, places, strict=True))
    reads = {tensor.file for found in places for tensor in found.values()}
    return ProblemFile(text, draws, tuple(sorted(reads)))


def check(definition: Definition) -> ast.Module:
    """Return the syntax tree of the reference.

    Raises `BadProblemError` for a definition that cannot be a problem, with the reason.
    """
    where = definition.name
    try:
        tree = ast.parse(definition.reference)
    except SyntaxError as error:
        raise BadProblemError(f"{where}: its reference is no Python: {error.msg}") from None
    run = _run_of(definition, tree)
    for part in ast.walk(run):
        called = part.attr if isinstance(part, ast.Attribute) else ""
        if called in _RANDOM:
            raise BadProblemError(
                f"{where}: its reference draws random numbers ({called}), so no output can be "
                "compared with it"
            )
    for name, spec in definition.inputs.items():
        if spec.dtype not in DTYPES:
            raise BadProblemError(
                f"{where}: the input {name} is of {spec.dtype}, which PyTorch cannot compute with"
            )
        if not name.isidentifier():
            raise BadProblemError(f"{where}: the input {name!r} is no name of Python")
    return tree


def _run_of(definition: Definition, tree: ast.Module) -> ast.FunctionDef:
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    bound = {*functions, *(node.name for node in tree.body if isinstance(node, ast.ClassDef))}
    if "run" not in functions:
        raise BadProblemError(f"{definition.name}: its reference defines no function run")
    if definition.custom_inputs and definition.custom_inputs not in functions:
        raise BadProblemError(
            f"{definition.name}: its reference defines no function {definition.custom_inputs}, "
            "which should make the inputs"
        )
    for name in _OWN:
        if name in bound:
            raise BadProblemError(f"{definition.name}: its reference defines {name}; rename that")
    arguments = functions["run"].args
    taken = {each.arg for each in (*arguments.args, *arguments.kwonlyargs)}
    missing = [name for name in definition.inputs if name not in taken]
    if missing:
        raise BadProblemError(f"{definition.name}: run() takes no argument {missing[0]}")
    return functions["run"]


class _Plan:
    """The lines that draw the inputs of a definition.

    `given` are inputs for which some workload has a value or a file: they are parameters, and drawn
    where they are None.
    """

    def __init__(self, definition: Definition, workloads: Sequence[BenchWorkload]) -> None:
        self._definition = definition
        self._custom = definition.custom_inputs
        kinds = {n: {_kind(w, n) for w in workloads} for n in definition.inputs}
        self._stored = [name for name, found in kinds.items() if SAFETENSORS in found]
        self.given = [n for n, found in kinds.items() if found & {SCALAR, SAFETENSORS}]
        self._drawn = {} if self._custom else {n: drawn(definition, n) for n in definition.inputs}

    @property
    def uses(self) -> list[str]:
        """The functions that the lines call, in order."""
        found = [use for each in self._drawn.values() for use in each.uses]
        found += ["read_stored", "renumber_pages"] if self._stored else []
        return list(dict.fromkeys(found))

    @property
    def frozen(self) -> tuple[int, ...]:
        """The numbers, among the tensors of a call, of inputs that only their rule can draw."""
        tensors = [n for n, spec in self._definition.inputs.items() if spec.shape is not None]
        structured = {n for n, each in self._drawn.items() if each.structured} | {*self._stored}
        return tuple(i for i, name in enumerate(tensors) if name in structured)

    def lines(self) -> Iterator[str]:
        """Yield the lines; pools come before the caches of their size."""
        definition = self._definition
        for axis, size in definition.const_axes.items():
            yield f"{axis} = {size}"
        for axis, expression in definition.expr_axes.items():
            yield f"{axis} = int({expression})"
        if self._custom:
            yield from self._custom_lines()
        in_order = sorted(self._drawn, key=lambda n: (n not in self._pooled(), self._rank(n)))
        for name in in_order:
            yield from self._lines_of(name, self._drawn[name])
        for constraint in definition.constraints:
            yield f"assert {constraint}, {constraint!r}"

    def _pooled(self) -> set[str]:
        return {name for name, each in self._drawn.items() if each.first}

    def _rank(self, name: str) -> int:
        """Return the place of an input in the order of drawing: integers first, as they came."""
        spec = self._definition.inputs[name]
        return list(self._definition.inputs).index(name) + 1000 * (not spec.dtype.startswith("int"))

    def _lines_of(self, name: str, each: Drawn) -> Iterator[str]:
        own = [*each.first, f"{name} = {each.text}"]
        if name not in self.given:
            yield from own
            return
        yield f"if {name} is None:"
        yield from (f"    {line}" for line in own)
        if each.first:
            pool = each.first[0].partition(" = ")[0]
            yield "else:"
            yield f"    {pool}, {name} = renumber_pages({name})"

    def _custom_lines(self) -> Iterator[str]:
        names = ", ".join(f'"{n}": {n}' for n in (*self._definition.axes, *self.given))
        yield f"made = {self._custom}({{{names}}}, torch.empty(0).device)"
        for name in self._definition.inputs:
            if name not in self.given:
                yield f'{name} = made["{name}"]'


def _imports(uses: Sequence[str]) -> str:
    lines = ["from pathlib import Path"] if "read_stored" in uses else []
    return "\n".join([*lines, "import torch", "from torch import nn"])


@cache
def _helpers() -> dict[str, str]:
    """Return the text of each function of `drawing`, which needs torch and is not imported."""
    text = Path(__file__).with_name("drawing.py").read_text(encoding="utf-8")
    functions = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    return {node.name: ast.get_source_segment(text, node) or "" for node in functions}


def _with_gradients(reference: str, tree: ast.Module) -> str:
    """Return the reference without decorators under which no derivative can be asked for.

    The judge, and whoever uses a module, decides on that.
    """
    lines = reference.rstrip().splitlines()
    dropped = {
        decorator.lineno
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if decorator.lineno == decorator.end_lineno and _is_without_gradients(decorator)
    }
    return "\n".join(line for number, line in enumerate(lines, 1) if number not in dropped)


def _is_without_gradients(decorator: ast.expr) -> bool:
    return any(name in ast.unparse(decorator) for name in ("no_grad", "inference_mode"))


def _clones(definition: Definition, tree: ast.Module) -> str:
    """Return lines that clone the inputs that the reference writes to: only outputs count."""
    written = {
        name
        for part in ast.walk(_run_of(definition, tree))
        for target in (part.targets if isinstance(part, ast.Assign) else [])
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name)
        for name in (target.value.id,)
        if name in definition.inputs
    }
    return "".join(f"        {n} = {n}.clone()\n" for n in definition.inputs if n in written)


def _kind(workload: BenchWorkload, name: str) -> str:
    return workload.inputs[name].kind if name in workload.inputs else RANDOM


def _places(definition: Definition, workload: BenchWorkload, root: Path) -> dict[str, StoredTensor]:
    found = {}
    for name, source in workload.inputs.items():
        if source.kind == CUSTOM and not definition.custom_inputs:
            raise BadProblemError(f"{definition.name}: names no function for its custom inputs")
        if source.kind == SAFETENSORS and name in definition.inputs:
            found[name] = find_tensor(root, source.path, source.key)
            _check_form(definition, workload, name, found[name])
    return found


def _check_form(
    definition: Definition, workload: BenchWorkload, name: str, tensor: StoredTensor
) -> None:
    spec, sizes = definition.inputs[name], definition.sizes(workload.axes)
    shape = tuple(int(a) if a.isdigit() else sizes[a] for a in spec.shape or ())
    if (tensor.shape, tensor.dtype) != (shape, spec.dtype):
        raise BadProblemError(
            f"{tensor.file}: {name} is {list(tensor.shape)} of {tensor.dtype}; {definition.name} "
            f"says {list(shape)} of {spec.dtype}"
        )


def _call(definition: Definition, workload: BenchWorkload, places: dict[str, StoredTensor]) -> str:
    """Return the expression that draws the inputs of a workload."""
    given = [f"{axis}={workload.axes[axis]}" for axis in definition.var_axes]
    for name, source in workload.inputs.items():
        if source.kind == SCALAR and name in definition.inputs:
            given.append(f"{name}={source.value!r}")
    for name, t in places.items():
        given.append(
            f"{name}=read_stored({str(t.file)!r}, {t.start}, {t.end}, torch.{t.dtype}, {t.shape!r})"
        )
    return f"draw_inputs({', '.join(given)})"
