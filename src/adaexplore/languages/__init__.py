"""Languages of kernels, one folder each: description, notes for prompts, examples."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable

from adaexplore.core.problem import LANGUAGES, Language
from adaexplore.languages.base import Dialect

_IMPORTS: Mapping[Language, re.Pattern[str]] = {
    "cutedsl": re.compile(r"^\s*(?:import|from)\s+cutlass\b", re.M),
    "helion": re.compile(r"^\s*(?:import|from)\s+helion\b", re.M),
    "gluon": re.compile(r"^\s*(?:import|from)\s+triton\.experimental\b.*\bgluon\b", re.M),
    "triton": re.compile(r"^\s*(?:import|from)\s+triton(?!\.experimental)\b", re.M),
}
_EXAMPLE = re.compile(r"example(?:_([a-z]+))?\.j2")


def _dialect(language: Language) -> Dialect:
    dialect: Dialect = import_module(f"{__name__}.{language}").DIALECT
    return dialect


DIALECTS: Mapping[Language, Dialect] = {language: _dialect(language) for language in LANGUAGES}
"""All languages by name; each folder has its description under the name `DIALECT`."""


def notes_of(language: Language) -> Traversable:
    """Return the file of a language's notes, a template of prompts."""
    return files(__name__) / language / "notes.j2"


def examples_of(language: Language) -> Mapping[str, Traversable]:
    """Return the files of a language's examples by kind of problem, "" for all other problems.

    They are `example.j2` and `example_KIND.j2`, templates that may depend on versions.
    """
    found = (files(__name__) / language).iterdir()
    named = ((match[1] or "", file) for file in found if (match := _EXAMPLE.fullmatch(file.name)))
    return dict(sorted(named, key=lambda pair: pair[0]))


def other_language(source: str, language: Language) -> Language | None:
    """Return the language whose package a module imports, if it imports none of its own one's.

    Only among languages that are packages of Python.
    """
    if language not in _IMPORTS:
        return None
    found = [name for name, pattern in _IMPORTS.items() if pattern.search(source)]
    return found[0] if found and language not in found else None


__all__ = ["DIALECTS", "Dialect", "examples_of", "notes_of", "other_language"]
