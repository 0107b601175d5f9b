"""Prompt templates as files: those of the package, any of them replaced by the user's."""

from __future__ import annotations

import hashlib
import re
import traceback
from collections.abc import Collection, Mapping
from functools import lru_cache
from importlib.resources.abc import Traversable
from pathlib import Path
from types import CodeType, MappingProxyType
from typing import Any, NoReturn

from jinja2 import (
    BytecodeCache,
    Environment,
    FunctionLoader,
    StrictUndefined,
    TemplateError,
    TemplateSyntaxError,
)
from jinja2 import nodes as syntax
from jinja2.bccache import Bucket
from jinja2.meta import find_undeclared_variables

from adaexplore.core.errors import BadInputError
from adaexplore.core.text.hints import near
from adaexplore.core.text.units import amount, duration_us, relative_error, share, speedup


def fenced(text: str, language: str = "python") -> str:
    """Return a text as a fenced block of Markdown, with a fence longer than any inside."""
    longest = max(map(len, re.findall(r"^\s*(`{3,})", text, re.MULTILINE)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


_FILTERS = {
    "amount": amount,
    "error": relative_error,
    "fenced": fenced,
    "share": share,
    "speedup": speedup,
    "time": duration_us,
}


class _Compiled(BytecodeCache):
    """What the templates of this process were compiled to, by path and text."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take the code of a template that was compiled before."""
        bucket.code = self._codes.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code of a template."""
        if bucket.code is not None:
            self._codes[bucket.key, bucket.checksum] = bucket.code


_COMPILED = _Compiled()


def _environment() -> Environment:
    environment = Environment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # prompts are plain text
        bytecode_cache=_COMPILED,
    )
    environment.filters.update(_FILTERS)
    return environment


@lru_cache(maxsize=512)
def _undeclared(text: str, name: str, place: str) -> tuple[tuple[str, int], ...]:
    """Return the variables that a template takes from outside, each with its first line.

    A process makes `Templates` for every search, and nearly all texts are the package's own.
    """
    tree = _environment().parse(text, name, place)
    free = find_undeclared_variables(tree)
    lines: dict[str, int] = {}
    for node in tree.find_all(syntax.Name):
        if node.name in free:
            lines[node.name] = min(node.lineno, lines.get(node.name, node.lineno))
    return tuple(sorted(lines.items()))


class Templates:
    """All templates in force, compiled and checked.

    `defaults` is the package's folder of templates, and `variables` maps the name of each template
    to the variables it may use; `elsewhere` holds defaults that lie in other folders. The texts in
    `overrides`, keyed by the path of their file, replace the templates of the same name. Raises
    `BadInputError` for an unknown name, a syntax error or an unknown variable.
    """

    def __init__(
        self,
        defaults: Traversable,
        overrides: Mapping[str, str],
        variables: Mapping[str, Collection[str]],
        elsewhere: Mapping[str, Traversable] = MappingProxyType({}),
    ) -> None:
        own = {name: elsewhere.get(name, defaults / name) for name in variables}
        self._places = {name: str(file) for name, file in own.items()}
        self._texts = {name: file.read_text(encoding="utf-8") for name, file in own.items()}
        for place, text in overrides.items():
            name = _known_name(Path(place), variables)
            self._places[name], self._texts[name] = place, text
        self._environment = _environment()
        self._environment.loader = FunctionLoader(self._load)
        for name, allowed in variables.items():
            self._check(name, allowed)

    @property
    def digest(self) -> str:
        """Content hash of all templates in force."""
        return hashlib.sha256(repr(sorted(self._texts.items())).encode()).hexdigest()

    def render(self, name: str, variables: Mapping[str, Any]) -> str:
        """Return the rendered text of a template, stripped.

        Raises `BadInputError`, with file and line, if it uses a value that does not exist.
        """
        try:
            return self._environment.get_template(name).render(variables).strip()
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            self._complain(error)

    def _load(self, name: str) -> tuple[str, str, None] | None:
        """Return the text of a template and its path, in the form of Jinja's loader."""
        return (self._texts[name], self._places[name], None) if name in self._texts else None

    def _check(self, name: str, variables: Collection[str]) -> None:
        """Compile a template; raise `BadInputError` for a syntax error or an unknown variable."""
        place = self._places[name]
        try:
            free = _undeclared(self._texts[name], name, place)
            self._environment.get_template(name)
        except TemplateSyntaxError as error:
            raise BadInputError(f"{place}, line {error.lineno}: {error.message}") from None
        for missing, line in free:
            if missing in variables:
                continue
            hint = near(missing, sorted(variables))
            raise BadInputError(f"{place}, line {line}: no such variable: {missing}; {hint}")

    def _complain(self, error: Exception) -> NoReturn:
        """Raise `BadInputError` with the template's line; an error from elsewhere unchanged."""
        places = set(self._places.values())
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f"{f.filename}, line {f.lineno}" for f in frames if f.filename in places]
        if not lines:
            raise error
        raise BadInputError(f"{lines[-1]}: {error}") from None


def read_templates(folder: Path, known: Collection[str]) -> dict[str, str]:
    """Return the templates in a folder, keyed by path; hidden files are ignored.

    Raises `BadInputError` if the folder does not exist or a file is not a template.
    """
    if not folder.is_dir():
        raise BadInputError(f"{folder}: no such folder of prompt templates")
    found = sorted(f for f in folder.iterdir() if not f.name.startswith("."))
    for file in found:
        _known_name(file, known)
    return {str(file): _read(file) for file in found}


def _known_name(file: Path, known: Collection[str]) -> str:
    if file.name not in known:
        raise BadInputError(f"{file}: no such prompt template; {near(file.name, sorted(known))}")
    return file.name


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"{file}: cannot be read as text: {error}") from None
