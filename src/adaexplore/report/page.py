"""HTML pages from the package's templates, in one style; each opens offline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined

from adaexplore.core.version import __version__
from adaexplore.report import text

_TEMPLATES = files("adaexplore.report") / "templates"


def page(template: str, **variables: object) -> str:
    """Return a page rendered from a template of the package, to be written as UTF-8.

    Values are escaped.
    """
    return page_from(asset, template, variables)


def page_from(load: Callable[[str], str], template: str, variables: Mapping[str, object]) -> str:
    """Return a page as `page` does, from templates that `load` returns by their names."""
    whole = (
        _environment(load)
        .get_template(template)
        .render(text=text, style=asset("report.css"), version=__version__, **variables)
    )
    return whole.encode(errors="replace").decode()


@cache
def _environment(load: Callable[[str], str]) -> Environment:
    return Environment(
        loader=FunctionLoader(load),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def asset(name: str) -> str:
    """Return the text of a template, style sheet or script."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")
