"""Inductor's Triton kernels as plain `@triton.jit` functions, with readable launches."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from adaexplore.propose.compiler.autotuned import LaunchConfig
from adaexplore.propose.compiler.graph import UnsupportedError
from adaexplore.propose.compiler.wrapper import TritonKernel, dotted


@dataclass
class TritonText:
    """The Triton part of a candidate: imports, kernel functions and launches, as source."""

    imports: dict[str, None] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    launches: list[str] = field(default_factory=list)
    _parameters: dict[str, list[str]] = field(default_factory=dict)
    _helpers: dict[str, str] = field(default_factory=dict)

    def add_kernel(self, name: str, kernel: TritonKernel) -> None:
        """Add a kernel's source: its imports, its helper functions and the kernel itself."""
        source = kernel.source
        renames: dict[str, str] = {}
        for node in ast.parse(source).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.imports.setdefault(ast.unparse(node))
            elif isinstance(node, ast.FunctionDef):
                text = "@triton.jit\n" + _lines(source, node.lineno, node.end_lineno)
                if node.name == name:
                    self._parameters[name] = [argument.arg for argument in node.args.args]
                elif self._helpers.setdefault(node.name, text) != text:
                    renames[node.name] = f"{node.name}_of_{name}"  # same name, another body
                elif text in self.functions:
                    continue
                for old, new in renames.items():
                    text = re.sub(rf"\b{old}\b", new, text)
                self.functions.append(text)
        if name not in self._parameters:
            raise UnsupportedError(f"kernel {name} is not in its own source")

    def launch(self, name: str, call: ast.Call, config: LaunchConfig) -> ast.Call:
        """Add a launch of kernel `name` for Inductor's `call`, and return the call that uses it."""
        arguments = list(call.args)
        parameters = self._parameters[name]
        blocks = {key: config.blocks[key] for key in parameters if key in config.blocks}
        surplus = len(arguments) - (len(parameters) - len(blocks))
        values = dict(zip(parameters, map(ast.unparse, arguments), strict=False))
        if surplus:  # the launcher takes the grid as further arguments
            extra = arguments[len(arguments) - surplus :]
            arguments = arguments[: len(arguments) - surplus]
            values |= {f"_grid_{i}": ast.unparse(node) for i, node in enumerate(extra)}
        if list(blocks) != parameters[len(parameters) - len(blocks) :]:
            raise UnsupportedError(f"kernel {name} has block sizes before other parameters")
        stream = next(k.value for k in call.keywords if k.arg == "stream")
        launch = f"launch_{len(self.launches)}"
        options = "".join(f", {key}={value!r}" for key, value in config.options.items())
        self.launches.append(
            f"{launch} = _launcher(\n"
            f"    {name},\n"
            f"    grid={_grid(config, values, list(blocks))},\n"
            f"    blocks={_dict(blocks)}{options},\n"
            ")"
        )
        return ast.Call(ast.Name(launch, ast.Load()), [stream, *arguments], [])


def _grid(config: LaunchConfig, values: dict[str, str], blocks: list[str]) -> str:
    """Return the grid as a function of the block sizes; everything else is a number by now."""
    expressions = list(config.grid)
    for line in reversed(config.prelude):  # assignments that the expressions refer to
        name, _, value = line.partition(" = ")
        expressions = [re.sub(rf"\b{name}\b", f"({value})", text) for text in expressions]

    class Numbers(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            if node.id in values and node.id not in blocks:
                return ast.parse(values[node.id], mode="eval").body
            return node

    texts = [ast.unparse(Numbers().visit(ast.parse(text, mode="eval"))) for text in expressions]
    head = f"lambda {', '.join(blocks)}:" if blocks else "lambda:"
    return f"{head} ({', '.join(texts)})"


def _dict(blocks: dict[str, int]) -> str:
    return "{" + ", ".join(f'"{key}": {value}' for key, value in blocks.items()) + "}"


def _lines(source: str, first: int, last: int | None) -> str:
    return "\n".join(source.splitlines()[first - 1 : last])


def is_triton_launch(call: ast.Call) -> bool:
    """Return True for a call of Inductor's launcher, with its stream as keyword."""
    return dotted(call.func).endswith(".run") and any(k.arg == "stream" for k in call.keywords)
