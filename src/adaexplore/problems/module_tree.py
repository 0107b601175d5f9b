"""The statements that rebuild a tree of modules without the constructors of its classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from adaexplore.problems.graph_source import like
from adaexplore.problems.source_names import Names
from adaexplore.problems.source_values import Values

OF_EVERY_MODULE = set(vars(nn.Module()))
"""Attributes that the constructor of every module makes."""

_LISTS = (nn.ModuleList, nn.Sequential)
_COMPARED = (type(None), bool, int, float, str, tuple, torch.Size)
_NO_LAYER = (TypeError, ValueError, NameError, AttributeError, SyntaxError, RuntimeError)


class ModuleTree:
    """A module whose tensors are those in `state`, as statements about `self`.

    Modules keep the attributes in `kept`, without it all that can be written.
    """

    def __init__(
        self, module: nn.Module, state: Mapping[str, Tensor], names: Names, kept: set[str] | None
    ) -> None:
        self._module = module
        self._names = names
        self._kept = kept
        self._by_path = dict(module.named_modules(remove_duplicate=False))
        self._members: dict[int, str] = {}
        for path, each in self._by_path.items():
            self._members.setdefault(id(each), self._expression(path))
        for name, tensor in state.items():
            self._members.setdefault(id(tensor), self._expression(name))
        self._values = Values(names, self._members, kept)
        self._made: set[int] = set()
        self._late: list[str] = []

    def statements(self) -> list[str]:
        """Return the statements: modules before their parts, references to parts last."""
        lines: list[str] = []
        repeated: list[str] = []
        for path, module in self._by_path.items():
            if any(path.startswith(f"{other}.") for other in repeated):
                continue
            if id(module) in self._made:
                lines.append(self._assigned(path, self._members[id(module)]))
                repeated.append(path)
                continue
            self._made.add(id(module))
            lines += self._module_lines(path, module)
        lines += [] if self._module.training else ["self.eval()"]
        for module in self._module.modules():
            if module.training != self._module.training:
                lines.append(f"{self._members[id(module)]}.training = {module.training}")
        return [*self._values.statements, *lines, *self._frozen(), *self._late]

    def _frozen(self) -> list[str]:
        """Return the statements after which weights require gradients as the module's do."""
        weights = [p for p in self._module.parameters() if p.is_floating_point()]
        frozen = [p for p in weights if not p.requires_grad]
        if frozen and len(frozen) == len(weights):
            return ["self.requires_grad_(False)"]
        return [f"{self._members[id(p)]}.requires_grad_(False)" for p in frozen]

    def _module_lines(self, path: str, module: nn.Module) -> Iterator[str]:
        layer = layer_of(module)
        given = vars(layer[1]) if layer else {}
        own = set(OF_EVERY_MODULE) | set(given)
        attributes = self._attributes(module, own, layer is not None)
        if layer:
            yield self._assigned(path, layer[0])
        elif path:
            kind = self._names.expression(type(module))
            inside = ", ".join(filter(None, [kind, self._values.arguments(attributes)]))
            yield self._assigned(path, f"made({inside})")
        if attributes and (layer or not path):
            yield f"vars({self._owner(path)}).update({self._values.arguments(attributes)})"
        built = layer[1] if layer else nn.Module()
        yield from self._tensor_lines(path, module, built)
        for name, child in module._modules.items():
            if child is None:
                yield f"{self._owner(path)}.register_module({name!r}, None)"

    def _attributes(self, module: nn.Module, own: set[str], is_layer: bool) -> Mapping[str, Any]:
        """Return the attributes that can be given at once; note those that refer to parts."""
        at_once = {}
        values = {
            name: value
            for name, value in vars(module).items()
            if name not in own and not (isinstance(value, Tensor) and self._is_own(module, value))
        }
        whole = not is_layer and any(map(_is_of_torch, type(module).__mro__))
        for name, value in values.items():
            before = self._values.references
            for text in self._values.written({name: value}, whole=whole).values():
                if self._values.references > before:
                    self._late.append(f"vars({self._members[id(module)]})[{name!r}] = {text.text}")
                else:
                    at_once[name] = text
        return at_once

    def _is_own(self, module: nn.Module, tensor: Tensor) -> bool:
        return self._members[id(tensor)] in [
            f"{self._members[id(module)]}.{name}" for name in vars(module)
        ]

    def _tensor_lines(self, path: str, module: nn.Module, built: nn.Module) -> Iterator[str]:
        owner = self._owner(path)
        for name, parameter in module._parameters.items():
            if parameter is None:
                if name not in built._parameters:
                    yield f"{owner}.register_parameter({name!r}, None)"
            elif id(parameter) in self._made or name not in built._parameters:
                made = self._parameter(parameter)
                is_plain = name.isidentifier()
                yield (
                    f"{owner}.{name} = {made}"
                    if is_plain
                    else f"{owner}.register_parameter({name!r}, {made})"
                )
            self._made.add(id(parameter))
        plain = {
            name: value
            for name, value in vars(module).items()
            if isinstance(value, Tensor) and self._is_own(module, value)
        }
        for name, buffer in {**module._buffers, **plain}.items():
            if buffer is None:
                if name not in built._buffers:
                    yield f"{owner}.register_buffer({name!r}, None)"
            elif id(buffer) in self._made or name not in built._buffers:
                known = self._members[id(buffer)] if id(buffer) in self._made else like(buffer)
                yield f"{owner}.register_buffer({name!r}, {known})"
            self._made.add(id(buffer))

    def _parameter(self, parameter: Tensor) -> str:
        if id(parameter) in self._made:
            return self._members[id(parameter)]
        grad = "" if parameter.is_floating_point() else ", requires_grad=False"
        return f"nn.Parameter({like(parameter)}{grad})"

    def _owner(self, path: str) -> str:
        return self._members[id(self._by_path[path])]

    def _assigned(self, path: str, expression: str) -> str:
        parent, _, name = path.rpartition(".")
        owner, module = self._owner(parent), self._by_path[parent]
        if isinstance(module, _LISTS) and name.isdecimal():
            return f"{owner}.append({expression})"
        if isinstance(module, nn.ModuleDict):
            return f"{owner}[{name!r}] = {expression}"
        if name.isidentifier():
            return f"{owner}.{name} = {expression}"
        return f"{owner}.add_module({name!r}, {expression})"

    def _expression(self, path: str) -> str:
        """Return the expression for a module or tensor by its name."""
        found, so_far = "self", ""
        for part in path.split(".") if path else []:
            module = self._by_path.get(so_far)
            if isinstance(module, _LISTS) and part.isdecimal():
                found += f"[{part}]"
            elif isinstance(module, nn.ModuleDict):
                found += f"[{part!r}]"
            else:
                found = f"{found}.{part}" if part.isidentifier() else f"getattr({found}, {part!r})"
            so_far = f"{so_far}.{part}" if so_far else part
        return found


