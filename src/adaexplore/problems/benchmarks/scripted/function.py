"""A benchmark's PyTorch function, and the call of it by its script: what a problem must know."""

from __future__ import annotations

import ast
import copy
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

_RANDOM = {
    *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like"),
    *("bernoulli", "bernoulli_", "multinomial", "normal", "normal_", "uniform_", "poisson"),
    *("Bernoulli", "Binomial", "Normal", "Uniform", "binomial", "exponential_", "geometric_"),
    *("fractional_max_pool2d", "fractional_max_pool3d", "gumbel_softmax", "rrelu"),
}
_DROPOUTS = {"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "Dropout"}
_TRAINING = "training"


class UnusableError(ValueError):
    """A task that cannot become a problem, with the reason in one line."""


@dataclass(frozen=True, slots=True)
class Function:
    """The function that a script calls: its definition, and the source that holds it."""

    tree: ast.Module
    definition: ast.FunctionDef

    @staticmethod
    def called(source: str, call: ast.FunctionDef) -> Function:
        """Return the function of a source that a script's `call_op` calls."""
        try:
            tree = ast.parse(source)
        except SyntaxError as error:
            raise UnusableError(f"its function is no Python: {error.msg}") from None
        named = {node.func.id for node in _calls(call) if isinstance(node.func, ast.Name)}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name in named:
                return Function(tree, node)
        raise UnusableError("its script calls no function that its file defines")

    @property
    def name(self) -> str:
        """The function's name."""
        return self.definition.name

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters that can be given by position."""
        return [
            each.arg for each in (*self.definition.args.posonlyargs, *self.definition.args.args)
        ]

    def without_dropout(self, call: ast.FunctionDef) -> tuple[ast.FunctionDef, str]:
        """Return the call with dropout turned off, and the argument that does so.

        That is the probability, or else `training`: statistics of batches may depend on that. The
        argument is empty for a function without dropout, or with one that it does not decide.
        """
        switch = self._switch()
        if not switch:
            return call, ""
        changed = copy.deepcopy(call)
        given = next(node for node in _calls(changed) if _named(node) == self.name)
        off = ast.Constant(value=False if switch == _TRAINING else 0.0)
        if switch in self.parameters[: len(given.args)]:
            given.args[self.parameters.index(switch)] = off
        else:
            others = [one for one in given.keywords if one.arg != switch]
            given.keywords = [*others, ast.keyword(switch, off)]
        return changed, f"{switch}={off.value!r}"

    def draws(self) -> str:
        """Return the random function that it calls, empty for none.

        Dropout counts where no parameter decides about it.
        """
        for node in self._calls():
            name = _named(node)
            if name in _RANDOM or (name in _DROPOUTS and not self._switch()):
                return name
        return ""

    def trains(self) -> bool:
        """Return whether it computes gradients by `backward()`."""
        return any(_named(node) == "backward" for node in _calls(self.definition))

    def _switch(self) -> str:
        """Return the parameter that turns all dropout off, empty for none."""
        dropouts = [node for node in self._calls() if _named(node) in _DROPOUTS]
        known = {*self.parameters, *(each.arg for each in self.definition.args.kwonlyargs)}
        for place, argument in ((1, "p"), (2, _TRAINING)):
            names = {_name_given(node, place, argument) for node in dropouts}
            if len(names) == 1 and names <= known:
                return names.pop()
        return ""

    def written_by(self, call: ast.FunctionDef) -> list[str]:
        """Return the names in a call of those arguments that the function writes to."""
        given = next(node for node in _calls(call) if _named(node) == self.name)
        arguments = dict(zip(self.parameters, given.args, strict=False))
        arguments.update({each.arg: each.value for each in given.keywords if each.arg})
        found = [arguments[name] for name in self._written(arguments) if name in arguments]
        return [argument.id for argument in found if isinstance(argument, ast.Name)]

    def _written(self, arguments: Mapping[str, ast.expr]) -> list[str]:
        """Return the parameters that the function changes in place, as far as its text tells.

        What runs only under an argument that is false, such as `inplace`, does not run.
        """
        given = self.definition.args
        defaults = zip(self.parameters[::-1], given.defaults[::-1], strict=False)
        values = {**dict(defaults), **arguments}
        off = {n for n, v in values.items() if isinstance(v, ast.Constant) and not v.value}
        renewed = {
            target.id
            for node in self.definition.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        changed = set(_changed(_running(self.definition, off))) - renewed
        return [name for name in self.parameters if name in changed]

    def _calls(self) -> Iterator[ast.Call]:
        return _calls(self.tree)


def _running(tree: ast.AST, off: Container[str]) -> Iterator[ast.AST]:
    """Yield the nodes of a tree but those under `if x` for an `x` that is off."""
    skipped: list[ast.stmt] = []
    match tree:
        case ast.If(test=ast.Name(id=name), body=body) if name in off:
            skipped = body
    yield tree
    for node in ast.iter_child_nodes(tree):
        if node not in skipped:
            yield from _running(node, off)


def _changed(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names whose tensors are changed: `x.add_(y)`, `x += y`, `x[0] = y`."""
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if _is_in_place(attr):
                while (
                    isinstance(value, ast.Call)
                    and isinstance(value.func, ast.Attribute)
                    and _is_in_place(value.func.attr)
                ):
                    value = value.func.value
                if isinstance(value, ast.Name):
                    yield value.id
            case ast.AugAssign(target=ast.Name(id=name)):
                yield name
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                yield name


def _is_in_place(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__")


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _name_given(node: ast.Call, place: int, argument: str) -> str:
    """Return the name that a call gives for an argument, empty for anything else."""
    by_name = {one.arg: one.value for one in node.keywords}
    value = node.args[place] if place < len(node.args) else by_name.get(argument)
    return value.id if isinstance(value, ast.Name) else ""


def _named(node: ast.Call) -> str:
    """Return the last part of the name of what is called."""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""
