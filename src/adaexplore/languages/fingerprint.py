"""Fingerprint of a source: independent of comments, layout, docstrings and private names."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType

from adaexplore.languages.triton import DIALECT as TRITON

_INTROSPECTIVE = re.compile(
    r"(?<!\.)\b(eval|exec|locals|globals|vars|inspect|linecache)\b"
    r"|\b(__doc__|__code__|__file__|_getframe)\b"
)
"""Names by which a source may read itself; then all of it counts."""

_CPP_TOKEN = re.compile(
    r"""(?P<literal>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"|(?P<comment>//(?:\\\n|[^\n])*(?=\n)|/\*.*?\*/)"
    r"|(?P<blank>\s+)",
    re.DOTALL,
)


Codes = Mapping[str, Collection[str]]
"""Hashes of the machine code of Triton kernels, by the kernel's name."""


def fingerprint(source: str, compiled: Codes = MappingProxyType({})) -> str:
    """Return a sha256 that equivalent sources share; empty if the source is not Python.

    It ignores comments (also those of C++ in strings), layout and docstrings, and replaces every
    name that is invisible from outside by a number. The machine code in `compiled` replaces the
    bodies of its kernels and of the `@triton.jit` functions that only kernels call. Launch grids,
    arguments and options are in the rest of the source.
    """
    if _INTROSPECTIVE.search(source):
        return _digest(source)
    try:
        tree = ast.parse(source)
        elsewhere = _insert_codes(tree, compiled)
        _drop_text(tree)
        _number_names(tree)
        return _digest(ast.dump(tree) + elsewhere)
    except (SyntaxError, ValueError, RecursionError):
        return ""


def without_comments(cpp: str) -> str:
    """Return C++ without comments, with every run of blanks as one."""
    if 'R"' in cpp:  # a raw string literal, of any form
        return cpp

    def outside_literals(kind: str, put: Callable[[str], str]) -> str:
        return _CPP_TOKEN.sub(lambda token: put(token[0]) if token[kind] else token[0], cpp)

    cpp = outside_literals("comment", lambda _: " ")
    return outside_literals("blank", lambda run: "\n" if "\n" in run else " ").strip()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()


def _insert_codes(tree: ast.Module, compiled: Codes) -> str:
    """Replace kernels' bodies by their codes; return the codes of kernels outside the tree."""
    if not compiled:
        return ""
    jitted = TRITON.own_kernels(tree)
    host, functions = set[str](), []
    for statement in tree.body:
        parts: list[ast.stmt] | list[ast.expr] = [statement]
        if isinstance(statement, ast.FunctionDef) and statement.name in jitted:
            functions.append(statement)
            parts = statement.decorator_list
        host |= {n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)}
    for function in functions:
        if function.name in compiled:
            function.body = [ast.Return(ast.Constant(" ".join(sorted(compiled[function.name]))))]
        elif function.name not in host:
            function.body = [ast.Pass()]
        else:
            continue
        for arg in ast.walk(function.args):
            if isinstance(arg, ast.arg):
                arg.arg = "_"
    elsewhere = compiled.keys() - {function.name for function in functions}
    return str([(name, sorted(compiled[name])) for name in sorted(elsewhere)])


def _drop_text(tree: ast.Module) -> None:
    """Drop docstrings and other string statements; strip comments from C++ in other strings."""
    joined = (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr))
    in_pieces = {id(part) for node in joined for part in node.values}
    for node in ast.walk(tree):
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                kept = [statement for statement in node.body if not _is_text(statement)]
                node.body = kept or [ast.Pass()]
            case ast.Constant(value=str(text)) if id(node) not in in_pieces and "{" in text:
                node.value = without_comments(text)


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _number_names(tree: ast.Module) -> None:
    """Replace names that are bound in the module and invisible outside by numbers.

    A name has one number in the whole module, so that scopes are preserved.
    """
    public = set(_public(tree))
    bound = [name for name in _bound(tree) if name not in public and not name.startswith("__")]
    numbers = {name: f"${number}" for number, name in enumerate(dict.fromkeys(bound))}
    for node in ast.walk(tree):
        match node:
            case ast.Name():
                node.id = numbers.get(node.id, node.id)
            case ast.arg():
                node.arg = numbers.get(node.arg, node.arg)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                node.name = numbers.get(node.name, node.name)


def _bound(tree: ast.Module) -> Iterator[str]:
    """Yield variables, parameters and functions, in an order independent of their names."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name


def _public(tree: ast.Module) -> Iterator[str]:
    """Yield names that are visible otherwise: attributes, keywords, strings, imports, members."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.Constant(value=str(name)):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name.partition(".")[0]
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                yield from names
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name
            case ast.ClassDef(name=name, body=body):
                yield name
                yield from _class_members(body)


def _class_members(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the members of a class and the parameters of its methods, which keywords may name."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement.name
            yield from (arg.arg for arg in ast.walk(statement.args) if isinstance(arg, ast.arg))
        else:
            yield from (n.id for n in ast.walk(statement) if isinstance(n, ast.Name))
