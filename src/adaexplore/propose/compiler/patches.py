"""Small steps in the source itself: one launch parameter of one Triton kernel changed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

_MAX_BLOCK = {"X": 4096, "Y": 1024, "Z": 1024, "R": 4096}
"""Sizes up to which Inductor omits masks for divisible sizes; other parameters stay."""
_MAX_WARPS = 32
_MAX_STAGES = 6


@dataclass(frozen=True, slots=True)
class LaunchChange:
    """A changed source, and the change in one line."""

    note: str
    source: str


def launch_patches(source: str) -> list[LaunchChange]:
    """Return every source with one launch parameter halved or doubled."""
    lines = source.splitlines(keepends=True)
    patches = []
    for call in _launches(source):
        kernel = ast.unparse(call.args[0])
        for name, node, values in _parameters(call):
            for value in values:
                row, start, end = node.lineno - 1, node.col_offset, node.end_col_offset
                line = lines[row]
                changed = [*lines[:row], f"{line[:start]}{value}{line[end:]}", *lines[row + 1 :]]
                note = f"{kernel}: {name} {ast.unparse(node)} -> {value}"
                patches.append(LaunchChange(note, "".join(changed)))
    return patches


def _launches(source: str) -> Iterator[ast.Call]:
    for node in ast.parse(source).body:
        match node:
            case ast.Assign(value=ast.Call(func=ast.Name(id="_launcher")) as call):
                yield call


def _parameters(call: ast.Call) -> Iterator[tuple[str, ast.Constant, list[int]]]:
    """Yield name, position and other values of each parameter of a launch."""
    for keyword in call.keywords:
        match keyword:
            case ast.keyword(arg="blocks", value=ast.Dict(keys=keys, values=values)):
                for key, value in zip(keys, values, strict=True):
                    match key, value:
                        case ast.Constant(value=str(name)), ast.Constant(value=int(size)):
                            if found := re.match(r"([XYZR])\d*_?BLOCK", name):
                                yield name, value, _powers(size, _MAX_BLOCK[found[1]])
            case ast.keyword(arg="num_warps", value=ast.Constant(value=int(warps)) as value):
                yield "num_warps", value, _powers(warps, _MAX_WARPS)
            case ast.keyword(arg="num_stages", value=ast.Constant(value=int(stages)) as value):
                around = (stages - 1, stages + 1)
                yield "num_stages", value, [n for n in around if 1 <= n <= _MAX_STAGES]


def _powers(value: int, largest: int) -> list[int]:
    return [n for n in (value // 2, value * 2) if 1 <= n <= largest]
