"""The numbers in a candidate's source that can be varied without knowledge of their meaning.

In Python: launch options (`num_warps`, `num_stages`, parameters that are `constexpr`), the fields
of a `Config(...)`, and names that such a place takes its number from. In C++: `constexpr int`,
`const int` and `#define` in the module's strings. A list of several configurations is left alone,
because the kernel chooses from it itself.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from adaexplore.core.candidate import Candidate
from adaexplore.core.problem import Problem

_WARPS = (1, 2, 4, 8, 16, 32)
_STAGES = (1, 2, 3, 4, 5, 6)
_FARTHEST = 4  # up to this multiple of the present value, and down to this fraction
_OPTIONS: Mapping[str, Sequence[int]] = {"num_warps": _WARPS, "num_stages": _STAGES}
_DEPTH = re.compile(r"(?:num_?)?(?:stages|buffers)", re.IGNORECASE)  # of a pipeline
_CONFIGS = ("Config",)
_BLOCKS = "blocks"  # name of the block sizes in launchers of the compiler proposer
_CPP = re.compile(
    rb"\b(?:constexpr|const)\s+(?:static\s+)?(?:unsigned\s+)?(?:int|long|size_t|u?int\d+_t)\s+"
    rb"(?P<name>\w+)\s*=\s*(?P<value>\d+)\s*;|#define\s+(?P<macro>\w+)\s+(?P<number>\d+)[ \t]*"
    rb"(?=\n|\\n)"
)
_TUNING_NAME = re.compile(
    r"block|tile|warp|stage|unroll|chunk|group|split|thread|vec|grain|step|factor|width|"
    r"^[BT][MNKXYZRCTHWS]?$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number in the source: its position in bytes, its value and its possible values.

    In a `Space`, `name` is unique, and `choices` are in order and contain `value`.
    """

    name: str
    start: int
    end: int
    value: int
    choices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Space:
    """The variants of a source."""

    source: str
    parameters: tuple[Parameter, ...]

    @property
    def size(self) -> int:
        """Number of variants, including the source itself."""
        return math.prod(len(parameter.choices) for parameter in self.parameters)

    @property
    def present(self) -> dict[str, int]:
        """Values of the source itself."""
        return {parameter.name: parameter.value for parameter in self.parameters}

    def variant(self, values: Mapping[str, int]) -> str:
        """Return the source with these values by parameter name; other parameters keep theirs."""
        text = self.source.encode()
        for parameter in sorted(self.parameters, key=lambda p: -p.start):
            value = str(values.get(parameter.name, parameter.value)).encode()
            text = text[: parameter.start] + value + text[parameter.end :]
        return text.decode()


def space_of(candidate: Candidate, problem: Problem) -> Space:
    """Return the variable numbers of a candidate; a space without parameters if there are none.

    Choices are powers of two from a quarter to four times the present value. A number that also
    occurs in the problem is one of its sizes, unless its name is that of a tuning parameter.
    """
    try:
        tree = ast.parse(candidate.source)
    except SyntaxError:
        return Space(candidate.source, ())
    sizes = {int(number) for number in re.findall(r"\b\d+\b", problem.source)}
    finder = _Finder(candidate.source, tree)
    sites = finder.cpp() if candidate.language in ("cpp", "cuda") else finder.python()
    parameters: list[Parameter] = []
    seen: dict[str, int] = {}
    for site in sorted(set(sites), key=lambda site: site.start):
        choices = _choices(site)
        is_size = site.value in sizes and not _TUNING_NAME.search(site.name)
        if len(choices) < 2 or (is_size and site.name not in _OPTIONS):
            continue
        seen[site.name] = seen.get(site.name, 0) + 1
        name = site.name if seen[site.name] == 1 else f"{site.name}#{seen[site.name]}"
        parameters.append(replace(site, name=name, choices=choices))
    return Space(candidate.source, tuple(parameters))


def _choices(site: Parameter) -> tuple[int, ...]:
    """Return the choices for a number; only itself if it is not to be varied."""
    value = site.value
    if _DEPTH.fullmatch(site.name):
        near = [n for n in _STAGES if abs(n - value) <= 2]
    elif value < (1 if site.name == "num_warps" else 2) or value & (value - 1):
        near = []
    else:
        all_of_them = _WARPS if site.name == "num_warps" else [1 << n for n in range(17)]
        near = [n for n in all_of_them if value <= n * _FARTHEST and n <= value * _FARTHEST]
    return tuple(near) if value in near else (value,)


