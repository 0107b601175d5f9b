"""Identity of generated candidates."""

from __future__ import annotations

import ast
import functools
import hashlib


@functools.cache  # every step of a search compares with all steps before it
def fingerprint(source: str) -> str:
    """Return a hash of a module's source without its docstring, which describes its making.

    Source that does not parse is hashed whole.
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
