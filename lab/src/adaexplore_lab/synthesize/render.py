"""A draft as the text of a module in KernelBench form."""

from __future__ import annotations

import re
from collections.abc import Sequence

from adaexplore_lab.synthesize.draft import Draft, Value

_INDENT = "    "
_WIDTH = 100


def render(draft: Draft, outputs: Sequence[Value]) -> str:
    """The module's source."""
    constants = _used_constants(draft)
    parts = [
        f'"""{_title(draft)}"""',
        "\n".join(_imports(draft)),
        "\n".join(f"{name} = {draft.constants[name].text}" for name in constants),
        _model(draft, outputs, constants),
        "def get_inputs():\n" + _returned([expression for _, expression in draft.inputs]),
        "def get_init_inputs():\n" + _returned(_arguments(draft, constants)),
    ]
    head = "\n\n".join(filter(None, parts[:3]))
    return "\n\n\n".join([head, *parts[3:]]) + "\n"


def _title(draft: Draft) -> str:
    """The operations in a line."""
    ops = [op.replace("_", " ") for op in draft.ops]
    shown = ops if len(ops) < 9 else [*ops[:7], f"{len(ops) - 7} more"]
    listed = shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
    precision = "" if draft.dtype == "float32" else f", in {draft.dtype}"
    return f"{listed[0].upper()}{listed[1:]}{precision}."


def _imports(draft: Draft) -> list[str]:
    functional = any("F." in code for _, code in draft.statements)
    return [
        "import torch",
        *(["import torch.nn.functional as F"] * functional),
        "from torch import nn",
    ]


def _model(draft: Draft, outputs: Sequence[Value], constants: Sequence[str]) -> str:
    lines = ["class Model(nn.Module):"]
    if draft.layers:
        parameters = [f"{name}: int" for name in _arguments(draft, constants)]
        lines += [_signature("__init__", parameters, "")]
        lines += [f"{_INDENT * 2}{line}" for line in ["super().__init__()", *draft.layers]]
        if draft.dtype != "float32":
            lines.append(f"{_INDENT * 2}self.to(torch.{draft.dtype})")
        lines.append("")
    arguments = [f"{name}: torch.Tensor" for name, _ in draft.inputs]
    lines.append(_signature("forward", arguments, _annotation(outputs)))
    lines += [f"{_INDENT * 2}{line}" for line in _body(draft, outputs)]
    return "\n".join(lines)


def _signature(name: str, arguments: Sequence[str], returned: str) -> str:
    line = f"{_INDENT}def {name}({', '.join(['self', *arguments])}){returned}:"
    if len(line) <= _WIDTH:
        return line
    inner = "".join(f"{_INDENT * 2}{argument},\n" for argument in ["self", *arguments])
    return f"{_INDENT}def {name}(\n{inner}{_INDENT}){returned}:"


def _annotation(outputs: Sequence[Value]) -> str:
    if len(outputs) == 1:
        return " -> torch.Tensor"
    return f" -> tuple[{', '.join(['torch.Tensor'] * len(outputs))}]"


def _body(draft: Draft, outputs: Sequence[Value]) -> list[str]:
    """The statements that matter, and what is returned."""
    returned = {value.name for value in outputs}
    statements = list(draft.statements)
    for i in reversed(range(len(statements))):
        name, code = statements[i]
        moved = re.fullmatch(r"\w+", code)  # a value kept under another name for later use
        if moved and name not in returned and not _read(name, statements[i + 1 :]):
            del statements[i]
    lines = [f"{name} = {code}" if name else code for name, code in statements]
    lines.append(f"return {', '.join(value.name for value in outputs)}")
    return [part for line in lines for part in line.split("\n")]


def _read(name: str, statements: Sequence[tuple[str, str]]) -> bool:
    return any(re.search(rf"(?<![\w.]){re.escape(name)}\b", code) for _, code in statements)


def _used_constants(draft: Draft) -> list[str]:
    """The names that layers, inputs or other constants use, in the order they were made."""
    text = " ".join([*draft.layers, *(expression for _, expression in draft.inputs)])
    wanted: set[str] = set()
    for name in reversed(draft.constants):
        if re.search(rf"(?<![\w.]){name}\b", text):
            wanted.add(name)
            text += " " + draft.constants[name].text
    return [name for name in draft.constants if name in wanted]


def _arguments(draft: Draft, constants: Sequence[str]) -> list[str]:
    """The sizes that the constructor uses."""
    text = "\n".join(line.partition(" = ")[2] for line in draft.layers)
    return [name for name in constants if re.search(rf"(?<![\w.]){name}\b(?!=)", text)]


def _returned(expressions: Sequence[str]) -> str:
    line = f"{_INDENT}return [{', '.join(expressions)}]"
    if len(line) <= _WIDTH and (len(expressions) < 2 or len(line) <= 80):
        return line
    inner = "".join(f"{_INDENT * 2}{expression},\n" for expression in expressions)
    return f"{_INDENT}return [\n{inner}{_INDENT}]"
