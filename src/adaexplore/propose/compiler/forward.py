"""The text of a candidate's `forward`: a branch for each size, and the reference for others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from adaexplore.propose.compiler.graph import Argument, Traced, Weight
from adaexplore.propose.compiler.tape import literal
from adaexplore.propose.compiler.wrapper import names_in


@dataclass(frozen=True, slots=True)
class Branch:
    """What `forward` needs to know of one size.

    `tag` ends the names of its functions. `inputs` names the inputs of the traced graph, and
    `parameters` those that its `_call` takes. `roots` are the inputs that the constants `folded`
    are computed from, empty without constants. `workspace` is true if there are buffers to keep.
    """

    tag: str
    traced: Traced
    inputs: list[str]
    parameters: list[str]
    roots: list[int]
    folded: list[str]
    workspace: bool

    def arguments(self) -> Iterator[tuple[str, Argument, tuple[int, ...], bool]]:
        """Yield name, origin and strides of each tensor argument, and whether it is on a GPU."""
        for name, source, value in zip(
            self.inputs, self.traced.sources, self.traced.values, strict=True
        ):
            if isinstance(source, Argument):
                yield name, source, value.stride(), value.is_cuda


def condition(traced: Traced) -> str:
    """Return the expression in `forward` that tells whether a call is what was traced."""
    tests = [] if traced.training is None else [f"self.training is {traced.training}"]
    for expression, value in traced.constants.items():
        equal = (
            f"type({expression}) is {type(value).__name__} and {expression} == {literal(value, {})}"
        )
        tests.append(f"{expression} is None" if value is None else equal)
    for source, value in zip(traced.sources, traced.values, strict=True):
        if isinstance(source, Argument):
            tensor = source.expression
            place = f"get_device() == {value.get_device()}" if value.is_cuda else "is_cpu"
            tests.append(f"{tensor}.shape == {tuple(value.shape)}")
            tests.append(f"{tensor}.dtype == {value.dtype} and {tensor}.{place}")
    return " and ".join(tests) or "True"


class ForwardWriter:
    """Writer of `forward` and of the class members that it uses.

    `parameters` are those of `forward`. `original` is the expression by which it calls the
    reference's own forward.
    """

    def __init__(self, parameters: list[str], branches: list[Branch], original: str) -> None:
        self._passed = ", ".join(f"{name}={name}" for name in parameters)
        self._parameters = parameters
        self._branches = branches
        self._original = original
        self._homes: dict[tuple[str, bool], tuple[str, str]] = {}
        self._weights: dict[Weight, str] = {}
        self._forms: dict[str, tuple[object, ...]] = {}
        for branch in branches:
            for source, value in zip(branch.traced.sources, branch.traced.values, strict=True):
                if isinstance(source, Weight):
                    full = f"{source.owner}.{source.name}" if source.owner else source.name
                    place = (source.owner, source.is_parameter)
                    home, _ = self._homes.setdefault(place, (f"_w{len(self._homes)}", full))
                    self._weights[source] = f'{home}["{source.name}"]'
                    self._forms[full] = (
                        tuple(value.shape),
                        value.stride(),
                        value.dtype,
                        str(value.device),
                    )

    def members(self) -> str:
        """Return class attributes, and the method that finds the weights."""
        caches = ["_homes"] if self._homes else []
        for branch in self._branches:
            tag = branch.tag
            if branch.folded:
                caches += [f"_folded{tag}", f"_folded_from{tag}", f"_fold_versions{tag}"]
            if branch.workspace:
                caches += [f"_workspace{tag}"]
        lines = [f"{name} = None" for name in caches]
        if self._homes:
            homes = ", ".join(f"homes[{full!r}]" for _, full in self._homes.values())
            lines += [
                "def _find_weights(self):",
                '    """The dictionaries that weights live in, also when a weight is replaced."""',
                f"    homes = _weights_at(self, {self._forms!r})",
                f"    self._homes = ({homes},)",
                "    return self._homes",
                "def _apply(self, fn, recurse=True):",
                "    self._homes = None  # weights may be moved or cast",
                "    return super()._apply(fn, recurse)",
                "def _load_from_state_dict(self, *args):",
                "    self._homes = None  # weights may be replaced",
                "    return super()._load_from_state_dict(*args)",
            ]
        if caches:
            lines += [
                "def __getstate__(self):",
                '    """The state without what a call computes anew: copies have their own."""',
                f"    computed = {tuple(caches)!r}",
                "    return {k: v for k, v in self.__dict__.items() if k not in computed}",
            ]
        return "\n".join(lines)

    def body(self) -> str:
        """Return the statements of `forward`."""
        sizes = [f"{i} if {condition(b.traced)} else " for i, b in enumerate(self._branches)]
        lines = [
            "if torch.is_grad_enabled():",
            f"    _refuse_gradients({', '.join(['self', *self._parameters])})",
            "    with torch.no_grad():",
            f"        return self.forward({self._passed})",
            "try:",
            f"    _size = {''.join(sizes)}None",
            "except (AttributeError, LookupError, TypeError):",
            "    _size = None",  # arguments of another structure
        ]
        for number, branch in enumerate(self._branches):
            lines.append(f"if _size == {number}:")
            lines += ["    " + line for line in self._work(branch)]
        return "\n".join([*lines, f"return {self._original}({self._passed})"])

    def result_names(self) -> set[str]:
        """Return the names of the reference's file that the result expressions use."""
        results = [ast.parse(branch.traced.result) for branch in self._branches]
        return set(names_in(results)) - {"out"}

    def _work(self, branch: Branch) -> list[str]:
        """Return the statements that do the work of one size."""
        lines = []
        for name, source, stride, on_gpu in branch.arguments():
            if name != source.expression:
                lines.append(f"{name} = {source.expression}")
            misaligned = f" or {name}.data_ptr() % 16" if on_gpu else ""
            lines += [
                f"if {name}.stride() != {stride}{misaligned}:",
                f"    {name} = _laid_out({name}, {stride})",
            ]
        if self._homes:
            homes = ", ".join(home for home, _ in self._homes.values())
            lines.append(f"{homes}, = self._homes or self._find_weights()")
        weights = {
            name: self._weights[source]
            for name, source in zip(branch.inputs, branch.traced.sources, strict=True)
            if isinstance(source, Weight)
        }
        arguments = [weights.get(name, name) for name in branch.parameters]
        tag = branch.tag
        if branch.folded:
            roots = ", ".join(weights[branch.inputs[index]] for index in branch.roots)
            lines += [
                f"_weights = ({roots},)",
                "_now = _versions(_weights)",
                f"if _now != self._fold_versions{tag}:",
                "    _watch(_weights)",
                f"    self._folded{tag}, self._folded_from{tag} = _fold{tag}(*_weights), _weights",
                f"    self._fold_versions{tag} = _now",
                f"{', '.join(branch.folded)}, = self._folded{tag}",
            ]
        if branch.workspace:
            arguments.append(f"*self._workspace{tag}")
            lines += [
                f"if self._workspace{tag} is None:",
                f"    self._workspace{tag} = _allocate{tag}()",
            ]
        return [
            *lines,
            f"out = _call{tag}({', '.join(arguments)})",
            f"return {branch.traced.result}",
        ]
