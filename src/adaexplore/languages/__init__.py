"""Languages of kernels, one folder each: its description, its notes for prompts, its example."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable

from adaexplore.core.problem import LANGUAGES, Language
from adaexplore.languages.base import Dialect


def _dialect(language: Language) -> Dialect:
    dialect: Dialect = import_module(f"{__name__}.{language}").DIALECT
    return dialect


DIALECTS: Mapping[Language, Dialect] = {language: _dialect(language) for language in LANGUAGES}
"""All languages by name; each folder has its description under the name `DIALECT`."""


def notes_of(language: Language) -> Traversable:
    """Return the file of a language's notes, a template of prompts."""
    return files(__name__) / language / "notes.j2"


def example_of(language: Language) -> Traversable:
    """Return the file of a language's example, a template that may depend on versions."""
    return files(__name__) / language / "example.j2"


__all__ = ["DIALECTS", "Dialect", "example_of", "notes_of"]
