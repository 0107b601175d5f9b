"""The source of `ModelNew`: the reference's own constructor, and a `forward` of kernels."""

from __future__ import annotations

import ast
import builtins
import inspect
import keyword
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from adaexplore.propose.compiler import runtime
from adaexplore.propose.compiler.autotuned import LaunchConfig
from adaexplore.propose.compiler.forward import Branch, ForwardWriter
from adaexplore.propose.compiler.graph import (
    MAX_LITERAL,
    Argument,
    Literal,
    Traced,
    UnsupportedError,
    Weight,
)
from adaexplore.propose.compiler.inductor import Lowered, public_name
from adaexplore.propose.compiler.reference import ReferenceFile
from adaexplore.propose.compiler.triton_text import TritonText, is_triton_launch
from adaexplore.propose.compiler.wrapper import (
    CppKernel,
    Wrapper,
    bound_names,
    hoist_workspace,
    names_in,
    parse,
    rename,
    rewrite_calls,
)


@dataclass(frozen=True, slots=True)
class StandaloneSource:
    """A candidate's source, the constants it computes outside `forward`, and its kernels."""

    source: str
    folded: int
    kernels: int


@dataclass(frozen=True, slots=True)
class SizedGraph:
    """The graph of one size, Inductor's source for it, and the launch of each Triton kernel."""

    traced: Traced
    lowered: Lowered
    launches: dict[str, LaunchConfig]


def write(
    title: str, reference: ReferenceFile, works: Sequence[SizedGraph], *, workspace: bool = False
) -> StandaloneSource:
    """Return the candidate's source under a docstring `title`, with the work of every size.

    A call of any other size is the reference's own forward. With `workspace`, intermediate buffers
    are allocated once per module. Raises `UnsupportedError` for a graph that cannot stand alone.
    """
    kernels = _Kernels()
    written: list[_Written] = []
    literals: dict[str, Any] = {}
    for number, work in enumerate(works, 1):
        tag = f"_size{number}" if number > 1 else ""
        written.append(_write_work(work, tag, kernels, literals, workspace))
    branches = [each.branch for each in written]
    forward = ForwardWriter(reference.forward_parameters(), branches, reference.original)
    model = reference.model_class(forward.members(), forward.body())
    support = reference.support(forward.result_names())
    helpers: list[Callable[..., Any]] = [runtime._refuse_gradients]
    helpers += [runtime._laid_out] if "_laid_out(" in model else []
    helpers += [runtime._weights_at] if "_weights_at(" in model else []
    folded = sum(len(branch.folded) for branch in branches)
    if folded:
        helpers += [runtime._Watched, runtime._watch, runtime._versions]
    helpers += kernels.helpers()
    parts = [
        *support.statements,
        *kernels.sources(),
        *(_constant(name, value) for name, value in literals.items()),
        *(function for each in written for function in each.functions),
        model,
    ]
    header = {name: text for each in written for name, text in each.header.items()}
    imports = _imports(header, parts, kernels.imports(), support.imports)
    parts = [f'"""{title}"""', "\n".join(imports), *map(_copied, helpers), *parts]
    source = "\n\n\n".join(parts) + "\n"
    _check_names(source, {f"_call{branch.tag}" for branch in branches})
    return StandaloneSource(source, folded, len(kernels.names))


@dataclass(frozen=True, slots=True)
class _Written:
    """The functions that do the work of one size, and the header of Inductor's source."""

    branch: Branch
    functions: list[str]
    header: dict[str, str]


