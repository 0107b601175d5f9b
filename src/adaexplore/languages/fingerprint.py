"""What of a source decides what it does: no comments, layout, docstrings or private names."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType

from adaexplore.languages.triton import TRITON

_INTROSPECTIVE = re.compile(
    r"(?<!\.)\b(eval|exec|locals|globals|vars|inspect|linecache)\b"
    r"|\b(__doc__|__code__|__file__|_getframe)\b"
)
"""Where a source may read itself, all of it matters."""

_CPP_TOKEN = re.compile(
    r"""(?P<literal>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"|(?P<comment>//(?:\\\n|[^\n])*(?=\n)|/\*.*?\*/)"
    r"|(?P<blank>\s+)",
    re.DOTALL,
)


Codes = Mapping[str, Collection[str]]
"""Hashes of the machine code of Triton kernels, by the kernel's name."""


def fingerprint(source: str, compiled: Codes = MappingProxyType({})) -> str:
    """A sha256 that sources share which do the same; empty for what is no Python.

    Left out are comments (those of C++ in strings too), layout, docstrings, and the names that
    nobody can see from outside: each is replaced by its number. Kernels in `compiled` are told by
    their code in place of their bodies, which stand for those of `@triton.jit` functions that only
    kernels call. Launch grids, arguments and options stand in the rest.
    """
    if _INTROSPECTIVE.search(source):
        return _digest(source)
    try:
        tree = ast.parse(source)
        elsewhere = _put_codes(tree, compiled)
        _leave_out_text(tree)
        _number_names(tree)
        return _digest(ast.dump(tree) + elsewhere)
    except (SyntaxError, ValueError, RecursionError):
        return ""


def without_comments(cpp: str) -> str:
    """C++ without comments, and with every run of blanks as one."""
    if 'R"' in cpp:  # a literal of any form
        return cpp

    def outside_literals(kind: str, put: Callable[[str], str]) -> str:
        return _CPP_TOKEN.sub(lambda token: put(token[0]) if token[kind] else token[0], cpp)

    cpp = outside_literals("comment", lambda _: " ")
    return outside_literals("blank", lambda run: "\n" if "\n" in run else " ").strip()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()


def _put_codes(tree: ast.Module, compiled: Codes) -> str:
    """Puts codes in place of kernels' bodies; returns those of kernels that are not in the tree."""
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


def _leave_out_text(tree: ast.Module) -> None:
    """Drops strings that are statements; C++ in the others loses its comments."""
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
    """Replaces names that are bound in the module and mean nothing to anybody else.

    One number for one name in the whole module, so that scopes stay what they are.
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
    """Variables, parameters and functions, in an order that their names have no part in."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name


def _public(tree: ast.Module) -> Iterator[str]:
    """Names that are reached otherwise: as attributes, keywords, texts, imports, of a class."""
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
                yield from _of_class(body)


def _of_class(body: list[ast.stmt]) -> Iterator[str]:
    """Members of a class, and the parameters of its methods, which are called by keyword."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement.name
            yield from (arg.arg for arg in ast.walk(statement.args) if isinstance(arg, ast.arg))
        else:
            yield from (n.id for n in ast.walk(statement) if isinstance(n, ast.Name))
