"""Answers to tasks of functions: a module around the answer's function, and files of answers.

Such an answer defines the function of its task, or `kernel_function`. Files hold one answer (the
part above a line of 146 `#`), or one in each line of JSON: `{"predict", "file"}`.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from typing import Any

from adaexplore.problems.benchmarks.bound_kernel import FUNCTION

SEPARATOR = "#" * 146
"""The line between a function and its test."""

_MARK = "# From here on: the module of the problem around "
_MODULE = """{answer}


{mark}{function}, written by `adaexplore bench`.


{imports}


{model}
"""
_ENDS = ("<|im_end|>", "<|EOT|>")


def with_module(answer: str, task: str, names: Sequence[str]) -> str:
    """Return the source of an answer with the `Model` of its task as `ModelNew` around it.

    `names` are the function's: the one that the model calls, and others that answers give it. An
    answer that defines none of them stays as it is, and fails.
    """
    called, *others = names
    found = defined(answer)
    given = next((name for name in (called, *others, FUNCTION) if name in found), None)
    if given is None:
        return answer
    tree = ast.parse(task)
    model = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model")
    model.name = "ModelNew"
    imports = [ast.unparse(n) for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    alias = [] if given == called else [f"{called} = {given}"]
    return _MODULE.format(
        answer=answer.rstrip(),
        mark=_MARK,
        function=given,
        imports="\n".join([*dict.fromkeys(imports), *alias]),
        model=ast.unparse(model),
    )


def own_part(source: str) -> str:
    """Return an answer without the module that `with_module` put around it."""
    return source.partition(_MARK)[0].rstrip() + "\n"


def implementation(text: str) -> str:
    """Return the function of a file, without the test below it."""
    return text.partition(SEPARATOR)[0].rstrip() + "\n"


def without_fences(predict: str) -> str:
    """Return the code of a language model's reply: the first block between fences, or all."""
    code = predict.partition("```python")[2] or predict
    code = code.partition("```")[0]
    for end in _ENDS:
        code = code.replace(end, "")
    return code.strip() + "\n"


def rows_in(text: str) -> list[dict[str, Any]]:
    """Return the rows of lines of JSON, or of a JSON array; none for a text of something else."""
    try:
        found = json.loads(text) if text.lstrip().startswith("[") else None
        rows = found if found is not None else [json.loads(x) for x in text.splitlines() if x]
    except ValueError:
        return []
    return rows if all(isinstance(row, dict) for row in rows) else []


def defined(source: str) -> set[str]:
    """Return the names that a source binds at its top level; none if it is not Python."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return set()
    names = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in body:
        match node:
            case ast.Assign(targets=targets):
                names |= {one.id for one in targets if isinstance(one, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names
