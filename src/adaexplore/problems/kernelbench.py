"""KernelBench form: one Python file with `Model`, `get_inputs` and optionally `get_init_inputs`."""

from __future__ import annotations

import ast
import difflib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

from adaexplore.core.errors import BadProblemError
from adaexplore.core.files import why_unread
from adaexplore.core.problem import Checks, Language, Mode, Precision, Problem
from adaexplore.core.protocols.loader import LoadOptions
from adaexplore.problems.access import settled
from adaexplore.problems.declared import Declared, declared_in

MENDS = {
    "Model": "name the nn.Module to be made faster Model",
    "get_inputs": "define get_inputs() to return the list of arguments of Model.forward",
    "get_input_groups": "define get_input_groups() to return a list of lists of arguments",
}
"""The names that a file must define at its top level, and how to mend a file that does not."""

_PLAIN_IMPORTS = {
    *("__future__", "abc", "collections", "contextlib", "copy", "dataclasses", "enum", "functools"),
    *("itertools", "math", "numbers", "operator", "random", "string", "typing", "warnings"),
    *("einops", "numpy", "torch", "triton"),
}
_FILE_ACCESS = {"__file__", "__import__", "eval", "exec", "load", "open"}
_FILE_METHODS = {"fromfile", "from_file", "import_module", "load", "memmap", "open"}


class KernelBench:
    """A Python file with `Model`, `get_inputs` and optionally `get_init_inputs`."""

    name = "KernelBench"

    def can_load(self, path: Path) -> bool:
        """Return whether the file is Python by its name."""
        return path.suffix == ".py"

    def load(self, path: Path, options: LoadOptions) -> Problem:
        """Return the problem, named after the file; see `parsed` and `access.settled`."""
        problem = parsed(path, options)
        if is_self_contained(problem.source) and not options.allow:
            return problem
        return settled(problem, path, options.allow)


def load(
    path: str | os.PathLike[str],
    *,
    device: str,
    language: Language,
    precision: Precision = "fp32",
    seed: int = 0,
    mode: Mode = "as-built",
) -> Problem:
    """Return the problem in the file at `path`; the file is parsed, not run. See `parsed`."""
    return parsed(Path(path), LoadOptions(device, language, Checks(precision), seed, mode))


def parsed(file: Path, options: LoadOptions, *, inputs: str = "get_inputs") -> Problem:
    """Return the problem in a file, named after its stem; the file is parsed, not run.

    Raises `BadProblemError`, in one line with file, line and mend, for a file that cannot be read
    as UTF-8 text, is empty, is not Python, or lacks `Model` or, where it declares no workloads, the
    function `inputs`; and for declarations that cannot be understood.
    """
    source = _read(file)
    tree = _parse(source, file)
    names, declared = dict(_top_level_names(tree)), declared_in(tree, file)
    if "*" not in names:  # a star import may bring in anything; running the file will tell
        for required in ("Model", *(() if declared.workloads else (inputs,))):
            if required not in names:
                raise BadProblemError(_missing(file, required, MENDS[required], names))
    problem = Problem(
        name=file.stem,
        source=source,
        language=options.language,
        device=options.device,
        checks=options.checks,
        seed=options.seed,
        mode=options.mode,
        target=options.target,
    )
    return declared.over(problem)


def names_of(file: Path) -> set[str]:
    """Return the names that a file binds at its top level; raise as `parsed` does."""
    return {name for name, _ in _top_level_names(_parse(_read(file), file))}


def declarations_of(file: Path) -> Declared:
    """Return the declarations of a file; raise as `parsed` does."""
    return declared_in(_parse(_read(file), file), file)


def is_self_contained(source: str) -> bool:
    """Return whether source that parses needs neither other code nor files of the user.

    It imports nothing but a few common packages and names nothing that opens a file.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=aliases):
                modules = [alias.name for alias in aliases]
            case ast.ImportFrom(module=module, level=level):
                modules = ["" if level else module or ""]
            case ast.Name(id=name) if name in _FILE_ACCESS:
                return False
            case ast.Attribute(attr=name) if name in _FILE_METHODS:
                return False
            case _:
                continue
        if any(module.partition(".")[0] not in _PLAIN_IMPORTS for module in modules):
            return False
    return True


def _read(file: Path) -> str:
    try:
        if why := why_unread(file):
            raise BadProblemError(f"{file}: {why}; give a Python file")
        source = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise BadProblemError(
            f"{file}: no such file; give the path of a Python file with Model and get_inputs"
        ) from None
    except IsADirectoryError:
        raise BadProblemError(
            f"{file}: is a directory; give one problem file, such as {file / 'problem.py'}"
        ) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise BadProblemError(
            f"{file}, line {line}: not UTF-8 text (byte 0x{error.object[error.start]:02x}); "
            "save the file as UTF-8"
        ) from None
    except OSError as error:
        raise BadProblemError(f"{file}: cannot be read: {error.strerror}") from None
    if not source.strip():
        raise BadProblemError(f"{file}: is empty; it must define Model and get_inputs")
    return source


def _parse(source: str, file: Path) -> ast.Module:
    """Return the syntax tree of source that compiles (a top-level `return` parses alone)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\d" in a docstring is not this package's business
            tree = ast.parse(source)
            compile(tree, str(file), "exec", dont_inherit=True)
    except SyntaxError as error:
        place = f", line {error.lineno}, column {error.offset}" if error.lineno else ""
        raise BadProblemError(f"{file}{place}: syntax error: {error.msg}; mend it") from None
    except ValueError as error:  # a null byte, in Python 3.11
        raise BadProblemError(f"{file}: is not Python source: {error}") from None
    except (RecursionError, MemoryError):
        raise BadProblemError(f"{file}: is nested too deeply for Python to parse") from None
    return tree


def _top_level_names(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the names bound at module level with their statements, also under `if` and `try`."""
    pending: list[ast.AST] = list(reversed(tree.body))
    while pending:
        node = pending.pop()
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name, node
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                for alias in aliases:
                    yield alias.asname or alias.name, node
            case ast.Assign() | ast.AnnAssign(value=ast.expr()):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    for part in ast.walk(target):
                        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                            yield part.id, node
            case ast.If() | ast.Try() | ast.With() | ast.ExceptHandler():
                pending.extend(reversed(list(ast.iter_child_nodes(node))))


def _missing(file: Path, required: str, mend: str, names: dict[str, ast.stmt]) -> str:
    """Return one line: the missing name, the names near it, and the mend."""
    kind = ast.ClassDef if required == "Model" else ast.FunctionDef
    candidates = [name for name, node in names.items() if isinstance(node, kind)]
    near = difflib.get_close_matches(required, candidates, n=3, cutoff=0.5)
    if required == "Model":
        near = near or candidates[:3]  # whatever the classes are called, one of them is the model
    if near:
        found = ", ".join(f"{name} at line {names[name].lineno}" for name in near)
        return f"{file}: defines no {required}, but {found}; {mend}"
    return f"{file}: defines no {required}; {mend}"
