"""The text of a candidate's `forward`: checks, weights, constants, and the call."""

from __future__ import annotations

import ast

from adaexplore.propose.compiler.graph import Argument, Traced, Weight
from adaexplore.propose.compiler.wrapper import names_in


class Forward:
    """Writer of `forward` and of the class members that it uses.

    `parameters` are those of `forward`. `inputs` names the inputs of the traced graph. `roots` are
    the inputs that the constants `folded` are computed from, empty without constants. `workspace`
    is true if there are buffers to keep.
    """

    def __init__(
        self,
        traced: Traced,
        parameters: list[str],
        inputs: list[str],
        roots: list[int],
        folded: list[str],
        workspace: bool,
    ) -> None:
        self._traced = traced
        self._parameters = parameters
        self._inputs = inputs
        self._roots = roots
        self._folded = folded
        self._workspace = workspace
        self._homes: dict[tuple[str, bool], tuple[str, str]] = {}
        self._weights: dict[str, str] = {}
        self._forms: dict[str, tuple[object, ...]] = {}
        for name, source, value in zip(inputs, traced.sources, traced.values, strict=True):
            if isinstance(source, Weight):
                full = f"{source.owner}.{source.name}" if source.owner else source.name
                place = (source.owner, source.is_parameter)
                home, _ = self._homes.setdefault(place, (f"w{len(self._homes)}", full))
                self._weights[name] = f'{home}["{source.name}"]'
                self._forms[full] = (
                    tuple(value.shape),
                    value.stride(),
                    value.dtype,
                    str(value.device),
                )

    def members(self) -> str:
        """Return class attributes, and the method that finds the weights."""
        caches = ["_homes"] if self._homes else []
        if self._folded:
            caches += ["_folded", "_folded_from", "_fold_versions"]
        if self._workspace:
            caches += ["_workspace"]
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

    def body(self, parameters: list[str]) -> str:
        """Return statements of `forward` that pass `parameters` to `_call`."""
        arguments = [self._weights.get(name, name) for name in parameters]
        if self._workspace:
            arguments.append("*self._workspace")
        lines = [*self._without_gradients(), *self._mode_check(), *self._argument_checks()]
        if self._homes:
            lines.append(
                f"{', '.join(home for home, _ in self._homes.values())}, "
                "= self._homes or self._find_weights()"
            )
        if self._folded:
            lines += self._fold_lines()
        if self._workspace:
            lines.append("if self._workspace is None:\n    self._workspace = _allocate()")
        lines += [f"out = _call({', '.join(arguments)})", f"return {self._traced.result}"]
        return "\n".join(lines)

    def result_names(self) -> set[str]:
        """Return the names of the reference's file that the result expression uses."""
        return set(names_in(ast.parse(self._traced.result).body)) - {"out"}

    def _without_gradients(self) -> list[str]:
        passed = ", ".join(f"{name}={name}" for name in self._parameters)
        tensors = [s.expression for s in self._traced.sources if isinstance(s, Argument)]
        return [
            "if torch.is_grad_enabled():",
            f"    _refuse_gradients(self, ({''.join(f'{each}, ' for each in tensors)}))",
            "    with torch.no_grad():",
            f"        return self.forward({passed})",
        ]

    def _mode_check(self) -> list[str]:
        if self._traced.training is None:
            return []
        mode = "train" if self._traced.training else "eval"
        return [
            f"if self.training is not {self._traced.training}:",
            f'    raise ValueError("this module is specialised to {mode} mode; call .{mode}()")',
        ]

    def _argument_checks(self) -> list[str]:
        lines = []
        for expression, value in self._traced.constants.items():
            test = f"{expression} is not None" if value is None else f"{expression} != {value!r}"
            message = f"{expression} must be {value!r}, to which this module is specialised"
            lines += [f"if {test}:", f"    raise ValueError({message!r})"]
        for name, source, value in zip(
            self._inputs, self._traced.sources, self._traced.values, strict=True
        ):
            if isinstance(source, Argument):
                shape, stride, dtype = tuple(value.shape), value.stride(), value.dtype
                test = f"{name}.shape != {shape} or {name}.stride() != {stride}"
                test += f" or {name}.dtype != {dtype}"
                if value.is_cuda:
                    test += f" or {name}.get_device() != {value.get_device()}"
                    test += f" or {name}.data_ptr() % 16"
                else:
                    test += f" or not {name}.is_cpu"
                if name != source.expression:
                    lines.append(f"{name} = {source.expression}")
                layout = f"{shape}, {stride}, {dtype}, {str(value.device)!r}"
                lines += [
                    f"if {test}:",
                    f"    {name} = _conform({source.expression!r}, {name}, {layout})",
                ]
        return lines

    def _fold_lines(self) -> list[str]:
        weights = ", ".join(self._weights[self._inputs[index]] for index in self._roots)
        return [
            f"weights = ({weights},)",
            "versions = _versions(weights)",
            "if versions != self._fold_versions:",
            "    _watch(weights)",
            "    self._folded, self._folded_from = _fold(*weights), weights",
            "    self._fold_versions = versions",
            f"{', '.join(self._folded)}, = self._folded",
        ]