def _write_work(
    work: SizedGraph, tag: str, kernels: _Kernels, literals: dict[str, Any], workspace: bool
) -> _Written:
    """Write the functions of one size; add its kernels and its literals to those of the others."""
    traced, lowered = work.traced, work.lowered
    wrapper = kernels.add(lowered.source, work.launches, tag)
    body, buffers = wrapper.body, dict[str, str]()
    if workspace:
        buffers, body = hoist_workspace(body)
        if not buffers:
            raise UnsupportedError("has no intermediate buffers to keep")
    body = rewrite_calls(body, kernels.rewrite)
    taken = {*wrapper.header, *kernels.names, *names_in(body), *buffers, *literals}
    inputs = _input_names(traced, taken)
    constants = _fold(lowered, traced, inputs, tag)
    renames = constants.names | {
        name: inputs[index]
        for name, index in zip(wrapper.parameters, lowered.arguments, strict=True)
    }
    used = set(names_in(body))
    for name, source in zip(inputs, traced.sources, strict=True):
        if isinstance(source, Literal):
            literals[name] = source.value
    literals |= constants.literals
    parameters = [new for old, new in renames.items() if old in used and new not in literals]
    functions = []
    if constants.results:
        lines = [*constants.lines, f"return {', '.join(constants.results)},"]
        doc = "What depends on weights alone."
        functions.append(_function(f"_fold{tag}", [inputs[i] for i in constants.roots], doc, lines))
    if buffers:
        lines = [f"return {', '.join(buffers.values())},"]
        if traced.values and traced.values[0].is_cuda:
            lines = [f"with torch.cuda.device({traced.values[0].device.index}):", f"    {lines[0]}"]
        doc = "Buffers that every call writes anew."
        functions.append(_function(f"_allocate{tag}", [], doc, lines))
    call = _function(
        f"_call{tag}",
        [*parameters, *buffers],
        "The work, over the arguments, the weights and what was computed from them.",
        [ast.unparse(node) for node in rename(body, renames)],
    )
    branch = Branch(
        tag, traced, inputs, parameters, constants.roots, constants.results, bool(buffers)
    )
    return _Written(branch, [*functions, call], wrapper.header)


@dataclass
class _Kernels:
    """The kernels of every size as text, and the calls to them rewritten."""

    launches: dict[str, LaunchConfig] = field(default_factory=dict)
    cpp: dict[str, CppKernel] = field(default_factory=dict)
    triton: TritonText = field(default_factory=TritonText)
    operators: dict[str, str] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)

    def add(self, source: str, launches: dict[str, LaunchConfig], tag: str) -> Wrapper:
        """Return Inductor's source parsed, with `tag` behind the names of its kernels."""
        if tag:
            names = "|".join(map(re.escape, parse(source).kernels))
            source = re.sub(rf"\b({names})\b", rf"\1{tag}", source) if names else source
        wrapper = parse(source)
        self.names += wrapper.kernels
        self.launches |= {f"{name}{tag}": launch for name, launch in launches.items()}
        for name, kernel in wrapper.kernels.items():
            if isinstance(kernel, CppKernel):
                self.cpp[name] = kernel
            else:
                self.triton.add_kernel(name, kernel)
        return wrapper

    def rewrite(self, function: str, call: ast.Call) -> ast.expr | None:
        """Return a call by public names and without Inductor's launchers."""
        if is_triton_launch(call):
            name = function.removesuffix(".run")
            if name not in self.launches:
                raise UnsupportedError(f"kernel {name} was not launched")
            return self.triton.launch(name, call, self.launches[name])
        if function.startswith("extern_kernels."):
            function = public_name(function.removeprefix("extern_kernels."))
        elif function.startswith("aten."):
            function = f"torch.ops.{function}"
        if function.startswith("torch.ops."):  # looked up once, not in every call
            _, _, namespace, operator, *_ = function.split(".")
            name = re.sub(r"_+", "_", f"{namespace}_{operator}")
            function = self.operators.setdefault(function, f"{name}_{len(self.operators)}")
        if function:
            call.func = ast.parse(function, mode="eval").body
        return call

    def sources(self) -> list[str]:
        """Return the text of kernels, launches and operators, ready for use after it."""
        parts = [
            f"{name} = ({kernel.argument_types!r}, r'''{kernel.source}''')"
            for name, kernel in self.cpp.items()
        ]
        if self.cpp:
            names = ", ".join(self.cpp)
            parts.append(f"{names}, = _load_cpp({names})")
        parts += [*self.triton.functions, *self.triton.launches]
        if self.operators:
            parts.append("\n".join(f"{name} = {op}" for op, name in self.operators.items()))
        return parts

    def helpers(self) -> list[Callable[..., Any]]:
        """Return the helpers that the text needs."""
        found: list[Callable[..., Any]] = []
        if self.cpp:
            found.append(runtime._load_cpp)
        if self.triton.launches:
            found.append(runtime._launcher)
        return found

    def imports(self) -> list[str]:
        """Return the imports that the kernels' own text needs."""
        return list(self.triton.imports)


