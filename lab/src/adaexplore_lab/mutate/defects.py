"""Defects that a node of a syntax tree can have, as edits of its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """The replacement of the bytes from `start` to `end` of a source by `text`."""

    defect: str
    start: int
    end: int
    text: str


_COMPARED: Mapping[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: (r"<", ("<=", ">=")),
    ast.LtE: (r"<=", ("<", ">")),
    ast.Gt: (r">", (">=", "<=")),
    ast.GtE: (r">=", (">", "<")),
    ast.Eq: (r"==", ("!=",)),
    ast.NotEq: (r"!=", ("==",)),
    ast.In: (r"\bin\b", ("not in",)),
    ast.NotIn: (r"\bnot\s+in\b", ("in",)),
    ast.Is: (r"\bis\b", ("is not",)),
    ast.IsNot: (r"\bis\s+not\b", ("is",)),
}
_COMPUTED: Mapping[type[ast.operator], tuple[str, str]] = {
    ast.Add: (r"\+", "-"),
    ast.Sub: (r"-", "+"),
    ast.Mult: (r"\*", "/"),
    ast.Div: (r"/", "*"),
    ast.FloorDiv: (r"//", "*"),
    ast.Mod: (r"%", "*"),
    ast.Pow: (r"\*\*", "*"),
    ast.LShift: (r"<<", ">>"),
    ast.RShift: (r">>", "<<"),
    ast.BitOr: (r"\|", "&"),
    ast.BitAnd: (r"&", "|"),
}
_CALLED: Mapping[str, str] = {"min": "max", "max": "min", "any": "all", "all": "any"}


def of(node: ast.expr | ast.stmt, source: str) -> Iterator[Edit]:
    """Yield the defects of one node; those of its children are theirs."""
    text = _Text(source)
    for kind, defects in _DEFECTS.items():
        if isinstance(node, kind):
            yield from defects(node, text)


class _Text:
    """Positions of nodes in a source, in bytes."""

    def __init__(self, source: str) -> None:
        self._data = source.encode()
        self._lines = [0]
        for line in self._data.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.end_lineno - 1] + node.end_col_offset

    def of(self, node: ast.expr | ast.stmt) -> str:
        return self._data[self.start(node) : self.end(node)].decode()

    def replaced(self, defect: str, node: ast.expr | ast.stmt, text: str) -> Edit:
        return Edit(defect, self.start(node), self.end(node), text)

    def between(
        self, defect: str, left: ast.expr, right: ast.expr, pattern: str, text: str
    ) -> Iterator[Edit]:
        """Yield the edit of the operator between two operands."""
        begin, gap = self.end(left), self._data[self.end(left) : self.start(right)]
        found = re.search(pattern.encode(), gap)
        if found and b"#" not in gap:
            yield Edit(defect, begin + found.start(), begin + found.end(), text)


def _compare(node: ast.Compare, text: _Text) -> Iterator[Edit]:
    operands = [node.left, *node.comparators]
    for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
        pattern, others = _COMPARED[type(operator)]
        for other in others:
            yield from text.between("comparison", left, right, pattern, other)


def _arithmetic(node: ast.BinOp, text: _Text) -> Iterator[Edit]:
    is_text = isinstance(node.left, ast.JoinedStr) or (
        isinstance(node.left, ast.Constant) and isinstance(node.left.value, str | bytes)
    )
    if type(node.op) in _COMPUTED and not is_text:
        pattern, other = _COMPUTED[type(node.op)]
        yield from text.between("arithmetic", node.left, node.right, pattern, other)


def _connective(node: ast.BoolOp, text: _Text) -> Iterator[Edit]:
    old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    for left, right in zip(node.values, node.values[1:], strict=False):
        yield from text.between("and/or", left, right, rf"\b{old}\b", new)


def _unary(node: ast.UnaryOp, text: _Text) -> Iterator[Edit]:
    if isinstance(node.op, ast.Not | ast.USub):
        name = "not removed" if isinstance(node.op, ast.Not) else "sign removed"
        yield text.replaced(name, node, f"({text.of(node.operand)})")


def _constant(node: ast.Constant, text: _Text) -> Iterator[Edit]:
    value = node.value
    if isinstance(value, bool):
        yield text.replaced("constant", node, str(not value))
    elif isinstance(value, int):
        yield text.replaced("constant", node, str(value + 1))
    elif isinstance(value, float):
        yield text.replaced("constant", node, repr(2 * value) if value else "1.0")


def _call(node: ast.Call, text: _Text) -> Iterator[Edit]:
    if isinstance(node.func, ast.Name):
        name = node.func.id
        if name in _CALLED:
            yield text.replaced("min/max, any/all", node.func, _CALLED[name])
        if name == "sorted":
            yield text.replaced("sorted order", node, f"{text.of(node)}[::-1]")
    if len(node.args) >= 2 and not any(isinstance(arg, ast.Starred) for arg in node.args[:2]):
        first, second = node.args[:2]
        if ast.dump(first) != ast.dump(second) and _name(node) not in _ORDERLESS:
            swapped = f"{text.of(second)}, {text.of(first)}"
            yield Edit("swapped arguments", text.start(first), text.end(second), swapped)


_ORDERLESS = ("min", "max", "isinstance", "issubclass", "getattr", "hasattr", "setattr", "cast")
"""Calls that mean the same with swapped arguments, or fail at once."""


def _name(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _condition(node: ast.If | ast.While | ast.IfExp, text: _Text) -> Iterator[Edit]:
    if not isinstance(node.test, ast.Compare | ast.UnaryOp | ast.Constant):  # they have their own
        yield text.replaced("condition inverted", node.test, f"not ({text.of(node.test)})")


def _filters(
    node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, text: _Text
) -> Iterator[Edit]:
    for test in (test for generator in node.generators for test in generator.ifs):
        yield text.replaced("filter removed", test, "True")


def _statement(node: ast.Expr, text: _Text) -> Iterator[Edit]:
    if not isinstance(node.value, ast.Constant):
        yield text.replaced("statement removed", node, "pass")


def _assignment(node: ast.Assign | ast.AugAssign, text: _Text) -> Iterator[Edit]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if any(isinstance(target, ast.Attribute | ast.Subscript) for target in targets):
        yield text.replaced("statement removed", node, "pass")
    if isinstance(node, ast.AugAssign) and type(node.op) in _COMPUTED:
        pattern, other = _COMPUTED[type(node.op)]
        target, value = node.target, node.value
        yield from text.between("arithmetic", target, value, f"{pattern}=", f"{other}=")


def _jump(node: ast.Raise | ast.Break | ast.Continue, text: _Text) -> Iterator[Edit]:
    yield text.replaced("statement removed", node, "pass")


def _return(node: ast.Return, text: _Text) -> Iterator[Edit]:
    if node.value is None:
        yield text.replaced("return removed", node, "pass")
    elif not isinstance(node.value, ast.Constant):
        yield text.replaced("returned None", node.value, "None")
    elif node.value.value is None:
        yield text.replaced("returned a constant", node.value, "0")


_DEFECTS: Mapping[type | tuple[type, ...], Callable[..., Iterator[Edit]]] = {
    ast.Compare: _compare,
    ast.BinOp: _arithmetic,
    ast.BoolOp: _connective,
    ast.UnaryOp: _unary,
    ast.Constant: _constant,
    ast.Call: _call,
    (ast.If, ast.While, ast.IfExp): _condition,
    (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp): _filters,
    ast.Expr: _statement,
    (ast.Assign, ast.AugAssign): _assignment,
    (ast.Raise, ast.Break, ast.Continue): _jump,
    ast.Return: _return,
}
