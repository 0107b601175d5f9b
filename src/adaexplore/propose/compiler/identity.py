"""What makes two generated candidates the same."""

from __future__ import annotations

import ast
import functools
import hashlib


@functools.cache  # every step of a search asks for all steps before it
def fingerprint(source: str) -> str:
    """Hash of a module's source without its docstring, which says how the module was made.

    Source that does not parse is taken whole.
    """
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return hashlib.sha256(source.encode()).hexdigest()
    lines = source.splitlines()
    match body:
        case [ast.Expr(value=ast.Constant(value=str()), end_lineno=int(end)), *_]:
            lines = lines[end:]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
