"""A live module as the source that its class was made from, and a constructor of its state."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from adaexplore.problems.graph_source import HEADER, UnwritableError, state_of
from adaexplore.problems.module_tree import ModuleTree
from adaexplore.problems.source_files import FUTURE
from adaexplore.problems.source_names import Names
from adaexplore.problems.source_values import Expression, Values
from adaexplore.problems.value_tree import ValueTree

_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_MADE = '''def made(kind, /, **attributes):
    """Return an object of a class with these attributes; its constructor is not called."""
    result = kind.__new__(kind)
    if isinstance(result, nn.Module):
        nn.Module.__init__(result)
    for name, value in attributes.items():
        object.__setattr__(result, name, value)
    return result
'''


class ModuleSource:
    """The collected source of a live module, whose inputs are called `inputs`.

    `state` holds the tensors that the source's module must be given, by name.
    """

    header = f"{FUTURE}\n{HEADER}"

    def __init__(
        self, module: nn.Module, given: ValueTree, returned: ValueTree, inputs: Sequence[str]
    ) -> None:
        self._module = module
        self._given = given
        self._returned = returned
        self._inputs = inputs
        self.state = dict(state_of(module))
        for path, owner in module.named_modules(remove_duplicate=False):
            _refuse_patches(path, owner)
            for name, value in vars(owner).items():
                if isinstance(value, Tensor) and not any(value is t for t in self.state.values()):
                    self.state[f"{path}.{name}" if path else name] = value
        for name, tensor in self.state.items():
            if type(tensor) not in (Tensor, nn.Parameter, nn.Buffer):
                raise UnwritableError(f"{name}, a {type(tensor).__name__}")

    def module(self, *, whole: bool) -> str:
        """Return the source: the classes of the modules with what they name, and class `Model`.

        Objects that attributes hold keep the attributes that collected code names, with `whole`
        all that can be written.
        """
        kept = {"forward"}
        while True:
            names = Names({type(m) for m in self._module.modules()}, kept)
            model = self._model(names, None if whole else kept)
            if names.named <= kept:
                return "\n\n".join(filter(None, [names.text(), _MADE, model]))
            kept = kept | names.named

    def _model(self, names: Names, kept: set[str] | None) -> str:
        base = names.expression(type(self._module))
        lines = ModuleTree(self._module, self.state, names, kept).statements()
        constructor = "\n".join(f"        {line}" for line in lines)
        return (
            f"class Model({base}):\n"
            "    def __init__(self):\n"
            "        nn.Module.__init__(self)\n"
            f"{constructor}\n"
            f"{self._forward(Values(names, {}, kept))}"
        )

    def _forward(self, values: Values) -> str:
        """Return a `forward` of the tensors alone, empty where the module's own is one."""
        args, kwargs = self._given.join([Expression(name) for name in self._inputs])
        outputs = self._returned.join([Expression("output") for _ in range(self._returned.count)])
        direct = [isinstance(each, Expression) for each in (*args, *kwargs.values())]
        row = outputs if type(outputs) in (list, tuple) else [outputs]
        flat = all(isinstance(each, Expression) for each in row)
        if flat and all(direct) and not kwargs:
            return ""
        call = [values.text(value) for value in args]
        call += [f"{name}={values.text(value)}" for name, value in kwargs.items()]
        called = f"super().forward({', '.join(call)})"
        lines = [f"return {called}"]
        if not flat:
            lines = [
                f"leaves = torch.utils._pytree.tree_leaves({called})",
                "return tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))",
            ]
        body = "\n".join(f"        {line}" for line in lines)
        return f"\n    def forward({', '.join(['self', *self._inputs])}):\n{body}\n"


def _refuse_patches(path: str, module: nn.Module) -> None:
    """Raise for a module whose calls run more than the code of its class."""
    name = path or "the module"
    if "forward" in vars(module):
        raise UnwritableError(f"{name}, whose forward was replaced on the object")
    if any(vars(module).get(hooks) for hooks in _HOOKS):
        raise UnwritableError(f"{name}, which has forward hooks")
