"""Single-defect mutants of a Python source, found in its syntax tree."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from adaexplore_lab.mutate import defects


@dataclass(frozen=True, slots=True)
class Mutant:
    """A source file with one defect; `removed` and `added` are the lines that differ.

    `name` says what the defect is, for a mutant that people wrote.
    """

    path: str
    function: str
    line: int
    defect: str
    removed: str
    added: str
    source: str
    name: str = ""

    @property
    def identity(self) -> str:
        """A digest of file, function and change: the same wherever in the file the function is."""
        told = "\n".join((self.path, self.function, self.removed, self.added))
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def told(self) -> str:
        """Describe the mutant in some lines: the place, and the change as a diff."""
        signed = [f"-{line}" for line in self.removed.splitlines()]
        signed += [f"+{line}" for line in self.added.splitlines()]
        what = self.name or self.defect
        head = f"{self.path}:{self.line} {self.function or 'module'}: {what}"
        return "\n    ".join((head, *signed))


def mutants(path: str, source: str) -> list[Mutant]:
    """Return all mutants of a source in the order of its lines, none of them twice."""
    found: dict[str, Mutant] = {}
    for function, node in _places(ast.parse(source)):
        for edit in defects.of(node, source):
            mutant = _applied(edit, path, function, source)
            if mutant is not None:
                found.setdefault(mutant.identity, mutant)
    return sorted(found.values(), key=lambda mutant: mutant.line)


def _applied(edit: defects.Edit, path: str, function: str, source: str) -> Mutant | None:
    """Return the source with the edit; None where that is no valid program."""
    data = source.encode()
    mutated = data[: edit.start] + edit.text.encode() + data[edit.end :]
    try:
        ast.parse(mutated)
    except SyntaxError:
        return None
    begin = data.rfind(b"\n", 0, edit.start) + 1
    end = data.find(b"\n", edit.end)
    end = len(data) if end < 0 else end
    return Mutant(
        path,
        function,
        line=data.count(b"\n", 0, begin) + 1,
        defect=edit.defect,
        removed=data[begin:end].decode(),
        added=mutated[begin : end + len(mutated) - len(data)].decode(),
        source=mutated.decode(),
    )


def _places(tree: ast.Module) -> Iterator[tuple[str, ast.expr | ast.stmt]]:
    """Yield the nodes in which a defect is worth trying, with the function around them.

    Annotations, decorators and code for type checkers compute nothing, and Python 3.11 gives no
    positions inside an f-string.
    """
    stack: list[tuple[str, ast.AST]] = [("", tree)]
    while stack:
        name, node = stack.pop()
        if isinstance(node, ast.JoinedStr) or _is_for_types(node):
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{name}.{node.name}".lstrip(".")
        if isinstance(node, ast.expr | ast.stmt):
            yield name, node
        stack += [(name, child) for child in _computing(node)]


def _computing(node: ast.AST) -> Iterator[ast.AST]:
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list", "bases"):
            children = value if isinstance(value, list) else [value]
            yield from (child for child in children if isinstance(child, ast.AST))


def _is_for_types(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(b) for b in node.bases)