@dataclass(frozen=True)
class _Constants:
    """Constants computed from weights only.

    `lines` compute `results` from the inputs at `roots`. `names` maps each of the wrapper's
    constants to a result, to a weight, or to one of `literals`.
    """

    roots: list[int]
    lines: list[str]
    results: list[str]
    names: dict[str, str]
    literals: dict[str, Any]


def _fold(lowered: Lowered, traced: Traced, inputs: list[str], tag: str) -> _Constants:
    positions = {id(value): index for index, value in enumerate(traced.values)}
    names: dict[str, str] = {}
    literals: dict[str, Any] = {}
    computed: dict[str, Any] = {}
    for name, value in lowered.constants.items():
        if id(value) in positions:
            names[name] = inputs[positions[id(value)]]
        elif lowered.tape.knows(value):
            names[name] = f"folded_{len(computed)}"
            computed[names[name]] = value
        elif value.numel() <= MAX_LITERAL:
            names[name] = f"made_{len(literals)}{tag}"
            literals[names[name]] = value
        else:
            raise UnsupportedError(f"holds a constant of {value.numel()} elements")
    wanted = list(computed.values())
    reached = lowered.tape.roots_of(wanted)
    roots = [index for key, index in positions.items() if key in reached]
    lines, expressions = lowered.tape.recipe(
        {id(traced.values[index]): inputs[index] for index in roots}, wanted
    )
    lines += [f"{name} = {text}" for name, text in zip(computed, expressions, strict=True)]
    return _Constants(roots, lines, list(computed), names, literals)


def _input_names(traced: Traced, taken: set[str]) -> list[str]:
    """Return a readable name for each input of the graph, none of them in `taken`."""
    names: list[str] = []
    for source in traced.sources:
        match source:
            case Weight(owner=owner, name=attribute):
                text = f"{owner}_{attribute}" if owner else attribute
            case Argument(expression=expression):
                text = expression
            case Literal():
                text = "constant"
        base = re.sub(r"\W+", "_", text).strip("_")
        base = f"w_{base}" if not base.isidentifier() or keyword.iskeyword(base) else base
        name, count = base, 1
        while name in taken or name in names or hasattr(builtins, name):
            name, count = f"{base}_{count}", count + 1
        names.append(name)
    return names


def _function(name: str, parameters: Iterable[str], doc: str, lines: Iterable[str]) -> str:
    body = "\n".join(lines).replace("\n", "\n    ")
    return f'def {name}({", ".join(parameters)}):\n    """{doc}"""\n    {body}'


def _copied(helper: Callable[..., Any]) -> str:
    """Return the source of a helper, without comments for checking tools."""
    return re.sub(r"  # (type: ignore|noqa).*", "", inspect.getsource(helper)).strip()


def _constant(name: str, value: Any) -> str:
    text = (
        f"{name} = torch.tensor({value.tolist()!r}, dtype={value.dtype}, device='{value.device}')"
    )
    return text.replace("inf", "float('inf')").replace("nan", "float('nan')")


def _imports(
    header: dict[str, str], parts: list[str], kernels: list[str], reference: list[str]
) -> list[str]:
    """Return the imports, then the wrappers' short names, that the text refers to."""
    used = set(names_in(ast.parse("\n".join(parts)).body)) | {"torch"}
    names = [text for name, text in header.items() if name in used]
    own = [text for text in names if text.startswith(("import ", "from "))]
    needed = [text for text in kernels if bound_names(ast.parse(text).body[0]) & used]
    imports = dict.fromkeys([*own, *needed, *reference])
    return [*imports, *(text for text in names if text not in imports)]


def _check_names(source: str, calls: set[str]) -> None:
    """Raise `UnsupportedError` for a name bound twice, or unknown to one of the `calls`."""
    body = ast.parse(source).body
    bound: dict[str, str] = {}
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            continue  # kernels replaced by their compiled form
        for name in bound_names(node):
            text = ast.unparse(node)
            if bound.setdefault(name, text) != text and not isinstance(node, ast.Import):
                raise UnsupportedError(f"the reference and its kernels both define {name}")
    for call in (n for n in body if isinstance(n, ast.FunctionDef) and n.name in calls):
        local = {argument.arg for argument in call.args.args} | {
            name.id
            for name in ast.walk(call)
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
        }
        unknown = set(names_in(call.body)) - local - set(bound) - set(dir(builtins))
        if unknown:
            raise UnsupportedError(f"Inductor's source refers to {', '.join(sorted(unknown))}")