class _Finder:
    """Finder of the numbers in one module."""

    def __init__(self, source: str, tree: ast.Module) -> None:
        self._text = source.encode()
        self._tree = tree
        self._starts = [0]
        for line in self._text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._kernels = {
            node.name: node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and any(map(_is_constexpr, _arguments(node)))
        }
        self._constexprs = {
            argument.arg
            for kernel in self._kernels.values()
            for argument in _arguments(kernel)
            if _is_constexpr(argument)
        }

    def cpp(self) -> Iterator[Parameter]:
        """Yield constants and macros in the module's strings."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                start, end = self._span(node)
                for found in _CPP.finditer(self._text, start, end):
                    kind = "value" if found["value"] else "number"
                    name = (found["name"] or found["macro"]).decode()
                    yield Parameter(name, *found.span(kind), int(found[kind]))

    def python(self) -> Iterator[Parameter]:
        """Yield numbers that kernels are launched with, and the sources of names used there."""
        names: dict[str, str] = {}
        for name, value in self._uses():
            match value:
                case ast.Constant(value=int(number)) if not isinstance(number, bool):
                    yield Parameter(name, *self._span(value), number)
                case ast.Name(id=source) | ast.Attribute(attr=source):
                    names[source] = name
        for source, value in self._assignments():
            if source in names and isinstance(value, ast.Constant) and type(value.value) is int:
                name = names[source] if names[source] in _OPTIONS else source
                yield Parameter(name, *self._span(value), value.value)

    def _uses(self) -> Iterator[tuple[str, ast.expr]]:
        """Yield every place where a kernel gets a tunable number, with its name there."""
        several = self._in_several_configs()
        for call in ast.walk(self._tree):
            if not isinstance(call, ast.Call) or call in several:
                continue
            config = ast.unparse(call.func).rpartition(".")[2] in _CONFIGS
            if config and call.args:
                yield from _entries(call.args[0])
            for keyword in call.keywords:
                name = keyword.arg or ""
                if name in _OPTIONS or (config and isinstance(keyword.value, ast.Constant)):
                    yield name, keyword.value
                elif config and isinstance(keyword.value, ast.List):
                    yield from ((name, element) for element in keyword.value.elts)
                elif name == _BLOCKS or (config and isinstance(keyword.value, ast.Dict)):
                    yield from _entries(keyword.value)
                elif isinstance(call.func, ast.Subscript) and name in self._constexprs:
                    yield name, keyword.value
            yield from self._positional(call)
        for kernel in self._kernels.values():
            yield from _defaults(kernel)

    def _positional(self, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
        """Yield constexpr parameters that a launch passes by position."""
        match call.func:
            case ast.Subscript(value=ast.Name(id=name)) if name in self._kernels:
                for argument, value in zip(
                    _arguments(self._kernels[name]), call.args, strict=False
                ):
                    if _is_constexpr(argument):
                        yield argument.arg, value

    def _in_several_configs(self) -> set[ast.Call]:
        """Return configurations that stand in a list with others."""
        return {
            inner
            for node in ast.walk(self._tree)
            if isinstance(node, ast.List) and len(node.elts) > 1
            for element in node.elts
            for inner in ast.walk(element)
            if isinstance(inner, ast.Call)
        } | {
            inner  # made in a loop: their number is unknown
            for node in ast.walk(self._tree)
            if isinstance(node, ast.ListComp | ast.GeneratorExp)
            for inner in ast.walk(node)
            if isinstance(inner, ast.Call)
        }

    def _assignments(self) -> Iterator[tuple[str, ast.expr]]:
        """Yield names and attributes with their values, defaults of parameters included."""
        for node in ast.walk(self._tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)]):
                    yield name, _unwrapped(node.value)
                case ast.Assign(targets=[ast.Tuple(elts=places)], value=ast.Tuple(elts=values)):
                    for place, value in zip(places, values, strict=False):
                        if isinstance(place, ast.Name):
                            yield place.id, value
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    yield name, _unwrapped(value)
                case ast.FunctionDef():
                    yield from _defaults(node, constexpr_only=False)

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset


def _arguments(function: ast.FunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _is_constexpr(argument: ast.arg) -> bool:
    return argument.annotation is not None and "constexpr" in ast.unparse(argument.annotation)


def _defaults(
    function: ast.FunctionDef, *, constexpr_only: bool = True
) -> Iterator[tuple[str, ast.expr]]:
    """Yield parameters with their defaults."""
    placed = [*function.args.posonlyargs, *function.args.args]
    late = len(placed) - len(function.args.defaults)
    pairs = [
        *zip(placed[late:], function.args.defaults, strict=True),
        *zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True),
    ]
    for argument, default in pairs:
        if default is not None and (_is_constexpr(argument) or not constexpr_only):
            yield argument.arg, default


def _entries(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield the entries of a dictionary with string keys."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value


def _unwrapped(value: ast.expr) -> ast.expr:
    """Return the number in `tl.constexpr(64)`."""
    match value:
        case ast.Call(func=func, args=[inner]) if "constexpr" in ast.unparse(func):
            return inner
    return value