def layer_of(module: nn.Module) -> tuple[str, nn.Module] | None:
    """Return the call that makes a layer of torch, as its printed form says, and its result.

    None for a module that no such call makes. The result lies on no device.
    """
    name = type(module).__name__
    if vars(nn).get(name) is not type(module):
        return None
    floating = next((p.dtype for p in module.parameters(recurse=False)), torch.float32)
    options = [module.extra_repr(), *([f"dtype={floating}"] if floating != torch.float32 else [])]
    text = f"nn.{name}({', '.join(filter(None, options))})"
    try:
        with torch.device("meta"):
            made = eval(text, {"nn": nn, "torch": torch})
    except _NO_LAYER:
        return None
    return (text, made) if _is_alike(made, module) else None


def _is_alike(made: nn.Module, module: nn.Module) -> bool:
    if made._modules or _forms(made) != _forms(module):
        return False
    return all(
        not isinstance(value, _COMPARED) or vars(module).get(name) == value
        for name, value in vars(made).items()
        if name != "training"
    )


def _forms(module: nn.Module) -> dict[str, tuple[torch.Size, torch.dtype] | None]:
    tensors = {**module._parameters, **module._buffers}
    return {name: None if t is None else (t.shape, t.dtype) for name, t in tensors.items()}


def _is_of_torch(kind: type) -> bool:
    return kind is not nn.Module and kind.__module__.startswith("torch.")
